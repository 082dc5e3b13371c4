//! What the test files share: fixtures, fake /proc folders, and guards that clean up when a test fails.
#![allow(dead_code, reason = "each test file uses its own part of this")]

pub mod agent;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as StdCommand, Stdio as StdStdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use headroom_core::boxing::{BoxId, JobBox, Limits, Mode, Placement, Verdict, probe};
use headroom_core::cgroup::{Cgroup, Limit, Version};
use headroom_core::job::{Command, RunningJob, SpawnError, Stdio, Supervision, members_of, start};
use headroom_core::proc::{ProcFs, ProcessKey};
use headroom_core::process::{Ending, PidFd, reap};
use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for what must happen before it gives up. Nothing is concluded from the time taken.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub const MIB: u64 = 1 << 20;

/// A file or folder of `tests/fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub fn system() -> ProcFs {
    ProcFs::system().unwrap()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says why a test proves nothing on this machine.
#[allow(clippy::print_stderr, reason = "the reason of a skip belongs into the test's output")]
pub fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Waits for what must become true.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes a file and the folders above it.
pub fn put(root: &Path, file: &str, content: impl AsRef<[u8]>) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A temporary folder shaped like /proc.
pub struct FakeProc {
    dir: TempDir,
}

impl FakeProc {
    pub fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    #[must_use]
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        put(self.dir.path(), name, content);
        self
    }

    /// A process of which only the stat file matters.
    #[must_use]
    pub fn process(self, pid: i32, parent: i32, state: char) -> Self {
        let stat = stat_line(pid, b"fake", state, parent);
        self.file(&format!("{pid}/stat"), stat)
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn open(&self) -> ProcFs {
        ProcFs::at(self.dir.path()).unwrap()
    }
}

/// A stat line as the kernel writes it; group 7, session 8, start time 1000 + pid, 250 resident pages.
pub fn stat_line(pid: i32, name: &[u8], state: char, parent: i32) -> Vec<u8> {
    let mut line = format!("{pid} (").into_bytes();
    line.extend_from_slice(name);
    let start = 1000 + pid;
    let rest =
        format!(") {state} {parent} 7 8 0 -1 4194304 0 0 0 0 1 2 0 0 20 0 1 0 {start} 4096 250 18446744073709551615\n");
    line.extend_from_slice(rest.as_bytes());
    line
}

/// A child of this process that is killed and collected in the end.
pub struct Kid(pub Child);

impl Kid {
    /// A process that does nothing until it is killed or its standard input is closed.
    pub fn idle() -> Self {
        Self(StdCommand::new("cat").stdin(StdStdio::piped()).stdout(StdStdio::null()).spawn().unwrap())
    }

    pub fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    pub fn key(&self) -> ProcessKey {
        system().living(self.pid()).unwrap().unwrap()
    }

    /// Kills it and leaves it uncollected.
    pub fn become_zombie(&mut self) {
        self.0.kill().unwrap();
        let handle = PidFd::open(self.pid()).unwrap();
        wait_until("the killed child has ended", || handle.wait(Duration::from_millis(100)).unwrap());
    }
}

impl Drop for Kid {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _collected_already = self.0.wait();
    }
}

/// The key of a process that has ended and was collected.
pub fn dead_key() -> ProcessKey {
    let mut kid = Kid::idle();
    let key = kid.key();
    kid.0.kill().unwrap();
    kid.0.wait().unwrap();
    key
}

/// An identity whose maker is dead.
pub fn dead_id() -> BoxId {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    BoxId { owner: dead_key(), sequence: NEXT.fetch_add(1, Ordering::Relaxed) }
}

/// What this machine allows, found out once a test program.
pub fn verdicts() -> &'static [Verdict] {
    static VERDICTS: OnceLock<Vec<Verdict>> = OnceLock::new();
    VERDICTS.get_or_init(|| probe(&system()))
}

/// The best place for boxes with a kernel limit, or why there is none. Those of systemd's pools are made with
/// their first job, not beforehand.
pub fn kernel_placement() -> Result<Placement, String> {
    let kernel = || verdicts().iter().filter(|verdict| matches!(verdict.mode, Mode::Cgroup2 | Mode::Cgroup1));
    let found = kernel().find_map(|verdict| verdict.outcome.as_ref().ok());
    found.cloned().ok_or_else(|| {
        let reasons =
            kernel().filter_map(|verdict| Some(format!("{}: {}", verdict.mode, verdict.outcome.as_ref().err()?.1)));
        format!("no box with a kernel limit can be made here ({})", reasons.collect::<Vec<_>>().join("; "))
    })
}

/// A cgroup of one test, below which it makes its boxes. Everything in it is killed and removed in the end.
pub struct TestBase {
    pub placement: Placement,
    parent: Cgroup,
    name: String,
}

impl TestBase {
    /// `None` where the machine allows no kernel limit; the reason is printed.
    pub fn kernel() -> Option<Self> {
        match kernel_placement() {
            Ok(placement) => Some(Self::below(&placement)),
            Err(reason) => {
                skipped(&reason);
                None
            }
        }
    }

    fn below(placement: &Placement) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let version = Placement::version(placement.mode);
        let parent = Cgroup::open(placement.base.as_ref().unwrap(), version).unwrap();
        let name = format!("headroom-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let base = parent.make_child(&name).unwrap();
        let placement = Placement { mode: placement.mode, base: Some(base.path().to_path_buf()) };
        let made = Self { placement, parent, name };
        if version == Version::V2 {
            base.dir().write("cgroup.subtree_control", "+memory").unwrap();
        }
        made
    }

    pub fn path(&self) -> &Path {
        self.placement.base.as_deref().unwrap()
    }

    pub fn version(&self) -> Version {
        Placement::version(self.placement.mode)
    }

    pub fn make_box(&self, limits: Limits) -> JobBox {
        self.placement.make_box(BoxId::new(&system()).unwrap(), limits).unwrap()
    }

    /// Names of the cgroups in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path())
            .unwrap()
            .map(Result::unwrap)
            .filter(|e| e.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for TestBase {
    fn drop(&mut self) {
        if let Ok(base) = Cgroup::open(self.path(), self.version()) {
            let inside = base.pids().unwrap_or_default();
            let _stuck_is_told_below = base.kill_all();
            for pid in inside {
                let _only_ours_can_be_collected = reap(pid);
            }
        }
        let removed = self.parent.remove_child(&self.name);
        if !std::thread::panicking() {
            assert_eq!(removed.ok(), Some(true), "{} could not be removed", self.path().display());
        }
    }
}

/// Kills, in the end, every process that carries the mark of a job.
pub struct KillMarked(pub BoxId);

impl Drop for KillMarked {
    fn drop(&mut self) {
        let proc = system();
        let mark = format!("HEADROOM_JOB_ID={}", self.0);
        for process in members_of(&proc, self.0, None, &[]) {
            if let Ok(handle) = PidFd::open(process.pid)
                && proc.has_environment(process.pid, &mark)
            {
                let _ended_already = handle.signal(libc::SIGKILL);
                let _collected_by_its_parent = handle.wait(PATIENCE);
            }
        }
    }
}

/// A child that was started by `spawn()` or `start()`; killed and collected in the end.
pub struct Spawn(pub i32);

impl Spawn {
    /// Waits for its end.
    pub fn ending(&self) -> Ending {
        let handle = PidFd::open(self.0).unwrap();
        wait_until("the command has ended", || handle.wait(Duration::from_millis(100)).unwrap());
        reap(self.0).unwrap().unwrap()
    }
}

impl Drop for Spawn {
    fn drop(&mut self) {
        // Still our child or gone: as long as it is not collected its number is its own.
        if matches!(reap(self.0), Ok(None))
            && let Ok(handle) = PidFd::open(self.0)
        {
            let _ended_meanwhile = handle.signal(libc::SIGKILL);
            let _collected_below = handle.wait(PATIENCE);
            let _collected = reap(self.0);
        }
    }
}

/// Limits that no test of this crate comes near.
pub fn roomy() -> Limits {
    Limits { memory_bytes: 512 * MIB, swap: Limit::Bytes(0) }
}

pub fn userspace_box(limits: Limits) -> JobBox {
    let placement = Placement { mode: Mode::Userspace, base: None };
    placement.make_box(BoxId::new(&system()).unwrap(), limits).unwrap()
}

/// A box of one test, and what removes it.
pub struct TestBox {
    pub job_box: JobBox,
    pub base: Option<TestBase>,
}

/// A userspace box, and the best one with a kernel limit where the machine allows it.
pub fn every_box(limits: Limits) -> Vec<TestBox> {
    let mut boxes = vec![TestBox { job_box: userspace_box(limits), base: None }];
    boxes.extend(TestBase::kernel().map(|base| TestBox { job_box: base.make_box(limits), base: Some(base) }));
    boxes
}

/// This process's PATH without folders that it may not enter: the C library takes a program that it does
/// not find for a forbidden one when it meets such a folder.
fn path_variable() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::join_paths(std::env::split_paths(&path).filter(|dir| dir.join(".").is_dir())).unwrap()
}

/// A command with this process's PATH and nothing on its standard streams.
pub fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), path_variable())],
        cwd: None,
        stdio: [Stdio::Null; 3],
        oom_score: None,
    }
}

/// A shell command.
pub fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

/// A supervised job; what is left of it is killed in the end.
pub struct Supervised {
    pub running: RunningJob,
    pub id: BoxId,
    pub cgroup: Option<PathBuf>,
    _marked: KillMarked,
    // After the processes are gone.
    pub base: Option<TestBase>,
}

impl Supervised {
    pub fn start(in_box: TestBox, command: Command, supervision: Supervision) -> Result<Self, SpawnError> {
        let (id, cgroup) = (in_box.job_box.id(), in_box.job_box.cgroup_path());
        let running = start(command, in_box.job_box, supervision)?;
        Ok(Self { running, id, cgroup, _marked: KillMarked(id), base: in_box.base })
    }

    /// A pipe to or from the command.
    pub fn pipe(&mut self, stream: usize) -> fs::File {
        self.running.pipes[stream].take().unwrap().into()
    }

    /// The first line that the command writes.
    pub fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.pipe(1)).read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Every event until the account is closed.
    pub fn events(&self) -> Vec<Value> {
        let mut socket = UnixStream::from(self.running.events.try_clone().unwrap());
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The last event.
    pub fn ended(&self) -> Value {
        let last = self.events().pop().unwrap();
        assert_eq!(last["event"], "ended");
        last
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ended_already = self.running.process.signal(libc::SIGKILL);
    }
}
