//! Starting a job, and the signals of the process that runs it.

use std::ffi::OsString;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;

use headroom_core::boxing::{BoxId, Limits, Mode};
use headroom_core::cgroup::Limit;
use headroom_core::job::{Command, Entrance, Registration, SpawnError, Stdio, Supervision, start};
use headroom_core::journal::RuntimeDir;
use headroom_core::proc::ProcFs;
use headroom_core::process::{OomScore, PidFd, SignalForwarder, become_subreaper, own_oom_score_adj as core_score};
use headroom_core::systemd::{Bus, Pool, UnitLimits};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::error::{bad_argument, bytes, thrown};
use crate::modes::placement;

/// Where a job is held, and its limits.
#[napi(object, object_to_js = false, use_nullable = true)]
pub struct JobPlace {
    /// A mode and its base, as `probeModes` gave them.
    pub mode: String,
    /// See `mode`.
    pub base: Option<String>,
    /// The job's memory limit.
    pub memory_bytes: f64,
    /// Swap beyond it; `null` is unlimited.
    pub swap_bytes: Option<f64>,
    /// What all jobs of a systemd pool may use together; it counts when the pool is made.
    pub pool_memory_bytes: f64,
    /// Swap of the pool; `null` is unlimited.
    pub pool_swap_bytes: Option<f64>,
}

/// What to start. The environment is this process's own, changed by `env`.
#[napi(object, object_to_js = false, use_nullable = true)]
pub struct JobCommand {
    /// The program and its words, as bytes: words need not be UTF-8.
    pub argv: Vec<Buffer>,
    /// Variables to set, as `[name, value]`.
    pub env: Vec<Vec<String>>,
    /// Working directory; `null` is this process's own.
    pub cwd: Option<String>,
    /// stdin, stdout, stderr: `inherit`, `null` or `pipe`.
    pub stdio: Vec<String>,
    /// Value to raise the job's `oom_score_adj` to; a lower one than ours changes nothing.
    pub oom_score_adj: i32,
}

/// How the job is looked after.
#[napi(object, object_to_js = false, use_nullable = true)]
pub struct JobSupervision {
    /// A runtime directory (from `runtimeDirectory`) in which the job goes on record.
    pub runtime_dir: Option<String>,
    /// The command as it stands on record, secrets masked.
    pub command_text: String,
    /// The kind of work, as it stands on record.
    pub kind: String,
    /// Whether this process has called `collectOrphans`.
    pub collects_orphans: bool,
}

/// A started job, or why it did not start.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct JobStart {
    /// The command's process; `null` when it did not start.
    pub pid: Option<i32>,
    /// The job's identity.
    pub id: Option<String>,
    /// The cgroup that carries its limits.
    pub cgroup: Option<String>,
    /// A descriptor with one JSON line an event, now the caller's to close.
    pub events_fd: Option<i32>,
    /// Our ends of the pipes that were asked for, now the caller's to close.
    pub pipe_fds: Vec<Option<i32>>,
    /// Why not: `not-found`, `not-executable`, `working-directory`, `box` (nothing was started, another
    /// mode may do) or `failed`.
    pub failure: Option<String>,
    /// Why not, for people.
    pub message: Option<String>,
    /// The job is not on record: why.
    pub record_problem: Option<String>,
}

/// Makes a box and starts a command in it, with a thread that stays with it. The box is removed when its
/// last process has ended.
#[napi(catch_unwind)]
pub fn start_job(
    place: JobPlace,
    command: JobCommand,
    supervision: JobSupervision,
    signals: Option<&SignalPassing>,
) -> napi::Result<JobStart> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    let command = core_command(command, &proc)?;
    let cwd = command.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let collects_orphans = supervision.collects_orphans;
    let OnRecord { registration, problem } = on_record(supervision, cwd.display().to_string());
    let runtime = registration.as_ref().map(|registration| &registration.runtime);
    let entrance = match entrance(&proc, place, runtime)? {
        Ok(entrance) => entrance,
        Err(error) => return Ok(JobStart::failed("box", error.to_string())),
    };
    let forwarder = signals.map(|signals| signals.inner.clone());
    let supervision = Supervision { registration, record: None, forwarder, collects_orphans };
    Ok(match start(command, entrance, supervision) {
        Ok(job) => JobStart {
            pid: Some(job.pid),
            id: Some(job.id.to_string()),
            cgroup: job.cgroup.map(|path| path.display().to_string()),
            events_fd: Some(job.events.into_raw_fd()),
            pipe_fds: job.pipes.into_iter().map(|pipe| pipe.map(OwnedFd::into_raw_fd)).collect(),
            failure: None,
            message: None,
            record_problem: problem.or_else(|| job.record_problem.map(|error| error.with_advice())),
        },
        Err(error) => JobStart::failed(failure_word(&error), error.to_string()),
    })
}

/// Where a job goes on record, or why it cannot.
pub(crate) struct OnRecord {
    pub(crate) registration: Option<Registration>,
    pub(crate) problem: Option<String>,
}

pub(crate) fn on_record(supervision: JobSupervision, cwd: String) -> OnRecord {
    let (runtime, problem) = match supervision.runtime_dir.as_ref().map(|dir| RuntimeDir::at(Path::new(dir))) {
        Some(Ok(runtime)) => (Some(Arc::new(runtime)), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    let (command, kind) = (supervision.command_text, supervision.kind);
    let registration = runtime.map(|runtime| Registration { runtime, command, kind, cwd });
    OnRecord { registration, problem }
}

impl JobStart {
    pub(crate) fn failed(failure: &str, message: String) -> Self {
        Self {
            pid: None,
            id: None,
            cgroup: None,
            events_fd: None,
            pipe_fds: Vec::new(),
            failure: Some(failure.to_owned()),
            message: Some(message),
            record_problem: None,
        }
    }
}

/// A wrong argument throws; a box that cannot be made is a value.
pub(crate) fn entrance(
    proc: &ProcFs,
    place: JobPlace,
    runtime: Option<&Arc<RuntimeDir>>,
) -> napi::Result<headroom_core::Result<Entrance>> {
    let swap =
        |swap_bytes: Option<f64>| swap_bytes.map(bytes).transpose().map(|some| some.map_or(Limit::Max, Limit::Bytes));
    let limits = Limits { memory_bytes: bytes(place.memory_bytes)?, swap: swap(place.swap_bytes)? };
    let pool_limits = UnitLimits { memory_bytes: bytes(place.pool_memory_bytes)?, swap: swap(place.pool_swap_bytes)? };
    let placement = placement(&place.mode, place.base)?;
    let id = match BoxId::new(proc) {
        Ok(id) => id,
        Err(error) => return Ok(Err(error)),
    };
    let bus = match placement.mode {
        Mode::SystemdUser => Bus::User,
        Mode::SystemdSystem => Bus::System,
        _ => return Ok(placement.make_box(id, limits).map(Entrance::from)),
    };
    let pool = Pool { bus, limits: pool_limits, runtime: runtime.map(Arc::clone) };
    Ok(Ok(Entrance::Pool { pool, id, limits }))
}

fn core_command(command: JobCommand, proc: &ProcFs) -> napi::Result<Command> {
    let stdio: Vec<Stdio> = command.stdio.iter().map(|word| stdio(word)).collect::<napi::Result<_>>()?;
    let stdio = <[Stdio; 3]>::try_from(stdio).map_err(|_| bad_argument("stdio takes three words"))?;
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for pair in command.env {
        let [name, value] = <[String; 2]>::try_from(pair).map_err(|_| bad_argument("env takes pairs"))?;
        env.retain(|(known, _)| *known != *name);
        env.push((name.into(), value.into()));
    }
    let own = core_score(proc).unwrap_or(0);
    Ok(Command {
        argv: command.argv.into_iter().map(|word| OsString::from_vec(word.to_vec())).collect(),
        env,
        cwd: command.cwd.map(Into::into),
        stdio,
        oom_score: OomScore::raise(own, command.oom_score_adj),
    })
}

fn stdio(word: &str) -> napi::Result<Stdio> {
    match word {
        "inherit" => Ok(Stdio::Inherit),
        "null" => Ok(Stdio::Null),
        "pipe" => Ok(Stdio::Pipe),
        other => Err(bad_argument(format!("stdio {other:?} is not inherit, null or pipe"))),
    }
}

fn failure_word(error: &SpawnError) -> &'static str {
    match error {
        SpawnError::NotFound { .. } | SpawnError::NoInterpreter { .. } => "not-found",
        SpawnError::NotExecutable { .. } => "not-executable",
        SpawnError::WorkingDirectory { .. } => "working-directory",
        SpawnError::Box { .. } => "box",
        SpawnError::Other(_) => "failed",
    }
}

/// The runtime directory of this user, or what is wrong with it.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct RuntimeDirectory {
    /// Its path; `null` when it cannot be used.
    pub path: Option<String>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

/// Finds, makes and checks the runtime directory of this user.
#[napi(catch_unwind)]
#[must_use]
pub fn runtime_directory() -> RuntimeDirectory {
    let variable = std::env::var_os("XDG_RUNTIME_DIR");
    match RuntimeDir::open(variable.as_deref().map(Path::new)) {
        Ok(dir) => RuntimeDirectory { path: Some(dir.path().display().to_string()), problem: None },
        Err(error) => RuntimeDirectory { path: None, problem: Some(error.with_advice()) },
    }
}

/// This process's own `oom_score_adj`.
#[napi(catch_unwind)]
pub fn own_oom_score_adj() -> napi::Result<i32> {
    ProcFs::system().and_then(|proc| core_score(&proc)).map_err(|e| thrown(&e))
}

/// Makes this process the parent of its descendants' orphans, and its jobs' threads collect them. Only
/// for a process that starts no children but through `startJob`.
#[napi(catch_unwind)]
pub fn collect_orphans() -> napi::Result<()> {
    become_subreaper().map_err(|e| thrown(&e))
}

/// The last words of this process's own command line, as bytes. Node decodes them as UTF-8, which loses
/// those that are not.
#[napi(catch_unwind)]
#[must_use]
pub fn last_own_arguments(count: u32) -> Vec<Buffer> {
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<&[u8]> = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0).collect();
    let skipped = words.len().saturating_sub(count as usize);
    words.into_iter().skip(skipped).map(Buffer::from).collect()
}

/// Sends a signal to a process through a pidfd; `false` when it is gone.
#[napi(catch_unwind)]
pub fn signal_process(pid: i32, signal: i32) -> napi::Result<bool> {
    match PidFd::open(pid).and_then(|process| process.signal(signal)) {
        Ok(()) => Ok(true),
        Err(headroom_core::Error::Gone { .. }) => Ok(false),
        Err(error) => Err(thrown(&error)),
    }
}

/// Signals of this process, caught and passed on to its job. Replaces the host's handlers of SIGINT,
/// SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH: only for a process that is all ours.
#[napi]
pub struct SignalPassing {
    inner: SignalForwarder,
}

#[napi]
impl SignalPassing {
    /// Catches from now on; what comes before a job starts is passed on when it does.
    #[napi(factory, catch_unwind)]
    pub fn install() -> napi::Result<Self> {
        SignalForwarder::install().map(|inner| Self { inner }).map_err(|e| thrown(&e))
    }

    /// The last signal that asked this process to end; `null` when none did.
    #[napi(catch_unwind)]
    #[must_use]
    pub fn last_ending_signal(&self) -> Option<i32> {
        self.inner.last_ending_signal()
    }
}
