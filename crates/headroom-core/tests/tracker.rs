//! `track()`: commands that another process starts, in boxes with a kernel limit.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use headroom_core::boxing::{BoxId, Limits};
use headroom_core::cgroup::{Cgroup, Limit};
use headroom_core::job::{Registration, Supervision};
use headroom_core::journal::{JobState, RuntimeDir, jobs, sweep};
use headroom_core::process::PidFd;
use headroom_core::tracker::{Tracked, TrackedCall, finish, track};
use serde_json::{Value, json};
use support::agent::{self, Agent, snapshot};
use support::{MIB, PATIENCE, TestBase, roomy, system, wait_until};
use tempfile::TempDir;

#[test]
#[ignore = "not a test: the agent of the others"]
fn the_agent() {
    agent::be_agent();
}

/// An agent in a cgroup of its own, beside which boxes are made.
struct Scene {
    agent: Agent,
    dir: TempDir,
    snapshot: PathBuf,
    base: TestBase,
}

impl Scene {
    fn new() -> Option<Self> {
        let base = TestBase::kernel()?;
        let dir = TempDir::new().unwrap();
        Some(Self { agent: Agent::start(Some(&base)), snapshot: snapshot(dir.path()), dir, base })
    }

    fn track(&self, limits: Limits, text: &str) -> Job {
        self.track_texts(limits, &[text], Supervision::default())
    }

    fn track_texts(&self, limits: Limits, texts: &[&str], supervision: Supervision) -> Job {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        let call = TrackedCall { agent: self.agent.pid(), texts, oom_score_adj: 900 };
        Job::new(track(call, self.base.make_box(limits), supervision).unwrap())
    }

    fn foreground(&self, text: &str) -> i32 {
        self.agent.foreground(&self.snapshot, text);
        self.agent.started()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A shell text that notes its number and stays until the file `go` is there.
    fn stays(&self, name: &str) -> String {
        let (pid, go) = (self.file(name), self.file("go"));
        format!(
            "sh -c \"echo \\$\\$ > {0}.new; mv {0}.new {0}; while ! [ -e {1} ]; do sleep 0.02; done\"",
            pid.display(),
            go.display()
        )
    }

    /// The number that `stays` has noted.
    fn pid_of(&self, name: &str) -> i32 {
        wait_until("it tells its number", || self.file(name).exists());
        fs::read_to_string(self.file(name)).unwrap().trim().parse().unwrap()
    }

    fn go(&self) {
        fs::write(self.file("go"), "").unwrap();
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Whatever still waits for it.
        self.go();
    }
}

struct Job {
    id: BoxId,
    cgroup: PathBuf,
    lines: BufReader<UnixStream>,
}

impl Job {
    fn new(tracked: Tracked) -> Self {
        let socket = UnixStream::from(tracked.events);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { id: tracked.id, cgroup: tracked.cgroup.unwrap(), lines: BufReader::new(socket) }
    }

    /// The next event of this kind.
    fn event(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no event {kind}");
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == kind {
                return event;
            }
            assert_ne!(event["event"], "ended", "ended without {kind}: {event}");
        }
    }

    fn pids(&self) -> Vec<i32> {
        Cgroup::open(&self.cgroup, headroom_core::cgroup::Version::V1).unwrap().pids().unwrap()
    }

    fn holds(&self, pid: i32) -> bool {
        self.pids().contains(&pid)
    }

    /// The call has returned. The job may be over by then.
    fn finish(&self) {
        let _known = finish(self.id);
    }
}

#[test]
fn a_command_is_moved_into_the_box_that_waits_for_it() {
    let Some(scene) = Scene::new() else { return };
    let text = scene.stays("child");
    let mut job = scene.track(roomy(), &text);
    assert!(job.cgroup.is_dir());
    let shell = scene.foreground(&text);
    let entered = job.event("entered");
    assert_eq!((&entered["pid"], &entered["scoped"]), (&json!(shell), &json!(false)));
    assert!(entered["moved"].as_u64().unwrap() >= 1, "{entered}");
    let child = scene.pid_of("child");
    wait_until("both are inside", || job.holds(shell) && job.holds(child));
    assert_eq!(fs::read_to_string(format!("/proc/{shell}/oom_score_adj")).unwrap().trim(), "900");
    job.finish();
    scene.go();
    let ended = job.event("ended");
    assert_eq!((&ended["ending"], &ended["escaped"], &ended["left_running"]), (&Value::Null, &json!(0), &json!([])));
    assert!(ended["peak"]["bytes"].is_u64(), "{ended}");
    assert_eq!(scene.agent.exit_code(shell), 0);
    assert!(!job.cgroup.exists());
    assert!(!finish(job.id), "it is over");
}

#[test]
fn orphans_and_daemons_of_the_command_are_inside_as_well() {
    for (name, text) in [("orphan", "( (TEXT) & )"), ("daemon", "setsid -f TEXT"), ("late", "sleep 0.05; ( (TEXT) & )")]
    {
        let Some(scene) = Scene::new() else { return };
        let text = text.replace("TEXT", &scene.stays("left"));
        let mut job = scene.track(roomy(), &text);
        let shell = scene.foreground(&text);
        job.event("entered");
        let left = scene.pid_of("left");
        wait_until(&format!("the {name} is inside"), || job.holds(left));
        assert_eq!(scene.agent.exit_code(shell), 0);
        job.finish();
        let ended = job.event("ended");
        let pids: Vec<i64> =
            ended["left_running"].as_array().unwrap().iter().map(|p| p["pid"].as_i64().unwrap()).collect();
        assert!(pids.contains(&i64::from(left)), "{ended}");
        assert!(job.cgroup.exists(), "what is left keeps its box");
        scene.go();
        wait_until("it ended", || job.pids().is_empty());
    }
}

#[test]
fn a_background_command_is_watched_beyond_the_end_of_its_call() {
    let Some(scene) = Scene::new() else { return };
    let text = scene.stays("server");
    let mut job = scene.track(roomy(), &text);
    scene.agent.spawn(&["bash", "-lic", &format!("set +m; {text}")]);
    let shell = scene.agent.started();
    job.finish();
    assert_eq!(job.event("entered")["pid"], shell);
    let server = scene.pid_of("server");
    wait_until("it is inside", || job.holds(server));
    scene.go();
    assert_eq!(job.event("ended")["left_running"], json!([]));
}

#[test]
fn a_command_on_a_terminal_of_its_own_is_found() {
    let Some(scene) = Scene::new() else { return };
    let text = scene.stays("on-terminal");
    let mut job = scene.track(roomy(), &text);
    // Makes the terminal and a session on it, below the agent's own child.
    let code = "import pty, sys; pty.spawn(sys.argv[1:])";
    scene.agent.spawn(&["python3", "-c", code, "bash", "-c", &text]);
    let root = scene.agent.started();
    assert_eq!(job.event("entered")["pid"], root);
    let child = scene.pid_of("on-terminal");
    wait_until("it is inside", || job.holds(child));
    job.finish();
    scene.go();
    job.event("ended");
}

#[test]
fn calls_at_the_same_time_get_their_own_commands() {
    let Some(scene) = Scene::new() else { return };
    let texts: Vec<String> = (0..4).map(|n| scene.stays(&format!("one-of-{n}"))).collect();
    let mut jobs: Vec<Job> = texts.iter().map(|text| scene.track(roomy(), text)).collect();
    // In another order than they were announced.
    for text in texts.iter().rev() {
        scene.agent.foreground(&scene.snapshot, text);
    }
    for (n, job) in jobs.iter_mut().enumerate() {
        job.event("entered");
        let child = scene.pid_of(&format!("one-of-{n}"));
        wait_until("it is in the box of its own text", || job.holds(child));
        job.finish();
    }
    scene.go();
    for job in &mut jobs {
        assert_eq!(job.event("ended")["escaped"], 0);
    }
}

#[test]
fn equal_texts_are_served_in_the_order_of_their_announcement_and_each_once() {
    let Some(scene) = Scene::new() else { return };
    let text = scene.stays("same");
    let mut jobs: Vec<Job> = (0..3).map(|_| scene.track(roomy(), &text)).collect();
    let shells: Vec<i32> = jobs
        .iter_mut()
        .map(|job| {
            let shell = scene.foreground(&text);
            assert_eq!(job.event("entered")["pid"], shell);
            shell
        })
        .collect();
    for (job, shell) in jobs.iter().zip(&shells) {
        let others = shells.iter().filter(|other| *other != shell);
        assert!(job.holds(*shell) && others.copied().all(|other| !job.holds(other)));
        job.finish();
    }
    scene.go();
    for job in &mut jobs {
        job.event("ended");
    }
}

#[test]
fn the_longest_text_that_fits_decides() {
    let Some(scene) = Scene::new() else { return };
    let part = scene.stays("longest");
    let whole = format!("true && {part}");
    let (short, mut long) = (scene.track(roomy(), &part), scene.track(roomy(), &whole));
    let shell = scene.foreground(&whole);
    assert_eq!(long.event("entered")["pid"], shell);
    for job in [&short, &long] {
        job.finish();
    }
    scene.go();
    long.event("ended");
}

#[test]
fn what_another_session_starts_meanwhile_stays_outside() {
    let Some(scene) = Scene::new() else { return };
    let (text, light) = (scene.stays("heavy"), scene.stays("light"));
    let mut job = scene.track(roomy(), &text);
    scene.foreground(&format!("setsid -f {light}"));
    let light = scene.pid_of("light");
    scene.foreground(&text);
    job.event("entered");
    let heavy = scene.pid_of("heavy");
    wait_until("the heavy one is inside", || job.holds(heavy));
    assert!(!job.holds(light));
    job.finish();
    scene.go();
    job.event("ended");
}

#[test]
fn a_kernel_kill_in_the_box_leaves_the_shell_and_the_agent() {
    let Some(scene) = Scene::new() else { return };
    let limits = Limits { memory_bytes: 64 * MIB, swap: Limit::Bytes(0) };
    let text = "head -c 400000000 /dev/zero | tail -n 1 >/dev/null; exit ${PIPESTATUS[1]}";
    let mut job = scene.track(limits, text);
    let shell = scene.foreground(text);
    job.event("entered");
    assert_eq!(scene.agent.exit_code(shell), 137);
    job.finish();
    let ended = job.event("ended");
    assert!(ended["oom_kills"].as_u64().unwrap() >= 1 && ended["cap_hit"] == true, "{ended}");
    assert_eq!(ended["victims"][0]["name"], "tail", "{ended}");
    let after = scene.foreground("exit 5");
    assert_eq!(scene.agent.exit_code(after), 5);
}

#[test]
fn a_call_that_starts_nothing_leaves_no_box() {
    let Some(scene) = Scene::new() else { return };
    let mut job = scene.track(roomy(), "never started");
    job.finish();
    assert_eq!(job.event("not_entered")["pid"], Value::Null);
    assert_eq!(job.event("ended")["peak"], Value::Null);
    assert!(!job.cgroup.exists());
}

#[test]
fn the_end_of_the_agent_ends_a_search_and_no_job() {
    let Some(mut scene) = Scene::new() else { return };
    let text = scene.stays("orphaned");
    let (mut searching, mut running) = (scene.track(roomy(), "never started"), scene.track(roomy(), &text));
    scene.foreground(&text);
    running.event("entered");
    let child = scene.pid_of("orphaned");
    scene.agent.kill();
    searching.event("not_entered");
    searching.event("ended");
    assert!(!searching.cgroup.exists());
    assert!(running.holds(child));
    scene.go();
    assert_eq!(running.event("ended")["left_running"], json!([]));
}

#[test]
fn without_a_text_a_program_is_taken_and_not_a_shell() {
    let Some(scene) = Scene::new() else { return };
    let mut job = scene.track_texts(roomy(), &[], Supervision::default());
    scene.agent.spawn(&["sleep", "1000"]);
    let program = scene.agent.started();
    assert_eq!(job.event("entered")["pid"], program);
    job.finish();
    PidFd::open(program).unwrap().signal(libc::SIGKILL).unwrap();
    job.event("ended");
}

#[test]
fn a_guess_is_given_up_for_a_line_that_fits() {
    let Some(scene) = Scene::new() else { return };
    let (guessed, text) = (scene.stays("guessed"), scene.stays("fitting"));
    let mut job = scene.track(roomy(), &text);
    let other = scene.foreground(&guessed);
    assert_eq!(job.event("entered")["pid"], other);
    let shell = scene.foreground(&text);
    assert_eq!(job.event("entered")["pid"], shell);
    job.finish();
    scene.go();
    job.event("ended");
}

/// A cgroup beside the boxes, as systemd makes one for a unit.
fn make_unit(scene: &Scene) -> PathBuf {
    let base = Cgroup::open(scene.base.path(), scene.base.version()).unwrap();
    base.make_child("agent-job.scope").unwrap().path().to_path_buf()
}

#[test]
fn a_command_in_a_unit_of_its_own_is_left_there() {
    let Some(scene) = Scene::new() else { return };
    let text = scene.stays("scoped");
    let unit = make_unit(&scene);
    // A shell by that name: moves itself as systemd would move it, then becomes the command.
    let stub = scene.file("systemd-run");
    fs::copy("/bin/bash", &stub).unwrap();
    let script = format!("echo $$ > {}; exec bash -lic \"$0\"", unit.join("cgroup.procs").display());
    let mut job = scene.track(roomy(), &text);
    scene.agent.spawn(&[stub.to_str().unwrap(), "-c", &script, &text]);
    let shell = scene.agent.started();
    let entered = job.event("entered");
    assert_eq!((&entered["pid"], &entered["scoped"], &entered["moved"]), (&json!(shell), &json!(true), &json!(0)));
    let child = scene.pid_of("scoped");
    assert!(!job.holds(child));
    wait_until("the unit is being read", || {
        let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        open.into_iter().any(|path| path == unit)
    });
    job.finish();
    scene.go();
    let ended = job.event("ended");
    assert!(ended["peak"]["bytes"].as_u64().unwrap() > 0, "{ended}");
    assert_eq!((&ended["escaped"], &ended["left_running"]), (&json!(0), &json!([])));
    assert!(!job.cgroup.exists());
}

#[test]
fn a_command_that_cannot_be_moved_goes_on_and_that_is_told() {
    let Some(scene) = Scene::new() else { return };
    let text = scene.stays("unboxed");
    let mut job = scene.track(roomy(), &text);
    let base = Cgroup::open(scene.base.path(), scene.base.version()).unwrap();
    assert!(base.remove_child(job.cgroup.file_name().unwrap()).unwrap());
    let shell = scene.foreground(&text);
    let told = job.event("not_entered");
    assert_eq!(told["pid"], shell);
    assert!(!told["reason"].as_str().unwrap().is_empty());
    scene.pid_of("unboxed");
    job.finish();
    scene.go();
    let ended = job.event("ended");
    assert_eq!((&ended["peak"], &ended["escaped"]), (&Value::Null, &json!(0)));
    assert_eq!(scene.agent.exit_code(shell), 0);
}

#[test]
fn a_process_that_has_stopped_itself_stays_stopped() {
    let Some(scene) = Scene::new() else { return };
    let text =
        format!("sh -c 'echo $$ > {0}.new; mv {0}.new {0}; kill -STOP $$' & wait", scene.file("stopped").display());
    // Before it is seen or after, whichever comes first.
    let mut job = scene.track(roomy(), &text);
    let shell = scene.foreground(&text);
    job.event("entered");
    let stopped = scene.pid_of("stopped");
    let state = |pid| system().stat(pid).unwrap().map(|stat| stat.state);
    wait_until("it is inside and stands still", || job.holds(stopped) && state(stopped) == Some('T'));
    wait_until("its shell goes on", || state(shell) != Some('T'));
    PidFd::open(stopped).unwrap().signal(libc::SIGKILL).unwrap();
    job.finish();
    job.event("ended");
}

#[test]
fn a_tracked_job_is_on_record_like_any_other() {
    let Some(scene) = Scene::new() else { return };
    let runtime = Arc::new(RuntimeDir::at(&scene.file("runtime")).unwrap());
    let registration = Registration {
        runtime: Arc::clone(&runtime),
        command: "make".to_owned(),
        kind: "build".to_owned(),
        cwd: "/".to_owned(),
    };
    let text = scene.stays("recorded");
    let mut job = scene.track_texts(
        roomy(),
        &[&text],
        Supervision { registration: Some(registration), ..Supervision::default() },
    );
    let [waiting] = &jobs(&system(), &runtime).unwrap()[..] else { panic!("it is on record before its command") };
    assert_eq!((waiting.root_pid, waiting.state, waiting.facts.is_awaited), (None, JobState::Running, true));
    let shell = scene.foreground(&text);
    job.event("entered");
    let child = scene.pid_of("recorded");
    let [running] = &sweep(&system(), &runtime).unwrap()[..] else { panic!("it is swept") };
    assert_eq!((running.root_pid, running.facts.is_awaited), (Some(shell), false));
    assert!(running.processes.iter().any(|process| process.pid == child));
    job.finish();
    scene.go();
    job.event("ended");
    assert!(jobs(&system(), &runtime).unwrap().is_empty());
}
