//! Spawn into a box: between fork and exec the child enters the cgroup and raises its own
//! `oom_score_adj`, so whatever it starts is born inside and nothing escapes. Everything the child needs
//! is prepared before the fork; in the child only async-signal-safe calls are made (signal-safety(7)).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as StdCommand, Stdio as StdStdio};
use std::sync::{Mutex, PoisonError};

use crate::boxing::JobBox;
use crate::error::{Error, Result};
use crate::process::{Ending, OomScore};

/// Where one of the three standard streams of a job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdio {
    /// The same as ours.
    #[default]
    Inherit,
    /// Nowhere.
    Null,
    /// A new pipe to us.
    Pipe,
}

impl Stdio {
    fn to_std(self) -> StdStdio {
        match self {
            Self::Inherit => StdStdio::inherit(),
            Self::Null => StdStdio::null(),
            Self::Pipe => StdStdio::piped(),
        }
    }
}

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// The program (looked up on the child's PATH) and its words. Must not be empty.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; ours when `None`.
    pub cwd: Option<PathBuf>,
    /// stdin, stdout, stderr.
    pub stdio: [Stdio; 3],
    /// Value to raise the job's `oom_score_adj` to.
    pub oom_score: Option<OomScore>,
}

/// Why a job did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No such program.
    #[error("{program}: command not found")]
    NotFound {
        /// The word that was looked up.
        program: String,
    },
    /// The program is a script, and the interpreter that its first line names does not exist.
    #[error(
        "{program}: the interpreter that its first line names was not found (a line end of Windows is part of the name)"
    )]
    NoInterpreter {
        /// The word that was looked up.
        program: String,
    },
    /// The program exists and cannot be started.
    #[error("{program}: {source}")]
    NotExecutable {
        /// The word that was looked up.
        program: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The working directory does not exist or may not be entered.
    #[error("{}: {source}", cwd.display())]
    WorkingDirectory {
        /// The directory.
        cwd: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The child could not enter its box; nothing was started.
    #[error("entering the box failed: {source}")]
    Box {
        /// What the kernel answered.
        source: io::Error,
    },
    /// Something else failed; nothing was started.
    #[error(transparent)]
    Other(#[from] Error),
}

/// A started job.
#[derive(Debug)]
pub struct Spawned {
    /// Its process number.
    pub pid: i32,
    /// Our ends of the pipes that were asked for: stdin, stdout, stderr.
    pub pipes: [Option<OwnedFd>; 3],
}

/// The error number a child reports when entering its box failed. No system call answers it for exec, so
/// the two cannot be confused; the real number travels in the report pipe.
const BOX_FAILED: i32 = libc::ENOMEDIUM;

/// Starts a command inside a box that is there.
pub fn spawn(command: &Command, job_box: &JobBox) -> Result<Spawned, SpawnError> {
    let entry = job_box.entry().map_err(|error| match error {
        Error::Io { source, .. } => SpawnError::Box { source },
        other => other.into(),
    })?;
    launch(command, entry.as_ref().map_or(Door::Open, |entry| Door::File(entry.as_raw_fd())))
}

/// Starts a command whose box somebody else must put it into: the child waits before exec until `admit`,
/// which gets its number, has answered.
pub fn spawn_admitted(
    command: &Command,
    admit: impl FnOnce(i32) -> Result<JobBox> + Send,
) -> Result<(Spawned, JobBox), SpawnError> {
    // One at a time: a child at its gate holds copies of every pipe that is open then, and two of them would
    // keep each other waiting when this process dies.
    let _gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| Error::call("pipe2", e));
    let ((pid_reader, pid_writer), (go_reader, go_writer)) = (pipe()?, pipe()?);
    let gate = Gate { pid: pid_writer.as_raw_fd(), go: go_reader.as_raw_fd(), parents_end: go_writer.as_raw_fd() };
    let (spawned, admitted) = std::thread::scope(|scope| {
        let admission = scope.spawn(move || {
            let mut pid = [0; 4];
            io::Read::read_exact(&mut File::from(pid_reader), &mut pid).ok()?;
            let admitted = admit(i32::from_ne_bytes(pid));
            let _the_child_may_be_gone = write_all(go_writer.as_raw_fd(), &[u8::from(admitted.is_ok())]);
            Some(admitted)
        });
        let spawned = launch(command, Door::Gate(gate));
        // Without a child nobody else holds this end: the admission's read ends.
        drop(pid_writer);
        (spawned, admission.join().ok().flatten())
    });
    match (spawned, admitted) {
        (Ok(spawned), Some(Ok(job_box))) => Ok((spawned, job_box)),
        (_, Some(Err(error))) => Err(SpawnError::Box { source: io::Error::other(error.to_string()) }),
        (Err(error), admitted) => {
            if let Some(Ok(job_box)) = admitted {
                let _nothing_is_inside = job_box.remove();
            }
            Err(error)
        }
        (Ok(_), None) => Err(SpawnError::Box { source: io::Error::other("the job was not admitted") }),
    }
}

static GATE: Mutex<()> = Mutex::new(());

/// How a child gets in.
#[derive(Clone, Copy)]
enum Door {
    /// There is nothing to enter.
    Open,
    /// By writing to this `cgroup.procs`.
    File(RawFd),
    /// By waiting for somebody to move it.
    Gate(Gate),
}

#[derive(Clone, Copy)]
struct Gate {
    /// The child tells its number here.
    pid: RawFd,
    /// And waits here for one byte, 1 to go on.
    go: RawFd,
    /// The other end of `go`, closed in the child so that the parent's death ends the wait.
    parents_end: RawFd,
}

fn launch(command: &Command, door: Door) -> Result<Spawned, SpawnError> {
    let Some((program, words)) = command.argv.split_first() else {
        return Err(Error::call("spawn", rustix::io::Errno::INVAL).into());
    };
    let (failure_reader, failure_writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| Error::call("pipe2", e))?;

    let mut child = StdCommand::new(program);
    child.args(words).env_clear().envs(command.env.iter().map(|(name, value)| (name, value)));
    let [stdin, stdout, stderr] = command.stdio;
    child.stdin(stdin.to_std()).stdout(stdout.to_std()).stderr(stderr.to_std());
    if let Some(cwd) = &command.cwd {
        // Checked here because the child's failure to enter it looks like a missing program.
        std::fs::metadata(cwd)
            .and_then(|meta| if meta.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) })
            .and_then(|()| {
                let (here, flags) = (rustix::fs::CWD, rustix::fs::AtFlags::EACCESS);
                rustix::fs::accessat(here, cwd, rustix::fs::Access::EXEC_OK, flags).map_err(io::Error::from)
            })
            .map_err(|source| SpawnError::WorkingDirectory { cwd: cwd.clone(), source })?;
        child.current_dir(cwd);
    }
    let hooks = ChildHooks { door, oom_score: command.oom_score, failure: failure_writer.as_raw_fd() };
    // SAFETY: the closure makes async-signal-safe calls only and allocates nothing.
    unsafe { child.pre_exec(move || hooks.run()) };

    let spawned = child.spawn();
    drop(failure_writer);
    match spawned {
        Ok(child) => Ok(take_apart(child)),
        Err(error) => Err(explain(&error, program, search_path(&command.env), failure_reader)),
    }
}

fn search_path(env: &[(OsString, OsString)]) -> Option<&OsStr> {
    env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())
}

/// Whether a program of this name is somewhere, as the kernel's answer alone does not tell: a directory on
/// PATH that may not be entered gives EACCES, a script without its interpreter ENOENT.
fn is_somewhere(program: &OsStr, search_path: Option<&OsStr>) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return Path::new(program).is_file();
    }
    search_path.is_some_and(|path| std::env::split_paths(path).any(|dir| dir.join(program).is_file()))
}

/// What the child does between fork and exec.
#[derive(Clone, Copy)]
struct ChildHooks {
    door: Door,
    oom_score: Option<OomScore>,
    failure: RawFd,
}

impl ChildHooks {
    fn run(self) -> io::Result<()> {
        default_signals();
        keep_standard_streams();
        let entered = match self.door {
            Door::Open => Ok(()),
            Door::File(entry) => write_all(entry, b"0"),
            Door::Gate(gate) => gate.pass(),
        };
        if let Err(errno) = entered {
            let _reader_may_be_gone = write_all(self.failure, &errno.to_ne_bytes());
            return Err(io::Error::from_raw_os_error(BOX_FAILED));
        }
        if let Some(score) = self.oom_score {
            raise_oom_score(score.as_bytes());
        }
        Ok(())
    }
}

impl Gate {
    fn pass(self) -> Result<(), i32> {
        // SAFETY: this child's own copy of the parent's end, used by nobody in the child.
        unsafe { libc::close(self.parents_end) };
        // SAFETY: asks for a number, cannot fail.
        let pid = unsafe { libc::getpid() };
        write_all(self.pid, &pid.to_ne_bytes())?;
        let mut go = 0_u8;
        // SAFETY: one byte is written to a valid place.
        let got = unsafe { libc::read(self.go, (&raw mut go).cast(), 1) };
        if got == 1 && go == 1 { Ok(()) } else { Err(libc::ECANCELED) }
    }
}

/// Undoes what the host did to signals: handlers would run in the child until exec, and Node ignores
/// SIGXFSZ, which exec would pass on. Other ignored signals stay ignored (nohup).
fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        let mut current = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for the current action only; the pointer is valid. Unknown numbers answer EINVAL.
        let known = unsafe { libc::sigaction(signal, std::ptr::null(), current.as_mut_ptr()) } == 0;
        // SAFETY: zeroed memory is a valid sigaction, filled in by the kernel when `known`.
        let mut current = unsafe { current.assume_init() };
        let is_caught = current.sa_sigaction != libc::SIG_DFL && current.sa_sigaction != libc::SIG_IGN;
        if known && (is_caught || signal == libc::SIGXFSZ) {
            current.sa_sigaction = libc::SIG_DFL;
            current.sa_flags = 0;
            // SAFETY: sets a default action; the pointer is valid.
            unsafe { libc::sigaction(signal, &raw const current, std::ptr::null_mut()) };
        }
    }
}

/// Node marks every descriptor that it inherited as close-on-exec, its standard streams included
/// (`uv_disable_stdio_inheritance`).
fn keep_standard_streams() {
    for fd in 0..=2 {
        // SAFETY: sets a flag of this child's own descriptor; one that is closed answers EBADF.
        unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
    }
}

/// Best effort: a job with a low score is still held by its box.
fn raise_oom_score(digits: &[u8]) {
    // SAFETY: the path is a valid C string.
    let fd = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd >= 0 {
        let _best_effort = write_all(fd, digits);
        // SAFETY: the descriptor was opened above and is used nowhere else.
        unsafe { libc::close(fd) };
    }
}

fn write_all(fd: RawFd, bytes: &[u8]) -> Result<(), i32> {
    // SAFETY: the buffer is valid for its length.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    if written < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)) } else { Ok(()) }
}

fn take_apart(mut child: Child) -> Spawned {
    Spawned {
        pid: child.id().cast_signed(),
        pipes: [
            child.stdin.take().map(OwnedFd::from),
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        ],
    }
}

#[cold]
fn explain(error: &io::Error, word: &OsStr, search_path: Option<&OsStr>, failure: OwnedFd) -> SpawnError {
    let program = if word.is_empty() { "''".to_owned() } else { word.to_string_lossy().into_owned() };
    let has_slash = word.as_encoded_bytes().contains(&b'/');
    let number = error.raw_os_error();
    match number {
        Some(BOX_FAILED) => SpawnError::Box { source: reported_failure(failure) },
        Some(libc::ENOENT) if is_somewhere(word, search_path) => SpawnError::NoInterpreter { program },
        Some(libc::ENOENT | libc::ENOTDIR) => SpawnError::NotFound { program },
        Some(libc::EACCES) if !has_slash && !is_somewhere(word, search_path) => SpawnError::NotFound { program },
        Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) | None => {
            let source =
                number.map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error);
            Error::Call { call: "spawn", source }.into()
        }
        Some(number) => SpawnError::NotExecutable { program, source: io::Error::from_raw_os_error(number) },
    }
}

fn reported_failure(failure: OwnedFd) -> io::Error {
    let mut number = [0; 4];
    match io::Read::read_exact(&mut File::from(failure), &mut number) {
        Ok(()) => io::Error::from_raw_os_error(i32::from_ne_bytes(number)),
        Err(error) => error,
    }
}

/// Reads an [`Ending`] as a shell shows it: 128 and the signal's number.
impl Ending {
    /// The exit code that stands for this ending.
    #[must_use]
    pub fn as_exit_code(self) -> i32 {
        match self {
            Self::ExitCode(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}
