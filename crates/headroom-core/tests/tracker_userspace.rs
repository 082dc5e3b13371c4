//! `track()` where no kernel limit can be had: knowing the command's processes is all, and the cap must hold.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use headroom_core::boxing::{BoxId, Limits};
use headroom_core::cgroup::Limit;
use headroom_core::job::{Registration, Supervision};
use headroom_core::journal::{RuntimeDir, adopt, jobs, sweep};
use headroom_core::process::PidFd;
use headroom_core::tracker::{Tracked, TrackedCall, finish, track};
use serde_json::Value;
use support::agent::{self, Agent, snapshot};
use support::{MIB, PATIENCE, TestBase, system, userspace_box, wait_until};
use tempfile::TempDir;

const CAP: Limits = Limits { memory_bytes: 64 * MIB, swap: Limit::Bytes(0) };

/// The variable with the folder of a tracking process.
const TRACKER: &str = "HEADROOM_TEST_TRACKER";

#[test]
#[ignore = "not a test: the agent of the others"]
fn the_agent() {
    agent::be_agent();
}

/// Grows to 400 MB once the file `go` is there, unless something stops it; leaves its number in `grows` and its
/// end's code in `code`.
fn greedy(dir: &Path) -> String {
    let script = dir.join("greedy.sh");
    let dir = dir.display();
    let text = format!(
        "echo $$ > {dir}/new; mv {dir}/new {dir}/grows; while ! [ -e {dir}/go ]; do sleep 0.02; done\n\
         (head -c 40000000 /dev/zero; sleep 1; head -c 360000000 /dev/zero) | tail -n 1 >/dev/null; echo $? > {dir}/code\n"
    );
    fs::write(&script, text).unwrap();
    format!("sh {}", script.display())
}

fn read_when_there(path: &Path) -> String {
    wait_until("a file is written", || fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')));
    fs::read_to_string(path).unwrap().trim().to_owned()
}

fn start_tracking(agent: i32, text: &str, supervision: Supervision) -> (BoxId, BufReader<UnixStream>) {
    let call = TrackedCall { agent, texts: vec![text.to_owned()], oom_score_adj: 900 };
    let Tracked { id, events, .. } = track(call, userspace_box(CAP), supervision).unwrap();
    let socket = UnixStream::from(events);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    (id, BufReader::new(socket))
}

fn event(lines: &mut BufReader<UnixStream>, kind: &str) -> Value {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no event {kind}");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["event"] == kind {
            return event;
        }
    }
}

#[test]
fn the_cap_holds_for_children_orphans_and_daemons() {
    for shape in ["TEXT", "( (TEXT) & )", "setsid -f TEXT"] {
        // The agent's own cgroup keeps other tests' processes apart; the boxes are none.
        let base = TestBase::kernel();
        let (dir, agent) = (TempDir::new().unwrap(), Agent::start(base.as_ref()));
        let text = shape.replace("TEXT", &greedy(dir.path()));
        let (id, mut lines) = start_tracking(agent.pid(), &text, Supervision::default());
        agent.foreground(&snapshot(dir.path()), &text);
        assert_eq!(event(&mut lines, "entered")["moved"], 0);
        let grows: i32 = read_when_there(&dir.path().join("grows")).parse().unwrap();
        wait_until("its score is raised", || {
            fs::read_to_string(format!("/proc/{grows}/oom_score_adj")).is_ok_and(|score| score.trim() == "900")
        });
        fs::write(dir.path().join("go"), "").unwrap();
        if shape == "TEXT" {
            assert_eq!(read_when_there(&dir.path().join("code")), "137");
            let _over_maybe = finish(id);
            let ended = event(&mut lines, "ended");
            assert!(ended["cap_kills"].as_u64().unwrap() >= 1 && ended["victims"][0]["name"] == "tail", "{ended}");
        } else {
            // The command has ended; who is left is the next one's to hold.
            let left = event(&mut lines, "ended")["left_running"].clone();
            let is_left = |process: &Value| process["pid"] == grows;
            assert!(left.as_array().unwrap().iter().any(is_left), "{shape}: {left}");
            if let Ok(handle) = PidFd::open(grows) {
                handle.signal(libc::SIGKILL).unwrap();
            }
        }
    }
}

#[test]
#[ignore = "not a test: the tracker that is killed in the next one"]
fn the_tracker() {
    let Some(dir) = std::env::var_os(TRACKER) else { return };
    let dir = Path::new(&dir);
    let agent = read_when_there(&dir.join("agent")).parse().unwrap();
    let runtime = Arc::new(RuntimeDir::at(&dir.join("runtime")).unwrap());
    let registration =
        Registration { runtime, command: "make".to_owned(), kind: "build".to_owned(), cwd: "/".to_owned() };
    let supervision = Supervision { registration: Some(registration), ..Supervision::default() };
    let text = fs::read_to_string(dir.join("text")).unwrap();
    let (_, mut lines) = start_tracking(agent, &text, supervision);
    fs::write(dir.join("armed"), "1\n").unwrap();
    event(&mut lines, "entered");
    event(&mut lines, "ended");
}

struct TrackingProcess(Child);

impl TrackingProcess {
    fn start(dir: &Path, agent: &Agent, text: &str) -> Self {
        fs::write(dir.join("agent"), format!("{}\n", agent.pid())).unwrap();
        fs::write(dir.join("text"), text).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "the_tracker", "--nocapture"])
            .env(TRACKER, dir)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self(child);
        read_when_there(&dir.join("armed"));
        started
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for TrackingProcess {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _collected_already = self.0.wait();
    }
}

#[test]
fn orphans_of_a_job_whose_tracker_was_killed_are_held_by_who_adopts_it() {
    let base = TestBase::kernel();
    let (dir, agent) = (TempDir::new().unwrap(), Agent::start(base.as_ref()));
    // The shell stays too, so that the tracker has the job when it is killed.
    let text =
        format!("( ({}) & ); while ! [ -e {}/end ]; do sleep 0.02; done", greedy(dir.path()), dir.path().display());
    let mut tracker = TrackingProcess::start(dir.path(), &agent, &text);
    agent.foreground(&snapshot(dir.path()), &text);
    let shell = agent.started();
    read_when_there(&dir.path().join("grows"));
    let runtime = Arc::new(RuntimeDir::at(&dir.path().join("runtime")).unwrap());
    wait_until("the session is on record", || jobs(&system(), &runtime).unwrap()[0].facts.sessions.len() == 1);
    tracker.kill();
    fs::write(dir.path().join("end"), "").unwrap();
    assert_eq!(agent.exit_code(shell), 0);
    assert_eq!(sweep(&system(), &runtime).unwrap().len(), 1, "its orphan keeps it on record");
    assert_eq!(adopt(&system(), &runtime).unwrap(), 1);
    fs::write(dir.path().join("go"), "").unwrap();
    assert_eq!(read_when_there(&dir.path().join("code")), "137");
    wait_until("nothing is left of it", || jobs(&system(), &runtime).unwrap().is_empty());
}

#[test]
fn a_search_whose_tracker_was_killed_leaves_nothing() {
    let (dir, agent) = (TempDir::new().unwrap(), Agent::start(None));
    let mut tracker = TrackingProcess::start(dir.path(), &agent, "never started");
    let runtime = RuntimeDir::at(&dir.path().join("runtime")).unwrap();
    assert_eq!(jobs(&system(), &runtime).unwrap().len(), 1);
    tracker.kill();
    assert_eq!(sweep(&system(), &runtime).unwrap().len(), 0);
    assert_eq!(runtime.path().read_dir().unwrap().count(), 0);
}
