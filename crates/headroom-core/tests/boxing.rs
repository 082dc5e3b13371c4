//! Boxes: their names and modes, and on real cgroups, where this machine allows it, their life.

mod support;

use std::fs;

use headroom_core::boxing::{BOX_PREFIX, BoxId, JobBox, Limits, Mode, Placement};
use headroom_core::cgroup::{Cgroup, Limit, Version};
use headroom_core::job::spawn;
use headroom_core::proc::{Membership, ProcessKey};
use support::{MIB, Spawn, TestBase, command, dead_id, kernel_placement, roomy, skipped, system, verdicts, wait_until};

fn id(pid: i32, start_ticks: u64, sequence: u32) -> BoxId {
    BoxId { owner: ProcessKey { pid, start_ticks }, sequence }
}

#[test]
fn a_name_says_who_made_the_box_and_is_read_back() {
    assert_eq!(id(42, 987_654, 7).cgroup_name(), "headroom-job-42-987654-7");
    for id in [id(1, 0, 0), id(42, 987_654, 7), id(i32::MAX, u64::MAX, u32::MAX)] {
        assert_eq!(BoxId::from_cgroup_name(&id.cgroup_name()), Some(id));
        assert_eq!(BoxId::parse(&id.to_string()), Some(id));
    }
}

#[test]
fn names_of_others_are_refused() {
    let foreign = [
        "",
        "system.slice",
        "headroom-agent",
        "headroom-job",
        BOX_PREFIX,
        "headroom-job-1",
        "headroom-job-1-2",
        "headroom-job-1-2-",
        "headroom-job-1-2-3-",
        "headroom-job-1-2-3-4",
        "headroom-job-0-2-3",
        "headroom-job--1-2-3",
        "headroom-job-x-2-3",
        "headroom-job-1-x-3",
        "headroom-job-1-2-x",
        "headroom-job-1-2-3.scope",
        "headroom-job-1-2-4294967296",
        "headroom-job-2147483648-2-3",
        "Headroom-job-1-2-3",
        "x-headroom-job-1-2-3",
        "headroom-job-1-2-3 ",
        "headroom-job-1-2-3/job",
    ];
    for name in foreign {
        assert_eq!(BoxId::from_cgroup_name(name), None, "{name:?}");
    }
}

#[test]
fn a_name_that_is_not_written_this_way_is_refused() {
    for name in ["headroom-job-+1-2-3", "headroom-job-1-+2-3", "headroom-job-01-2-3", "headroom-job-1-2-03"] {
        assert_eq!(BoxId::from_cgroup_name(name), None, "{name:?}");
    }
}

#[test]
fn every_new_identity_is_another_one_of_this_process() {
    let proc = system();
    let (first, second) = (BoxId::new(&proc).unwrap(), BoxId::new(&proc).unwrap());
    assert_eq!((first.owner, second.owner), (proc.own_key().unwrap(), proc.own_key().unwrap()));
    assert_ne!(first.sequence, second.sequence);
}

#[test]
fn every_mode_has_one_word_in_settings_and_on_record() {
    for mode in Mode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(mode));
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        assert_eq!(serde_json::from_value::<Mode>(mode.as_str().into()).unwrap(), mode);
    }
    for word in ["", "cgroup", "Cgroup2", "cgroup2 ", "docker"] {
        assert_eq!(word.parse::<Mode>(), Err(format!("unknown mode {word:?}")));
    }
}

#[test]
fn modes_are_ordered_best_first_and_know_whether_the_kernel_holds_the_job() {
    assert!(Mode::ALL.is_sorted());
    let held: Vec<_> = Mode::ALL.into_iter().filter(|mode| mode.is_kernel_limit()).collect();
    assert_eq!(held, [Mode::SystemdUser, Mode::SystemdSystem, Mode::Cgroup2, Mode::Cgroup1]);
}

#[test]
fn every_mode_gets_a_verdict_and_those_without_a_kernel_limit_always_work() {
    let modes: Vec<_> = verdicts().iter().map(|verdict| verdict.mode).collect();
    assert_eq!(modes, Mode::ALL);
    for verdict in verdicts() {
        match &verdict.outcome {
            Ok(placement) => {
                assert_eq!(placement.mode, verdict.mode);
                assert_eq!(placement.base.is_some(), verdict.mode.is_kernel_limit());
            }
            Err((obstacle, detail)) => {
                assert!(verdict.mode.is_kernel_limit(), "{} cannot be used: {detail}", verdict.mode);
                assert!(!detail.is_empty(), "{}: {}", verdict.mode, obstacle.as_str());
            }
        }
    }
}

#[test]
fn finding_out_what_works_leaves_no_box_behind() {
    let Ok(placement) = kernel_placement() else { return skipped("no box with a kernel limit can be made here") };
    let own = system().own_key().unwrap();
    for entry in fs::read_dir(placement.base.unwrap()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert_ne!(BoxId::from_cgroup_name(&name).map(|id| id.owner), Some(own), "{name}");
    }
}

#[test]
fn a_box_without_a_cgroup_holds_everybody_and_has_nothing_to_remove() {
    for mode in [Mode::Userspace, Mode::Off] {
        let placement = Placement { mode, base: None };
        let identity = BoxId::new(&system()).unwrap();
        let job_box = placement.make_box(identity, roomy()).unwrap();
        assert_eq!((job_box.mode(), job_box.id(), job_box.limits()), (mode, identity, roomy()));
        assert!(job_box.cgroup().is_none() && job_box.cgroup_path().is_none() && job_box.entry().unwrap().is_none());
        assert_eq!(
            (job_box.pids().unwrap(), job_box.peak().unwrap(), job_box.oom_kills().unwrap()),
            (Vec::new(), None, 0)
        );
        assert!(job_box.holds(&Membership::default()));
        job_box.enter(std::process::id().cast_signed()).unwrap();
        assert!(job_box.kill_all().unwrap() && job_box.remove().unwrap() && job_box.remove().unwrap());
        assert_eq!(placement.remove_abandoned(&system()).unwrap(), [] as [&str; 0]);
    }
}

#[test]
fn only_v1_boxes_have_v1_files() {
    let v1: Vec<_> = Mode::ALL.into_iter().filter(|mode| Placement::version(*mode) == Version::V1).collect();
    assert_eq!(v1, [Mode::Cgroup1]);
}

#[test]
fn a_box_cannot_be_made_where_there_is_no_cgroup() {
    for mode in [Mode::Cgroup1, Mode::Cgroup2] {
        let folder = tempfile::tempdir().unwrap();
        let absent = Placement { mode, base: Some(folder.path().join("absent")) };
        assert_eq!(absent.make_box(dead_id(), roomy()).unwrap_err().errno(), Some(libc::ENOENT));
        // A folder that is no cgroup has no files for limits; nothing may stay there.
        let plain = Placement { mode, base: Some(folder.path().to_path_buf()) };
        assert_eq!(plain.make_box(dead_id(), roomy()).unwrap_err().errno(), Some(libc::ENOENT));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// Starts a process in a box that does nothing.
fn idle_in(job_box: &JobBox) -> Spawn {
    Spawn(spawn(&command(&["sleep", "1000"]), job_box).unwrap().pid)
}

#[test]
fn limits_of_a_box_are_read_back() {
    let Some(base) = TestBase::kernel() else { return };
    let limits = Limits { memory_bytes: 96 * MIB, swap: Limit::Bytes(32 * MIB) };
    let job_box = base.make_box(limits);
    let cgroup = job_box.cgroup().unwrap();
    assert_eq!(cgroup.path(), base.path().join(job_box.id().cgroup_name()));
    assert_eq!(cgroup.memory_limit().unwrap(), Some(Limit::Bytes(96 * MIB)));
    match cgroup.swap_limit().unwrap() {
        Some(swap) => assert_eq!(swap, Limit::Bytes(32 * MIB)),
        None => skipped("this kernel does not account swap"),
    }
    assert_eq!((job_box.limits(), job_box.pids().unwrap(), job_box.oom_kills().unwrap()), (limits, Vec::new(), 0));
}

#[test]
fn a_box_may_have_unlimited_swap() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(Limits { memory_bytes: 96 * MIB, swap: Limit::Max });
    let swap = job_box.cgroup().unwrap().swap_limit().unwrap();
    assert!(matches!(swap, Some(Limit::Max) | None), "{swap:?}");
}

#[test]
fn removing_a_box_twice_is_fine() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    let path = job_box.cgroup_path().unwrap();
    assert!(path.is_dir());
    assert!(job_box.remove().unwrap());
    assert!(!path.exists());
    assert!(job_box.remove().unwrap());
}

#[test]
fn dropping_a_box_leaves_it() {
    let Some(base) = TestBase::kernel() else { return };
    let path = base.make_box(roomy()).cgroup_path().unwrap();
    assert!(path.is_dir());
}

#[test]
fn a_box_with_a_process_inside_stays_until_it_is_emptied() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    let idle = idle_in(&job_box);
    assert_eq!(job_box.pids().unwrap(), [idle.0]);
    assert!(!job_box.remove().unwrap());
    assert!(job_box.cgroup_path().unwrap().is_dir());
    assert!(system().living(idle.0).unwrap().is_some(), "the process is left alone");
    assert!(job_box.kill_all().unwrap());
    assert_eq!(job_box.pids().unwrap(), [] as [i32; 0]);
    assert!(job_box.remove().unwrap());
}

#[test]
fn killing_reaches_every_process_and_every_nested_cgroup() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    let idle: Vec<Spawn> = (0..5).map(|_| idle_in(&job_box)).collect();
    let nested = job_box.cgroup().unwrap().make_child("nested").unwrap();
    nested.enter(idle[0].0).unwrap();
    assert_eq!(job_box.pids().unwrap().len(), 5);
    assert!(job_box.kill_all().unwrap());
    for process in &idle {
        assert_eq!(system().living(process.0).unwrap(), None);
    }
    assert!(job_box.kill_all().unwrap(), "an empty one is fine");
}

#[test]
fn a_box_knows_its_processes_by_their_membership() {
    let Some(base) = TestBase::kernel() else { return };
    let (ours, other) = (base.make_box(roomy()), base.make_box(roomy()));
    let idle = idle_in(&ours);
    let membership = system().membership(idle.0).unwrap().unwrap();
    assert!(ours.holds(&membership) && !other.holds(&membership));
    other.enter(idle.0).unwrap();
    let membership = system().membership(idle.0).unwrap().unwrap();
    assert!(!ours.holds(&membership) && other.holds(&membership));
}

#[test]
fn nested_cgroups_are_removed_with_their_box() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    let nested = job_box.cgroup().unwrap().make_child("a").unwrap().make_child("b").unwrap();
    assert!(nested.path().is_dir());
    assert!(job_box.remove().unwrap());
    assert_eq!(base.names(), [] as [&str; 0]);
}

#[test]
fn the_peak_of_a_box_is_at_least_what_was_used() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    let mut fill = command(&["sh", "-c", "head -c 40000000 /dev/zero | tail -n 1"]);
    fill.cwd = Some("/".into());
    let fill = Spawn(spawn(&fill, &job_box).unwrap().pid);
    assert_eq!(fill.ending().as_exit_code(), 0);
    match job_box.peak().unwrap() {
        Some(peak) => assert!(peak.bytes >= 40_000_000 && peak.bytes <= roomy().memory_bytes, "{peak:?}"),
        None => skipped("this kernel keeps no record of the most memory in use"),
    }
}

#[test]
fn a_box_stays_when_another_of_its_name_cannot_be_made() {
    let Some(base) = TestBase::kernel() else { return };
    let first = base.make_box(roomy());
    let second = base.placement.make_box(first.id(), roomy());
    assert_eq!(second.unwrap_err().errno(), Some(libc::EEXIST));
    assert!(first.cgroup_path().unwrap().is_dir(), "the first one's box was removed");
}

#[test]
fn only_empty_boxes_of_dead_makers_are_abandoned() {
    let Some(base) = TestBase::kernel() else { return };
    let proc = system();
    let make = |id| base.placement.make_box(id, roomy()).unwrap();
    let (abandoned, nested, occupied) = (make(dead_id()), make(dead_id()), make(dead_id()));
    nested.cgroup().unwrap().make_child("a").unwrap().make_child("b").unwrap();
    let idle = idle_in(&occupied);
    let own = base.make_box(roomy());
    // The number of a living process, and another start time: its number was used again.
    let mut reused = own.id();
    reused.owner.start_ticks -= 1;
    let reused = make(reused);
    let parent = Cgroup::open(base.path(), base.version()).unwrap();
    let foreign = ["system.slice", "headroom-agent", "headroom-job-1-2", "headroom-job-x-2-3"];
    for name in foreign {
        parent.make_child(name).unwrap();
    }

    let mut removed = base.placement.remove_abandoned(&proc).unwrap();
    removed.sort();
    let mut expected = [&abandoned, &nested, &reused].map(|job_box| job_box.id().cgroup_name());
    expected.sort();
    assert_eq!(removed, expected);

    let mut stay: Vec<String> = foreign.map(str::to_owned).to_vec();
    stay.extend([&occupied, &own].map(|job_box| job_box.id().cgroup_name()));
    stay.sort();
    assert_eq!(base.names(), stay);
    assert!(proc.living(idle.0).unwrap().is_some());
    assert_eq!(base.placement.remove_abandoned(&proc).unwrap(), [] as [&str; 0], "there is nothing more");

    assert!(occupied.kill_all().unwrap());
    wait_until("the last box of a dead maker is removed", || {
        base.placement.remove_abandoned(&proc).unwrap() == [occupied.id().cgroup_name()]
            || !base.names().contains(&occupied.id().cgroup_name())
    });
}
