//! Readers of /proc over the fixture folder `fixtures/proc`, over odd fake folders, and over the real one.

mod support;

use std::collections::HashSet;
use std::path::Path;

use headroom_core::proc::{Membership, ProcFs, ProcessKey, Rollup, Stat, Statm, Status, descendants_of};
use headroom_core::{Error, Result};
use support::{FakeProc, Kid, fixture, skipped, stat_line, system};

const NODE: i32 = 4711;
const ZOMBIE: i32 = 4712;
const KERNEL_THREAD: i32 = 2;
const NOBODY: i32 = 999_999;

fn fixtures() -> ProcFs {
    ProcFs::at(fixture("proc")).unwrap()
}

#[track_caller]
fn assert_malformed<T: std::fmt::Debug>(answer: Result<T>, file: &str) {
    let error = answer.unwrap_err();
    assert_eq!(error.code(), "E_PARSE", "{error}");
    assert!(error.to_string().contains(file), "{error} does not name {file}");
}

#[test]
fn stat_is_read_field_by_field() {
    let stat = fixtures().stat(NODE).unwrap().unwrap();
    let expected = Stat {
        pid: NODE,
        name: "node".to_owned(),
        state: 'S',
        ppid: 4700,
        pgrp: 4711,
        session: 4700,
        is_exiting: false,
        start_ticks: 987_654,
        rss_pages: 31_250,
    };
    assert_eq!(stat, expected);
    assert_eq!(stat.key(), ProcessKey { pid: NODE, start_ticks: 987_654 });
}

#[test]
fn that_a_process_is_ending_is_in_its_flags() {
    let line = |flags: &str| String::from_utf8(stat_line(77, b"sh", 'R', 5)).unwrap().replace("4194304", flags);
    for (flags, is_exiting) in [("4194304", false), ("4194308", true), ("4", true), ("0", false)] {
        let fake = FakeProc::new().file("77/stat", line(flags));
        assert_eq!(fake.open().stat(77).unwrap().unwrap().is_exiting, is_exiting, "{flags}");
    }
}

#[test]
fn a_name_may_hold_parentheses_spaces_line_feeds_and_bytes_that_are_not_text() {
    let names: [(&[u8], &str); 9] = [
        (b"tmux: server", "tmux: server"),
        (b")", ")"),
        (b"(", "("),
        (b"a) (b", "a) (b"),
        (b") Z 1 1 1 (", ") Z 1 1 1 ("),
        (b"two\nlines", "two\nlines"),
        (b"caf\xe9", "caf\u{fffd}"),
        (b"", ""),
        (b" ", " "),
    ];
    for (bytes, name) in names {
        let fake = FakeProc::new().file("77/stat", stat_line(77, bytes, 'S', 5));
        let stat = fake.open().stat(77).unwrap().unwrap();
        let read = (stat.pid, stat.name.as_str(), stat.state, stat.ppid, stat.pgrp, stat.session, stat.start_ticks);
        assert_eq!(read, (77, name, 'S', 5, 7, 8, 1077));
    }
}

#[test]
fn a_malformed_stat_names_its_file() {
    let full = String::from_utf8(stat_line(77, b"sh", 'S', 5)).unwrap();
    let cut = full.split(' ').take(12).collect::<Vec<_>>().join(" ");
    let odd = ["", "\n", "77 sh S 5 7 8", ")77 sh(", "x (sh) S 5", "77 (sh)", "77 (sh) S five 7 8", cut.as_str()];
    for text in odd {
        let fake = FakeProc::new().file("77/stat", text);
        assert_malformed(fake.open().stat(77), "77/stat");
    }
}

#[test]
fn a_long_offending_line_is_cut_in_the_message() {
    let fake = FakeProc::new().file("77/stat", "é".repeat(5000));
    let Error::Parse { line, .. } = fake.open().stat(77).unwrap_err() else { panic!("not a parse error") };
    assert_eq!(line.chars().count(), 120);
}

#[test]
fn negative_resident_pages_count_as_none() {
    let line = String::from_utf8(stat_line(77, b"sh", 'S', 5)).unwrap().replace(" 250 ", " -3 ");
    let fake = FakeProc::new().file("77/stat", line);
    assert_eq!(fake.open().stat(77).unwrap().unwrap().rss_pages, 0);
}

#[test]
fn status_is_read_in_bytes() {
    let expected = Status {
        uid: 1000,
        rss_bytes: 125_000 << 10,
        peak_rss_bytes: 131_072 << 10,
        anon_bytes: 80_000 << 10,
        swap_bytes: 2048 << 10,
    };
    assert_eq!(fixtures().status(NODE).unwrap(), Some(expected));
}

#[test]
fn a_malformed_status_names_its_file() {
    for text in
        ["VmRSS:\tmuch kB\n", "VmRSS:\t12 MB\n", "VmHWM:\t12\n", "VmSwap:\n", "RssAnon: -1 kB\n", "Uid:\troot\n"]
    {
        let fake = FakeProc::new().file("77/status", text);
        assert_malformed(fake.open().status(77), "77/status");
    }
}

#[test]
fn a_status_with_a_name_that_looks_like_a_field_is_read() {
    let fake = FakeProc::new().file("77/status", b"Name:\tVmRSS: \xe9\nUid:\t5\t5\t5\t5\nVmRSS:\t 8 kB\n");
    let status = fake.open().status(77).unwrap().unwrap();
    assert_eq!((status.uid, status.rss_bytes), (5, 8192));
}

#[test]
fn statm_is_read_in_bytes() {
    let page = rustix::param::page_size() as u64;
    let expected = Statm { resident_bytes: 31_250 * page, shared_bytes: 11_250 * page };
    assert_eq!(fixtures().statm(NODE).unwrap(), Some(expected));
}

#[test]
fn a_malformed_statm_names_its_file() {
    for text in ["", "12\n", "12 5\n", "a b c d e f g\n", "12 -5 3 0 0 0 0\n"] {
        let fake = FakeProc::new().file("77/statm", text);
        assert_malformed(fake.open().statm(77), "77/statm");
    }
}

#[test]
fn page_counts_beyond_any_memory_do_not_overflow() {
    let fake = FakeProc::new().file("77/statm", "1 18446744073709551615 18446744073709551615 0 0 0 0\n");
    let answer = fake.open().statm(77);
    assert!(answer.as_ref().is_err() || answer.as_ref().is_ok_and(|s| s.is_some_and(|s| s.resident_bytes == u64::MAX)));
}

#[test]
fn the_exact_size_is_read_in_bytes() {
    let expected = Rollup {
        rss_bytes: 125_000 << 10,
        pss_bytes: 95_000 << 10,
        swap_pss_bytes: 1024 << 10,
        private_dirty_bytes: 79_000 << 10,
    };
    assert_eq!(fixtures().rollup(NODE).unwrap(), Some(expected));
}

#[test]
fn a_malformed_exact_size_names_its_file() {
    for text in ["Pss: x kB\n", "Pss: 1\n", "SwapPss:\n", "Private_Dirty: 12 pages\n"] {
        let fake = FakeProc::new().file("77/smaps_rollup", text);
        assert_malformed(fake.open().rollup(77), "77/smaps_rollup");
    }
}

#[test]
fn a_command_line_is_read_word_by_word() {
    let words = fixtures().cmdline(NODE).unwrap().unwrap();
    assert_eq!(words, ["node", "--max-old-space-size=512", "say \"hi\"", "caf\u{fffd}"]);
}

#[test]
fn a_command_line_keeps_empty_words_inside_and_needs_no_closing_zero() {
    let fake = FakeProc::new().file("77/cmdline", b"printf\0\0x").file("78/cmdline", b"\0\0\0");
    assert_eq!(fake.open().cmdline(77).unwrap().unwrap(), ["printf", "", "x"]);
    assert_eq!(fake.open().cmdline(78).unwrap(), Some(Vec::new()));
}

#[test]
fn an_environment_entry_is_matched_whole() {
    let proc = fixtures();
    assert!(proc.has_environment(NODE, "HEADROOM_JOB_ID=1-2-33"));
    assert!(proc.has_environment(NODE, "EMPTY="));
    for other in ["HEADROOM_JOB_ID=1-2-3", "JOB_ID=1-2-33", "HEADROOM_JOB_ID=", "EMPTY"] {
        assert!(!proc.has_environment(NODE, other), "{other}");
    }
    assert!(!proc.has_environment(ZOMBIE, "EMPTY="), "it has no such file");
}

#[test]
fn a_kernel_thread_has_no_memory_and_no_command_line() {
    let proc = fixtures();
    assert_eq!(proc.stat(KERNEL_THREAD).unwrap().unwrap().name, "kthreadd");
    assert_eq!(proc.status(KERNEL_THREAD).unwrap(), Some(Status::default()));
    assert_eq!(proc.statm(KERNEL_THREAD).unwrap(), Some(Statm::default()));
    assert_eq!(proc.rollup(KERNEL_THREAD).unwrap(), None);
    assert_eq!(proc.cmdline(KERNEL_THREAD).unwrap(), Some(Vec::new()));
}

#[test]
fn a_zombie_can_be_seen_and_does_not_live() {
    let proc = fixtures();
    let stat = proc.stat(ZOMBIE).unwrap().unwrap();
    assert!(stat.is_zombie());
    assert!(!proc.is_alive(stat.key()));
    assert_eq!(proc.living(ZOMBIE).unwrap(), None);
    assert_eq!(proc.status(ZOMBIE).unwrap().unwrap().rss_bytes, 0);
    assert_eq!(proc.cmdline(ZOMBIE).unwrap(), Some(Vec::new()));
    let dead = FakeProc::new().process(77, 1, 'X');
    assert!(dead.open().stat(77).unwrap().unwrap().is_zombie());
}

#[test]
fn a_process_that_is_gone_is_none_everywhere() {
    for proc in [fixtures(), system()] {
        // Above the kernel's largest process number.
        let pid = if proc.dir().path() == Path::new("/proc") { 0x7fff_ffff } else { NOBODY };
        assert_eq!(proc.stat(pid).unwrap(), None);
        assert_eq!(proc.status(pid).unwrap(), None);
        assert_eq!(proc.statm(pid).unwrap(), None);
        assert_eq!(proc.rollup(pid).unwrap(), None);
        assert_eq!(proc.cmdline(pid).unwrap(), None);
        assert_eq!(proc.membership(pid).unwrap(), None);
        assert_eq!(proc.children(pid).unwrap(), None);
        assert_eq!(proc.living(pid).unwrap(), None);
        assert!(!proc.has_environment(pid, "A=b"));
        assert!(!proc.is_alive(ProcessKey { pid, start_ticks: 1 }));
    }
}

#[test]
fn only_numbered_folders_are_processes() {
    assert_eq!(fixtures().pids().unwrap(), [KERNEL_THREAD, NODE, ZOMBIE]);
}

#[test]
fn an_absent_proc_is_an_error_that_names_it() {
    let error = ProcFs::at("/nonexistent/proc").unwrap_err();
    assert_eq!((error.code(), error.errno()), ("E_IO", Some(libc::ENOENT)));
    assert!(error.to_string().starts_with("/nonexistent/proc: "), "{error}");
}

fn membership_of(content: impl AsRef<[u8]>) -> Membership {
    FakeProc::new().file("77/cgroup", content).open().membership(77).unwrap().unwrap()
}

fn membership_fixture(name: &str) -> Membership {
    membership_of(std::fs::read(fixture("membership").join(name)).unwrap())
}

#[test]
fn a_process_of_both_versions_has_two_paths() {
    let path = Some("/user.slice/user-1000.slice/session-2.scope".to_owned());
    let membership = membership_fixture("hybrid");
    assert_eq!(membership, Membership { v2: path.clone(), v1_memory: path });
    assert_eq!(fixtures().membership(NODE).unwrap(), Some(membership.clone()));
    assert_eq!(fixtures().own_membership().unwrap(), membership);
}

#[test]
fn a_process_of_v1_alone_has_no_v2_path() {
    let expected = Membership { v2: None, v1_memory: Some("/docker/3f2a9c".to_owned()) };
    assert_eq!(membership_fixture("v1-only"), expected);
}

#[test]
fn a_path_may_hold_colons() {
    let expected = Membership { v2: Some("/system.slice/with:colons/a:b:c".to_owned()), v1_memory: None };
    assert_eq!(membership_fixture("v2-with-colons"), expected);
}

#[test]
fn a_named_hierarchy_is_not_the_memory_controller() {
    let membership = membership_of("5:name=memory:/wrong\n4:memoryish:/wrong\n3:cpu,memory:/right\n");
    assert_eq!(membership, Membership { v2: None, v1_memory: Some("/right".to_owned()) });
}

#[test]
fn a_kernel_without_cgroups_has_no_paths() {
    assert_eq!(membership_of(""), Membership::default());
    assert_eq!(FakeProc::new().open().own_membership().unwrap(), Membership::default());
}

#[test]
fn a_malformed_membership_names_its_file() {
    for text in ["0::/fine\nnonsense\n", "0:/\n", "\n"] {
        let fake = FakeProc::new().file("77/cgroup", text).file("self/cgroup", text);
        assert_malformed(fake.open().membership(77), "77/cgroup");
        assert_malformed(fake.open().own_membership(), "self/cgroup");
    }
}

#[test]
fn a_path_component_is_matched_whole_and_in_both_hierarchies() {
    let membership = membership_of("0::/a/headroom-job-1-2-3/job\n9:memory:/b/other\n");
    for inside in ["a", "headroom-job-1-2-3", "job", "b", "other"] {
        assert!(membership.has_component(inside), "{inside}");
    }
    for outside in ["headroom-job-1-2", "headroom-job-1-2-33", "a/headroom-job-1-2-3", "/"] {
        assert!(!membership.has_component(outside), "{outside}");
    }
    assert!(!Membership::default().has_component(""));
}

fn mounts_fixture(name: &str) -> Vec<headroom_core::proc::Mount> {
    let text = std::fs::read(fixture("mountinfo").join(name)).unwrap();
    FakeProc::new().file("self/mountinfo", text).open().mounts().unwrap()
}

#[test]
fn mounts_are_read_with_their_controllers() {
    let mounts = mounts_fixture("hybrid");
    assert_eq!(mounts.len(), 6);
    let memory = &mounts[3];
    assert_eq!(
        (memory.root.as_path(), memory.mount_point.as_path()),
        (Path::new("/"), Path::new("/sys/fs/cgroup/memory"))
    );
    assert_eq!(
        (memory.fs_type.as_str(), memory.super_options.as_slice()),
        ("cgroup", ["rw", "memory"].map(str::to_owned).as_slice())
    );
    assert_eq!(memory.options, ["rw", "nosuid", "nodev", "noexec", "relatime"]);
    assert_eq!(mounts[5].fs_type, "cgroup2", "optional fields before the dash are passed over");
}

#[test]
fn a_read_only_mount_of_a_part_of_the_tree_is_seen_as_such() {
    let mounts = mounts_fixture("container");
    assert_eq!((mounts[1].root.as_path(), mounts[1].options[0].as_str()), (Path::new("/docker/3f2a9c"), "ro"));
    assert_eq!(mounts[2].root, Path::new("/srv/home"));
    assert_eq!(mounts[2].options[0], "rw", "errors=remount-ro of the file system is not a read-only mount");
}

#[test]
fn escapes_in_mounts_are_undone() {
    let mounts = mounts_fixture("escaped");
    assert_eq!(mounts[0].root, Path::new("/my disk"));
    assert_eq!(mounts[0].mount_point, Path::new("/media/my disk\twith\\all\nfour"));
    assert_eq!(mounts[1].mount_point, Path::new("/media/back\\slash\\0"), "these are no escapes");
}

#[test]
fn a_mount_without_a_source_or_options_is_read() {
    let mounts = mounts_fixture("escaped");
    assert_eq!(mounts[2].super_options, ["rw", "size=4k"]);
    assert_eq!((mounts[3].fs_type.as_str(), mounts[3].super_options.len()), ("tmpfs", 0));
}

#[test]
fn absent_mounts_are_an_error_and_malformed_ones_name_the_file() {
    assert_eq!(FakeProc::new().open().mounts().unwrap_err().code(), "E_IO");
    assert_eq!(FakeProc::new().file("self/mountinfo", "").open().mounts().unwrap(), []);
    for text in ["1 2 0:1 / / rw - \n36 35", "36 35 98:0 / /mnt rw,noatime", "36 35 - ext4 /dev/root rw"] {
        let fake = FakeProc::new().file("self/mountinfo", text);
        assert_malformed(fake.open().mounts(), "self/mountinfo");
    }
}

#[test]
fn the_real_mounts_and_the_own_membership_are_read() {
    assert!(system().mounts().unwrap().iter().any(|mount| mount.mount_point == Path::new("/proc")));
    let own = std::process::id().cast_signed();
    assert_eq!(system().membership(own).unwrap().unwrap(), system().own_membership().unwrap());
}

/// 1 ─ 10 ─ 100 ─ 1000, 1 ─ 10 ─ 101 (zombie), 1 ─ 20.
fn family() -> FakeProc {
    FakeProc::new()
        .process(1, 0, 'S')
        .process(10, 1, 'S')
        .process(20, 1, 'S')
        .process(100, 10, 'R')
        .process(101, 10, 'Z')
        .process(1000, 100, 'D')
}

fn ancestors_of(fake: &FakeProc, pid: i32) -> Vec<i32> {
    fake.open().tree().unwrap().ancestors(pid).map(|stat| stat.pid).collect()
}

fn descendants(fake: &FakeProc, roots: &[i32]) -> Vec<i32> {
    let roots: HashSet<i32> = roots.iter().copied().collect();
    descendants_of(&fake.open().tree().unwrap(), &roots).iter().map(|stat| stat.pid).collect()
}

#[test]
fn ancestors_are_told_nearest_first() {
    assert_eq!(ancestors_of(&family(), 1000), [100, 10, 1]);
    assert_eq!(ancestors_of(&family(), 1), [] as [i32; 0]);
    assert_eq!(ancestors_of(&family(), NOBODY), [] as [i32; 0]);
}

#[test]
fn a_circle_of_parents_ends() {
    let circle = FakeProc::new().process(5, 6, 'S').process(6, 7, 'S').process(7, 5, 'S').process(8, 8, 'S');
    assert_eq!(ancestors_of(&circle, 5), [6, 7]);
    assert_eq!(ancestors_of(&circle, 8), [] as [i32; 0]);
    assert_eq!(descendants(&circle, &[6]), [5, 6, 7]);
    assert_eq!(descendants(&circle, &[8]), [8]);
}

#[test]
fn descendants_include_the_roots_and_zombies_each_once() {
    assert_eq!(descendants(&family(), &[10]), [10, 100, 101, 1000]);
    assert_eq!(descendants(&family(), &[10, 100, 20]), [10, 20, 100, 101, 1000]);
    assert_eq!(descendants(&family(), &[1000]), [1000]);
    assert_eq!(descendants(&family(), &[NOBODY]), [] as [i32; 0]);
    assert_eq!(descendants(&family(), &[]), [] as [i32; 0]);
}

#[test]
fn a_process_whose_parent_ended_meanwhile_has_no_ancestors() {
    let fake = FakeProc::new().process(50, 49, 'S');
    assert_eq!(ancestors_of(&fake, 50), [] as [i32; 0]);
}

#[test]
fn the_tree_leaves_out_processes_that_end_during_the_pass() {
    // Its folder is listed, its stat file is gone.
    let fake = family().file("30/cmdline", "");
    let tree = fake.open().tree().unwrap();
    assert!(tree.get(30).is_none());
    assert_eq!(tree.iter().count(), 6);
    assert_eq!(tree.get(100).unwrap().ppid, 10);
}

#[test]
fn a_malformed_process_makes_the_tree_an_error_that_names_it() {
    assert_malformed(family().file("30/stat", "nonsense").open().tree(), "30/stat");
}

#[test]
fn children_are_those_of_every_thread() {
    let mut children = fixtures().children(NODE).unwrap().unwrap();
    children.sort_unstable();
    assert_eq!(children, [4712, 4713, 4714]);
}

#[test]
fn a_kernel_without_the_children_file_says_nothing_and_an_empty_one_says_none() {
    let without = FakeProc::new().file("77/task/77/comm", "sh\n");
    assert_eq!(without.open().children(77).unwrap(), None);
    let empty = FakeProc::new().file("77/task/77/children", "");
    assert_eq!(empty.open().children(77).unwrap(), Some(Vec::new()));
}

#[test]
fn words_that_are_no_numbers_are_not_children() {
    let fake = FakeProc::new().file("77/task/77/children", "5 x 6 99999999999 ");
    assert_eq!(fake.open().children(77).unwrap(), Some(vec![5, 6]));
}

#[test]
fn this_process_lives_under_its_own_key_only() {
    let proc = system();
    let own = proc.own_key().unwrap();
    assert_eq!(own.pid, std::process::id().cast_signed());
    assert!(proc.is_alive(own));
    assert_eq!(proc.living(own.pid).unwrap(), Some(own));
    assert!(!proc.is_alive(ProcessKey { start_ticks: own.start_ticks + 1, ..own }));
}

#[test]
fn a_child_lives_until_it_ends_even_before_it_is_collected() {
    let proc = system();
    let mut kid = Kid::idle();
    let key = kid.key();
    assert!(proc.is_alive(key));
    kid.become_zombie();
    assert!(proc.stat(key.pid).unwrap().unwrap().is_zombie());
    assert!(!proc.is_alive(key));
    assert_eq!(proc.living(key.pid).unwrap(), None);
    assert_eq!(proc.rollup(key.pid).unwrap(), None);
    kid.0.wait().unwrap();
    assert!(!proc.is_alive(key));
}

#[test]
fn the_real_tree_knows_parents_and_children() {
    let proc = system();
    let kid = Kid::idle();
    let own = std::process::id().cast_signed();
    let tree = proc.tree().unwrap();
    assert_eq!(tree.ancestors(kid.pid()).next().unwrap().pid, own);
    assert!(descendants_of(&tree, &HashSet::from([own])).iter().any(|stat| stat.pid == kid.pid()));
    match proc.children(own).unwrap() {
        Some(children) => assert!(children.contains(&kid.pid()), "{children:?}"),
        None => skipped("this kernel has no /proc/PID/task/TID/children"),
    }
}

#[test]
fn the_sizes_of_this_process_agree_with_each_other() {
    let proc = system();
    let own = std::process::id().cast_signed();
    let status = proc.status(own).unwrap().unwrap();
    assert_eq!(status.uid, rustix::process::getuid().as_raw());
    assert!(status.peak_rss_bytes > 0 && status.anon_bytes > 0);
    assert!(proc.statm(own).unwrap().unwrap().resident_bytes > 0);
    assert!(proc.rollup(own).unwrap().unwrap().pss_bytes > 0);
    assert!(proc.cmdline(own).unwrap().unwrap()[0].contains("proc"));
}
