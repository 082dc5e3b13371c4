//! The watchdog over real jobs. The line is drawn where the machine stands, so that no memory has to be used up
//! to cross it.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use headroom_core::job::{Registration, Supervision};
use headroom_core::journal::{Handling, Mark, RuntimeDir};
use headroom_core::memory::Available;
use headroom_core::proc::ProcFs;
use headroom_core::process::PidFd;
use headroom_core::watchdog::{Cause, Rules, Running, start};
use serde_json::Value;
use support::{Kid, MIB, PATIENCE, Supervised, TestBox, every_box, roomy, shell, skipped, system, wait_until};
use tempfile::TempDir;

/// Memory that a test takes to get below the line, bytes.
const TAKEN: u64 = 4096 * MIB;
const CHUNK: u64 = 64 * MIB;

fn rules(critical_bytes: u64) -> Rules {
    Rules {
        critical_bytes,
        reserve_bytes: critical_bytes,
        stalled_percent: 100,
        refaults_per_s: u64::MAX,
        pause_limit: Duration::from_mins(1),
        observe: false,
        agent_pid: None,
    }
}

fn available() -> u64 {
    Available::measure(&system()).unwrap().available_bytes
}

/// A line above what is available, and not so far above that it is an emergency.
fn always_in_danger() -> Rules {
    rules(available() * 3 / 2)
}

struct Scene {
    dir: TempDir,
    runtime: Arc<RuntimeDir>,
}

impl Scene {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let runtime = Arc::new(RuntimeDir::at(&dir.path().join("jobs")).unwrap());
        Self { dir, runtime }
    }

    fn start(&self, in_box: TestBox, script: &str) -> Supervised {
        let registration = Registration {
            runtime: Arc::clone(&self.runtime),
            command: script.to_owned(),
            kind: "other".to_owned(),
            cwd: self.dir.path().display().to_string(),
        };
        let supervision = Supervision { registration: Some(registration), ..Supervision::default() };
        Supervised::start(in_box, shell(script), supervision).unwrap()
    }

    fn watch(&self, rules: Rules) -> Watching {
        let (running, events) = start(Arc::clone(&self.runtime), rules).unwrap();
        let socket = UnixStream::from(events);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Watching { running, events: BufReader::new(socket) }
    }
}

struct Watching {
    running: Running,
    events: BufReader<UnixStream>,
}

impl Watching {
    fn event(&mut self) -> Value {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }

    /// The next thing that it did: what, and to which job.
    fn action(&mut self) -> (String, String) {
        loop {
            let event = self.event();
            assert!(!event.is_null(), "the watchdog ended");
            if event["event"] == "acted" {
                return (event["action"].as_str().unwrap().to_owned(), event["job"].as_str().unwrap().to_owned());
            }
        }
    }
}

/// One pair of boxes a way of holding jobs.
fn pairs() -> Vec<[TestBox; 2]> {
    every_box(roomy()).into_iter().zip(every_box(roomy())).map(<[TestBox; 2]>::from).collect()
}

/// Counts on, ten times a second, in a file: whether it stands still can be seen from outside.
fn counting(scene: &Scene, name: &str) -> (String, impl Fn() -> u64 + use<>) {
    let file = scene.dir.path().join(name);
    let script = format!("n=0; while :; do n=$((n+1)); echo $n > {}; sleep 0.1; done", file.display());
    (script, move || std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0))
}

fn stands_still(count: &impl Fn() -> u64) -> bool {
    let before = count();
    std::thread::sleep(Duration::from_millis(600));
    // One more may have been on its way.
    count() <= before + 1
}

#[test]
fn the_newest_is_paused_then_stopped_and_told_why_and_the_oldest_is_not_touched() {
    for [first, second] in pairs() {
        let scene = Scene::new();
        let (script, count) = counting(&scene, "old");
        let old = scene.start(first, &script);
        let new = scene.start(second, "trap 'exit 3' TERM; while :; do sleep 0.1; done");
        let mut watching = scene.watch(always_in_danger());
        assert_eq!(watching.action(), ("pause".to_owned(), new.id.to_string()));
        assert_eq!(watching.action(), ("terminate".to_owned(), new.id.to_string()));
        let ended = new.ended();
        assert_eq!(ended["watchdog"]["handling"], "stopped", "{ended}");
        assert_eq!(ended["watchdog"]["cause"], "available");
        assert!(ended["watchdog"]["available_bytes"].as_u64().unwrap() > 0);
        assert_eq!(ended["ending"]["exit_code"], 3, "asked first, with a chance to end by itself: {ended}");
        let before = count();
        wait_until("the oldest goes on", || count() > before + 2);
        assert_eq!(Mark::read(&scene.runtime, old.id), None);
    }
}

#[test]
fn who_does_not_end_when_asked_is_killed_with_all_its_processes() {
    for in_box in every_box(roomy()) {
        let scene = Scene::new();
        let job = scene.start(in_box, "trap '' TERM; (setsid sh -c 'sleep 1000' &); while :; do sleep 0.1; done");
        let mut watching = scene.watch(always_in_danger());
        assert_eq!(watching.action(), ("terminate".to_owned(), job.id.to_string()));
        assert_eq!(watching.action(), ("kill".to_owned(), job.id.to_string()));
        let ended = job.ended();
        assert_eq!(ended["ending"]["signal"], 9, "{ended}");
        assert_eq!(ended["left_running"], serde_json::json!([]), "{ended}");
    }
}

#[test]
fn a_paused_job_stands_still_and_goes_on_when_an_older_one_has_ended() {
    if available() < TAKEN * 3 {
        return skipped("too little memory is free to take some GiB of it");
    }
    for [first, second] in pairs() {
        let scene = Scene::new();
        let old = scene.start(first, "while :; do sleep 0.1; done");
        let (script, count) = counting(&scene, "new");
        let new = scene.start(second, &script);
        wait_until("the job counts", || count() > 2);
        let never_enough = u64::MAX / 2;
        let mut watching = scene.watch(Rules { reserve_bytes: never_enough, ..rules(available() - TAKEN / 2) });
        assert_eq!(watching.event()["event"], "guarding");
        // No more than it takes, so that it can be given back at once.
        let mut taken = Vec::new();
        while Mark::read(&scene.runtime, new.id).is_none() && (taken.len() as u64) < TAKEN / CHUNK {
            taken.push(std::hint::black_box(vec![1_u8; usize::try_from(CHUNK).unwrap()]));
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(taken);
        assert_eq!(watching.action(), ("pause".to_owned(), new.id.to_string()));
        assert!(stands_still(&count), "it counts on while it is paused");
        assert_eq!(Mark::read(&scene.runtime, new.id).unwrap().handling, Handling::Paused);
        old.running.process.signal(libc::SIGKILL).unwrap();
        assert_eq!(watching.action(), ("resume".to_owned(), new.id.to_string()));
        let before = count();
        wait_until("it counts on", || count() > before + 2);
        assert_eq!(Mark::read(&scene.runtime, new.id), None);
        watching.running.stop();
    }
}

#[test]
fn a_job_that_is_paused_when_the_watchdog_ends_goes_on() {
    for [first, second] in pairs() {
        let scene = Scene::new();
        let _old = scene.start(first, "while :; do sleep 0.1; done");
        let (script, count) = counting(&scene, "new");
        let new = scene.start(second, &script);
        wait_until("the job counts", || count() > 2);
        let mut watching = scene.watch(always_in_danger());
        assert_eq!(watching.action(), ("pause".to_owned(), new.id.to_string()));
        watching.running.stop();
        let before = count();
        wait_until("it counts on", || count() > before + 2);
        assert_eq!(watching.event(), Value::Null, "its events have ended");
    }
}

#[test]
fn what_a_dead_watchdog_left_paused_goes_on_under_the_next_one() {
    for [first, second] in pairs() {
        let scene = Scene::new();
        let _old = scene.start(first, "while :; do sleep 0.1; done");
        let (script, count) = counting(&scene, "new");
        let new = scene.start(second, &script);
        wait_until("the job counts", || count() > 2);
        // As it is found after a SIGKILL: a mark, and processes that stand still.
        freeze(&new);
        let mark = Mark {
            handling: Handling::Paused,
            cause: Cause::Available,
            available_bytes: 1,
            critical_bytes: 2,
            boot_ms: 0,
            paused_before_ms: 0,
        };
        mark.write(&scene.runtime, new.id).unwrap();
        assert!(stands_still(&count));
        let mut watching = scene.watch(rules(1));
        assert_eq!(watching.action(), ("resume".to_owned(), new.id.to_string()));
        let before = count();
        wait_until("it counts on", || count() > before + 2);
    }
}

fn freeze(job: &Supervised) {
    let frozen = job.cgroup.as_ref().map(|dir| std::fs::write(dir.join("cgroup.freeze"), "1"));
    if matches!(frozen, Some(Ok(()))) {
        return;
    }
    for _ in 0..3 {
        for process in headroom_core::job::members_of(&system(), job.id, None, &[]) {
            PidFd::open(process.pid).unwrap().signal(libc::SIGSTOP).unwrap();
        }
    }
}

#[test]
fn one_watchdog_acts_and_the_next_takes_its_place() {
    let scene = Scene::new();
    let mut first = scene.watch(rules(1));
    assert_eq!(first.event()["event"], "guarding");
    let mut second = scene.watch(rules(1));
    second.events.get_ref().set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let mut line = String::new();
    assert!(second.events.read_line(&mut line).is_err(), "{line}");
    second.events.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    first.running.stop();
    assert_eq!(second.event()["event"], "guarding");
}

#[test]
fn who_stands_by_acts_while_the_holder_of_the_lock_is_stopped() {
    let scene = Scene::new();
    // Another process that holds the lock and has signed it, as a `run` does; then it is stopped.
    let file = scene.runtime.path().join("watchdog.lock");
    std::fs::write(&file, "").unwrap();
    let mut command = std::process::Command::new("flock");
    let holder = command.arg(&file).args(["sh", "-c", "echo; exec cat"]);
    let holder = holder.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn();
    let Ok(holder) = holder else { return skipped("there is no flock(1)") };
    let mut holder = Kid(holder);
    let mut first = String::new();
    BufReader::new(holder.0.stdout.take().unwrap()).read_line(&mut first).unwrap();
    std::fs::write(&file, serde_json::to_string(&holder.key()).unwrap()).unwrap();
    let mut watching = scene.watch(rules(1));
    let is_silent = |watching: &mut Watching| {
        watching.events.get_ref().set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
        let is_silent = watching.events.read_line(&mut String::new()).is_err();
        watching.events.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        is_silent
    };
    assert!(is_silent(&mut watching), "the holder acts");
    let handle = PidFd::open(holder.pid()).unwrap();
    handle.signal(libc::SIGSTOP).unwrap();
    assert_eq!(watching.event()["event"], "guarding");
    handle.signal(libc::SIGCONT).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    handle.signal(libc::SIGSTOP).unwrap();
    assert_eq!(watching.event()["event"], "guarding", "once more, so it had stepped back");
}

#[test]
fn observing_says_what_would_be_done_and_does_nothing() {
    let scene = Scene::new();
    let in_box = every_box(roomy()).pop().unwrap();
    let (script, count) = counting(&scene, "job");
    let job = scene.start(in_box, &script);
    let mut watching = scene.watch(Rules { observe: true, ..always_in_danger() });
    assert_eq!(watching.event()["event"], "guarding");
    let event = watching.event();
    assert_eq!((&event["observed"], &event["job"]), (&Value::Bool(true), &Value::String(job.id.to_string())));
    let before = count();
    wait_until("the job goes on", || count() > before + 25);
    assert_eq!(Mark::read(&scene.runtime, job.id), None);
}

#[test]
fn danger_without_jobs_is_told() {
    let scene = Scene::new();
    let mut watching = scene.watch(always_in_danger());
    assert_eq!(watching.event()["event"], "guarding");
    let event = watching.event();
    assert_eq!((&event["event"], &event["cause"]), (&"danger".into(), &"available".into()));
}

#[test]
fn a_record_that_names_a_foreign_cgroup_or_process_is_no_reason_to_signal_anybody() {
    let scene = Scene::new();
    let bystander = Kid::idle();
    let proc: ProcFs = system();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    // A number that has changed hands: the right pid, the start time of another process.
    let mut key = bystander.key();
    key.start_ticks += 1;
    let cgroups = proc.membership(bystander.pid()).unwrap().unwrap();
    let foreign = cgroups.v1_memory.or(cgroups.v2).unwrap_or_default();
    for (sequence, mode, cgroup) in [(1, "userspace", None), (2, "cgroup1", Some(foreign))] {
        let id = format!("{}-{}-{sequence}", key.pid, key.start_ticks);
        let record = serde_json::json!({
            "id": id, "mode": mode, "cgroup": cgroup, "memory_bytes": 1, "swap_bytes": 0, "command": "x",
            "kind": "other", "cwd": "/", "owner": key, "root": key, "started_unix_ms": 1, "started_boot_ms": 1,
            "boot_id": boot_id.trim(), "left": false,
        });
        std::fs::write(scene.runtime.path().join(format!("{id}.job.json")), record.to_string()).unwrap();
    }
    let mut watching = scene.watch(always_in_danger());
    assert_eq!(watching.event()["event"], "guarding");
    assert_eq!(watching.event()["event"], "danger", "nobody to act on");
    assert!(proc.is_alive(bystander.key()));
}
