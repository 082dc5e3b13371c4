//! `start()`: a job under supervision, from its first event line to its last.

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use headroom_core::boxing::{JobBox, Limits, Mode, Placement};
use headroom_core::cgroup::{Cgroup, Limit};
use headroom_core::job::{SpawnError, Stdio, Supervision};
use headroom_core::journal::{JobState, Record, RuntimeDir, jobs, sweep};
use headroom_core::process::PidFd;
use serde_json::{Value, json};
use support::{
    MIB, Supervised, TestBase, TestBox, command, dead_id, every_box, roomy, shell, skipped, system, userspace_box,
    wait_until,
};
use tempfile::TempDir;

const SMALL: Limits = Limits { memory_bytes: 64 * MIB, swap: Limit::Bytes(0) };

/// `tail` collects 40 MB, rests, and grows on until something stops it (at 400 MB it ends by itself).
const GREEDY: &str = "( head -c 40000000 /dev/zero; sleep 1; head -c 360000000 /dev/zero ) | tail -n 1 >/dev/null";

fn started(in_box: TestBox, script: &str) -> Supervised {
    Supervised::start(in_box, shell(script), Supervision::default()).unwrap()
}

/// Each with its pipes to and from the command.
fn piped(in_box: TestBox, script: &str, supervision: Supervision) -> Supervised {
    let mut with_pipes = shell(script);
    with_pipes.stdio = [Stdio::Pipe, Stdio::Pipe, Stdio::Null];
    Supervised::start(in_box, with_pipes, supervision).unwrap()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

#[track_caller]
fn assert_removed(job: &Supervised) {
    if let Some(cgroup) = &job.cgroup {
        assert!(!cgroup.exists(), "{} is still there", cgroup.display());
    }
}

#[test]
fn a_job_that_ends_well_is_told_in_one_line_and_its_box_is_removed() {
    for in_box in every_box(roomy()) {
        let job = started(in_box, "exit 0");
        let events = job.events();
        let [ended] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((&ended["event"], &ended["ending"]), (&json!("ended"), &json!({ "exit_code": 0 })));
        for none in ["oom_kills", "cap_kills", "escaped"] {
            assert_eq!(ended[none], 0, "{none}");
        }
        for empty in ["victims", "left_running"] {
            assert_eq!(ended[empty], json!([]), "{empty}");
        }
        assert!(ended["took_ms"].is_f64() && ended["ended_by_signal"].is_null());
        assert_removed(&job);
    }
}

#[test]
fn the_ending_is_the_commands_own() {
    for (script, ending) in [("exit 37", json!({ "exit_code": 37 })), ("kill -KILL $$", json!({ "signal": 9 }))] {
        for in_box in every_box(roomy()) {
            let job = started(in_box, script);
            assert_eq!(job.ended()["ending"], ending);
            assert_removed(&job);
        }
    }
}

#[test]
fn a_signal_through_the_handle_ends_the_command() {
    for in_box in every_box(roomy()) {
        let job = started(in_box, "sleep 1000 & wait");
        job.running.process.signal(libc::SIGTERM).unwrap();
        assert_eq!(job.running.process.pid(), job.running.pid);
        assert_eq!(job.ended()["ending"], json!({ "signal": 15 }));
    }
}

#[test]
fn the_command_is_collected_by_its_supervision() {
    for in_box in every_box(roomy()) {
        let job = started(in_box, "exit 0");
        job.ended();
        assert_eq!(system().stat(job.running.pid).unwrap(), None);
    }
}

#[test]
fn a_job_without_any_cap_is_only_waited_for() {
    let placement = Placement { mode: Mode::Off, base: None };
    let job_box = placement.make_box(headroom_core::boxing::BoxId::new(&system()).unwrap(), SMALL).unwrap();
    let job = started(TestBox { job_box, base: None }, GREEDY);
    let ended = job.ended();
    assert_eq!((&ended["ending"], &ended["peak"]), (&json!({ "exit_code": 0 }), &Value::Null));
}

#[test]
fn every_process_of_a_job_carries_the_jobs_own_mark_and_no_other() {
    for in_box in every_box(roomy()) {
        let mut look = shell("sh -c 'env | grep ^HEADROOM_JOB_ID='");
        look.env.push(("HEADROOM_JOB_ID".into(), "of-an-outer-job".into()));
        look.stdio[1] = Stdio::Pipe;
        let mut job = Supervised::start(in_box, look, Supervision::default()).unwrap();
        assert_eq!(job.first_line(), format!("HEADROOM_JOB_ID={}", job.id));
        job.ended();
    }
}

#[test]
fn a_kernel_kill_is_told_with_its_victim() {
    let Some(base) = TestBase::kernel() else { return };
    let job = started(TestBox { job_box: base.make_box(SMALL), base: Some(base) }, GREEDY);
    let events = job.events();
    let ended = events.last().unwrap();
    assert_eq!(ended["ending"], json!({ "exit_code": 137 }), "{ended}");
    let kills = ended["oom_kills"].as_u64().unwrap();
    assert!(kills >= 1, "{ended}");
    assert_eq!(ended["cap_kills"], 0);
    let victim = &ended["victims"][0];
    assert_eq!(victim["name"], "tail", "{ended}");
    // Where the kernel's log cannot be read its size comes from a sample.
    assert!(victim["pid"].as_i64().unwrap() > 0 && victim["rss_bytes"].as_u64().unwrap() >= 8 * MIB, "{ended}");
    let peak = ended["peak"]["bytes"].as_u64().unwrap();
    assert!((32 * MIB..=64 * MIB).contains(&peak), "{ended}");
    // A kill shortly before the end is told in the last line only.
    let told: Vec<u64> = of_kind(&events, "oom_kill").iter().map(|event| event["count"].as_u64().unwrap()).collect();
    assert!(told.is_sorted() && told.iter().all(|count| (1..=kills).contains(count)), "{told:?}");
    assert_removed(&job);
}

#[test]
fn the_shell_around_a_killed_process_sees_137_and_goes_on() {
    for in_box in every_box(SMALL) {
        let mut job = piped(in_box, &format!("{GREEDY}; echo $?"), Supervision::default());
        assert_eq!(job.first_line(), "137");
        assert_eq!(job.ended()["ending"], json!({ "exit_code": 0 }));
    }
}

#[test]
fn a_kill_at_the_cap_is_told_when_it_happens_and_at_the_end() {
    let job = started(TestBox { job_box: userspace_box(SMALL), base: None }, GREEDY);
    let events = job.events();
    let ended = events.last().unwrap();
    assert_eq!((&ended["ending"], &ended["oom_kills"]), (&json!({ "exit_code": 137 }), &json!(0)), "{ended}");
    let told = of_kind(&events, "cap_kill");
    assert_eq!(ended["cap_kills"], told.len());
    assert_eq!((&told[0]["name"], &ended["victims"][0]["pid"]), (&json!("tail"), &told[0]["pid"]));
    assert!(told[0]["rss_bytes"].as_u64().unwrap() >= 32 * MIB, "{ended}");
    assert_eq!(ended["peak"]["source"], "sampled");
    assert!(ended["peak"]["bytes"].as_u64().unwrap() >= 64 * MIB, "{ended}");
}

#[test]
fn a_job_below_its_cap_is_not_touched() {
    for in_box in every_box(SMALL) {
        let job = started(in_box, "head -c 20000000 /dev/zero | tail -n 1 >/dev/null; sleep 0.2");
        let ended = job.ended();
        assert_eq!(ended["ending"], json!({ "exit_code": 0 }));
        assert_eq!((&ended["oom_kills"], &ended["cap_kills"]), (&json!(0), &json!(0)));
    }
}

#[test]
fn an_orphan_beyond_the_cap_is_killed() {
    for in_box in every_box(SMALL) {
        // The orphan closes its standard output when it ends.
        let script = "x=$( ( (head -c 300000000 /dev/zero | tail -n 1 | wc -c) & ) ); echo $x";
        let mut job = piped(in_box, script, Supervision::default());
        // `wc` counts what `tail` wrote in the end: nothing, for it was killed.
        assert_eq!(job.first_line(), "0");
        let ended = job.ended();
        assert!(ended["oom_kills"].as_u64().unwrap() + ended["cap_kills"].as_u64().unwrap() >= 1, "{ended}");
    }
}

#[test]
fn a_fork_storm_ends_with_nothing_left() {
    let worker = "( for j in 1 2 3 4 5; do sh -c '( (true) & ); exit 0'; done; sleep 0.05 & sleep 0.05; wait ) &";
    // The output of the storm ends with the last of its orphans.
    let script = format!("x=$( i=0; while [ $i -lt 20 ]; do {worker} i=$((i+1)); done; wait ); exit 5");
    for in_box in every_box(roomy()) {
        let job = started(in_box, &script);
        let ended = job.ended();
        assert_eq!((&ended["ending"], &ended["left_running"]), (&json!({ "exit_code": 5 }), &json!([])));
        assert_eq!(ended["escaped"], 0);
        assert_removed(&job);
        assert_eq!(headroom_core::job::members_of(&system(), job.id, None, &[]), []);
    }
}

#[test]
fn twenty_workers_beyond_the_cap_leave_nothing_and_their_shell_lives() {
    let script = "i=0; while [ $i -lt 20 ]; do (head -c 16000000 /dev/zero; sleep 0.3) | tail -n 1 >/dev/null & i=$((i+1)); done; wait; exit 5";
    for in_box in every_box(SMALL) {
        let job = started(in_box, script);
        let ended = job.ended();
        assert_eq!((&ended["ending"], &ended["left_running"]), (&json!({ "exit_code": 5 }), &json!([])), "{ended}");
        assert!(ended["oom_kills"].as_u64().unwrap() + ended["cap_kills"].as_u64().unwrap() >= 1, "{ended}");
        assert_removed(&job);
    }
}

/// A runtime directory and a record in it.
fn on_record(job_box: &JobBox) -> (TempDir, Arc<RuntimeDir>, Supervision) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Arc::new(RuntimeDir::at(&folder.path().join("run")).unwrap());
    let record = Record::new(Arc::clone(&runtime), &system(), job_box, "make test", "build", "/src").unwrap();
    (folder, runtime, Supervision { record: Some(record), ..Supervision::default() })
}

fn files_in(runtime: &RuntimeDir) -> Vec<String> {
    fs::read_dir(runtime.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_job_is_on_record_while_it_runs_and_off_it_afterwards() {
    for in_box in every_box(roomy()) {
        let (_folder, runtime, supervision) = on_record(&in_box.job_box);
        let mut job = piped(in_box, "echo begun; read line", supervision);
        let stdin = job.pipe(0);
        assert_eq!(job.first_line(), "begun");

        assert_eq!(files_in(&runtime), [format!("{}.job.json", job.id)]);
        let views = jobs(&system(), &runtime).unwrap();
        let [view] = views.as_slice() else { panic!("{views:?}") };
        assert_eq!((view.state, view.root_pid), (JobState::Running, Some(job.running.pid)));
        assert_eq!(view.facts.id, job.id.to_string());
        assert_eq!(
            (view.facts.command.as_str(), view.facts.kind.as_str(), view.facts.cwd.as_str()),
            ("make test", "build", "/src")
        );
        assert_eq!(
            (view.facts.memory_bytes, view.facts.swap_bytes, &view.facts.cgroup),
            (512 * MIB, Some(0), &job.cgroup)
        );
        assert_eq!(view.facts.root, system().living(job.running.pid).unwrap());
        assert!(view.processes.iter().any(|process| process.pid == job.running.pid) && view.now_bytes > 0);
        assert_eq!(sweep(&system(), &runtime).unwrap().len(), 1, "a running job is never swept");

        drop(stdin);
        assert_eq!(job.ended()["left_running"], json!([]));
        assert_eq!(files_in(&runtime), [] as [&str; 0]);
        assert_removed(&job);
    }
}

/// The `sleep` that a job tells the number of, once it is one: in the middle of exec a process has no
/// environment by which it could be found.
fn sleeper(job: &mut Supervised) -> i32 {
    let pid = job.first_line().parse().unwrap();
    wait_until("it has become sleep", || system().stat(pid).unwrap().unwrap().name == "sleep");
    pid
}

#[test]
fn who_outlives_the_command_is_told_and_keeps_box_and_record() {
    for in_box in every_box(roomy()) {
        let (_folder, runtime, supervision) = on_record(&in_box.job_box);
        let mut job = piped(in_box, "sleep 1000 >/dev/null & echo $!; read line; exit 3", supervision);
        let stdin = job.pipe(0);
        let left = sleeper(&mut job);
        drop(stdin);
        let ended = job.ended();
        assert_eq!(ended["ending"], json!({ "exit_code": 3 }));
        let told = ended["left_running"].as_array().unwrap();
        assert!(told.len() == 1 && told[0]["pid"] == left, "{ended}");
        assert!(system().living(left).unwrap().is_some(), "it is left alone");
        assert!(job.cgroup.as_deref().is_none_or(Path::is_dir));

        let views = sweep(&system(), &runtime).unwrap();
        let [view] = views.as_slice() else { panic!("{views:?}") };
        assert_eq!((view.state, view.processes[0].pid), (JobState::LeftRunning, left));
        assert!(view.facts.left);

        let handle = PidFd::open(left).unwrap();
        handle.signal(libc::SIGKILL).unwrap();
        wait_until("the last process is gone and the rest swept", || {
            sweep(&system(), &runtime).unwrap().is_empty() && files_in(&runtime).is_empty()
        });
        assert_removed(&job);
    }
}

#[test]
fn a_job_that_does_not_start_leaves_neither_box_nor_record() {
    for in_box in every_box(roomy()) {
        let (_folder, runtime, supervision) = on_record(&in_box.job_box);
        let TestBox { job_box, base } = in_box;
        let cgroup = job_box.cgroup_path();
        let answer = headroom_core::job::start(command(&["headroom-no-such-program"]), job_box, supervision);
        assert!(matches!(answer, Err(SpawnError::NotFound { .. })), "{answer:?}");
        assert_eq!(files_in(&runtime), [] as [&str; 0]);
        assert!(cgroup.is_none_or(|cgroup| !cgroup.exists()));
        drop(base);
    }
}

#[test]
fn a_process_that_leaves_its_box_is_counted_once() {
    let Some(base) = TestBase::kernel() else { return };
    // Another box is a place that takes processes in either version.
    let outside = base.placement.make_box(dead_id(), roomy()).unwrap();
    let mut job = piped(
        TestBox { job_box: base.make_box(roomy()), base: Some(base) },
        "sleep 1000 >/dev/null & echo $!; read line",
        Supervision::default(),
    );
    let stdin = job.pipe(0);
    let escaped = sleeper(&mut job);
    outside.enter(escaped).unwrap();
    drop(stdin);
    let ended = job.ended();
    assert_eq!(ended["escaped"], 1, "{ended}");
    let left = ended["left_running"].as_array().unwrap();
    assert!(left.iter().all(|process| process["pid"] == escaped), "nobody else is told: {ended}");
    assert_removed(&job);
    assert!(outside.kill_all().unwrap());
}

#[test]
fn a_nested_box_counts_as_inside_and_is_removed_with_its_job() {
    let Some(base) = TestBase::kernel() else { return };
    let mut job = piped(
        TestBox { job_box: base.make_box(roomy()), base: Some(base) },
        "sleep 1000 >/dev/null & echo $!; read line; kill $!; wait; exit 0",
        Supervision::default(),
    );
    let stdin = job.pipe(0);
    let inner = sleeper(&mut job);
    let version = job.base.as_ref().unwrap().version();
    let nested = Cgroup::open(job.cgroup.as_ref().unwrap(), version).unwrap().make_child("nested").unwrap();
    nested.enter(inner).unwrap();
    drop(stdin);
    let ended = job.ended();
    assert_eq!((&ended["escaped"], &ended["left_running"]), (&json!(0), &json!([])), "{ended}");
    assert_removed(&job);
}

#[test]
fn a_reader_that_is_gone_does_not_stop_the_supervision() {
    for in_box in every_box(SMALL) {
        let (_folder, runtime, supervision) = on_record(&in_box.job_box);
        let mut job = Supervised::start(in_box, shell(GREEDY), supervision).unwrap();
        let (_ours, other) = std::os::unix::net::UnixStream::pair().unwrap();
        job.running.events = other.into();
        wait_until("the account is closed", || files_in(&runtime).is_empty());
        assert_removed(&job);
    }
}

#[test]
fn a_reader_that_is_slow_does_not_stop_the_supervision() {
    // More kills than lines fit into a socket that nobody reads.
    let script = "i=0; spared=0; while [ $i -lt 400 ]; do \
                  head -c 30000000 /dev/zero | tail -n 1 >/dev/null; [ $? = 137 ] || spared=$((spared+1)); \
                  [ $spared -lt 20 ] || break; i=$((i+1)); done; echo $i";
    let limits = Limits { memory_bytes: 6 * MIB, swap: Limit::Bytes(0) };
    let mut job = piped(TestBox { job_box: userspace_box(limits), base: None }, script, Supervision::default());
    assert_eq!(job.first_line(), "400", "after so many kills the cap was not enforced any more");
    let ended = job.ended();
    assert!(ended["cap_kills"].as_u64().unwrap() >= 300, "{ended}");
}

#[test]
fn many_jobs_at_once_do_not_disturb_each_other() {
    let running: Vec<(usize, Supervised)> = (0..12)
        .flat_map(|_| every_box(roomy()))
        .enumerate()
        .map(|(number, in_box)| (number, started(in_box, &format!("sleep 0.1; exit {number}"))))
        .collect();
    for (number, job) in &running {
        assert_eq!(job.ended()["ending"], json!({ "exit_code": number }));
        assert_removed(job);
    }
    if running.iter().all(|(_, job)| job.cgroup.is_none()) {
        skipped("only userspace boxes were tried");
    }
}
