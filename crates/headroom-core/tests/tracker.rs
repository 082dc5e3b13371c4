//! `track()`: shells that another process starts. Here that process is the test itself, which starts them as an agent
//! does: in a session of their own, with the command inside of other text.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use headroom_core::boxing::{BoxId, Limits};
use headroom_core::cgroup::Limit;
use headroom_core::job::Entrance;
use headroom_core::tracker::{Newcomers, TrackedCall, finish, squash, track};
use serde_json::Value;
use support::{MIB, PATIENCE, TestBase, TestBox, every_box, roomy, skipped, system, wait_until};
use tempfile::TempDir;

/// Calls of one agent see each other's shells: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Scene {
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    fn new() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Self { dir: TempDir::new().unwrap(), _alone: alone }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

struct Job {
    id: BoxId,
    lines: BufReader<UnixStream>,
    /// Removed after everything else.
    _base: Option<TestBase>,
}

impl Job {
    fn track(in_box: TestBox, texts: &[&str]) -> Self {
        Self::track_for(std::process::id().cast_signed(), in_box, texts)
    }

    fn track_for(agent_pid: i32, in_box: TestBox, texts: &[&str]) -> Self {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        let call = TrackedCall { agent_pid, texts, oom_score_adj: 900 };
        let tracked = track(call, Entrance::from(in_box.job_box), None).unwrap();
        let socket = UnixStream::from(tracked.events);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { id: tracked.id, lines: BufReader::new(socket), _base: in_box.base }
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

    fn name(&self) -> String {
        self.id.cgroup_name()
    }
}

/// As an agent does it.
fn shell(command: &str) -> Child {
    let quoted = command.replace('\'', r"'\''");
    let text = format!("cd / || exit 126\neval '{quoted}'\ncode=$?\nexport -p > /dev/null\nexit $code");
    Command::new("setsid").args(["bash", "-c", &text]).stdin(Stdio::null()).spawn().unwrap()
}

fn ends(child: &mut Child) -> ExitStatus {
    child.wait().unwrap()
}

/// A command that writes where it is, for each of the ways in which it can be started.
fn tells(file: &Path) -> String {
    format!("cat /proc/self/cgroup > {0}.new; mv {0}.new {0}", file.display())
}

#[test]
fn children_orphans_and_new_sessions_of_a_shell_are_inside() {
    let Some(base) = TestBase::kernel() else { return skipped("no cgroup for boxes can be had") };
    let scene = Scene::new();
    let job_box = base.make_box(roomy());
    let files: Vec<PathBuf> = ["child", "orphan", "session"].map(|name| scene.file(name)).to_vec();
    let [child, orphan, session] = [&files[0], &files[1], &files[2]].map(|file| format!("sleep 0.2; {}", tells(file)));
    // At once it may get away, rarely: `npm run bench:track` counts how often.
    let session = format!("sleep 0.2; setsid -f sh -c '{session}'");
    let command = format!("( ({orphan}) & ); {session}; {child}; sleep 0.5");
    let mut job = Job::track(TestBox { job_box, base: Some(base) }, &[&command]);
    let mut child = shell(&command);
    let entered = job.event("entered");
    assert_eq!(entered["problem"], Value::Null, "{entered}");
    assert!(ends(&mut child).success());
    finish(job.id);
    let ended = job.event("ended");
    assert_eq!(ended["ending"], Value::Null, "not ours to collect: {ended}");
    for file in files {
        wait_until("it tells where it is", || file.exists());
        let told = std::fs::read_to_string(&file).unwrap();
        assert!(told.contains(&job.name()), "{}: {told}", file.display());
    }
}

#[test]
fn a_kill_at_the_cap_leaves_the_shell_alive_and_is_told() {
    for make in [true, false] {
        let limits = Limits { memory_bytes: 64 * MIB, swap: Limit::Bytes(0) };
        let Some(in_box) = every_box(limits).into_iter().find(|in_box| in_box.base.is_some() == make) else { continue };
        let scene = Scene::new();
        let file = scene.file("code");
        // Time to be found: without a kernel limit the cap holds from the moment that the shell is known.
        let command = format!("sleep 0.3; head -c 300m /dev/zero | tail > /dev/null; echo $? > {}", file.display());
        let mut job = Job::track(in_box, &[&command]);
        let mut child = shell(&command);
        job.event("entered");
        assert!(ends(&mut child).success());
        let ended = job.event("ended");
        assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), "137", "{ended}");
        let kills = ended["oom_kills"].as_u64().unwrap() + ended["cap_kills"].as_u64().unwrap();
        assert!(kills >= 1 && ended["cap_hit"] == true, "{ended}");
    }
}

#[test]
fn each_of_two_calls_gets_its_own_shell_and_others_are_left_alone() {
    let (Some(first_base), Some(second_base)) = (TestBase::kernel(), TestBase::kernel()) else {
        return skipped("no cgroup for boxes can be had");
    };
    let scene = Scene::new();
    let files = ["long", "short", "other"].map(|name| scene.file(name));
    let [long, short, other] = [&files[0], &files[1], &files[2]].map(|file| format!("sleep 0.4; {}", tells(file)));
    // The second text stands in the first one too: the longer fit decides.
    let (long, short) = (format!("true npm test; {long}; true all"), format!("true npm test; {short}"));
    let boxes = [(first_base, &short), (second_base, &long)].map(|(base, text)| {
        let job_box = base.make_box(roomy());
        Job::track(TestBox { job_box, base: Some(base) }, &[text, "true npm test"])
    });
    let [mut for_short, mut for_long] = boxes;
    let mut shells = [shell(&other), shell(&long), shell(&short)];
    for_short.event("entered");
    for_long.event("entered");
    for child in &mut shells {
        assert!(ends(child).success());
    }
    let told = files.map(|file| std::fs::read_to_string(file).unwrap());
    assert!(told[0].contains(&for_long.name()), "{told:?}");
    assert!(told[1].contains(&for_short.name()), "{told:?}");
    assert!(!told[2].contains("headroom-job-"), "{told:?}");
    for_short.event("ended");
    for_long.event("ended");
}

#[test]
fn neither_the_agent_nor_what_is_started_beside_it_is_taken_for_the_jobs() {
    let Some(base) = TestBase::kernel() else { return skipped("no cgroup for boxes can be had") };
    let scene = Scene::new();
    let [told, agents] = ["told", "agents"].map(|name| scene.file(name));
    // An agent that is as new as its call, and that starts a shell when it is told to.
    let command = "sleep 0.6; true npm test";
    let script = format!("read -r _; setsid bash -c \"eval '{command}'\" & wait; {}", tells(&agents));
    let mut agent = Command::new("bash").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let in_box = TestBox { job_box: base.make_box(roomy()), base: Some(base) };
    let agent_pid = agent.id().cast_signed();
    let mut job = Job::track_for(agent_pid, in_box, &[command]);
    writeln!(agent.stdin.as_mut().unwrap()).unwrap();
    let stranger = Command::new("sh").args(["-c", &format!("sleep 0.3; {}", tells(&told))]).spawn();
    assert!(ends(&mut stranger.unwrap()).success());
    job.event("entered");
    assert!(ends(&mut agent).success());
    for file in [told, agents] {
        let place = std::fs::read_to_string(&file).unwrap();
        assert!(!place.contains("headroom-job-"), "{}: {place}", file.display());
    }
    job.event("ended");
}

#[test]
fn a_call_for_which_nothing_is_started_ends_when_it_is_over() {
    for in_box in every_box(roomy()) {
        let _scene = Scene::new();
        let mut job = Job::track(in_box, &["never started"]);
        finish(job.id);
        let ended = job.event("ended");
        assert_eq!(ended["left_running"], serde_json::json!([]), "{ended}");
        assert_eq!(ended["escaped"], 0, "{ended}");
    }
}

#[test]
fn an_agent_that_is_gone_cannot_be_tracked() {
    let gone = support::dead_key();
    let call = TrackedCall { agent_pid: gone.pid, texts: Vec::new(), oom_score_adj: 0 };
    let in_box = every_box(roomy()).remove(0);
    assert!(track(call, Entrance::from(in_box.job_box), None).is_err());
}

#[test]
fn a_text_is_found_whatever_quotes_are_around_it() {
    let command = r#"npm test -- --grep "it's \$5""#;
    let inside = format!("bash -c eval '{}'", command.replace('\'', r#"'"'"'"#));
    assert!(squash(&inside).contains(&squash(command)));
    assert!(!squash("npm run test").contains(&squash("npm test")));
}

#[test]
fn newcomers_are_new_processes_and_no_threads() {
    let proc = system();
    let before = support::Kid::idle();
    let mut newcomers = Newcomers::from_now(&proc);
    let kid = support::Kid::idle();
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv());
    let mut seen = Vec::new();
    wait_until("the new one is seen", || {
        seen.extend(newcomers.look(&proc).into_iter().map(|stat| stat.pid));
        seen.contains(&kid.pid())
    });
    drop(stop);
    let _ended = thread.join().unwrap();
    assert!(!seen.contains(&std::process::id().cast_signed()));
    // Start times count in ticks of 10 ms: who came just before may be among them, an older one is not.
    assert!(before.key().start_ticks + 2 >= kid.key().start_ticks || !seen.contains(&before.pid()));
}
