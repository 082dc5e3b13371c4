//! Starts a job and the thread that stays with it, and looks after jobs that somebody else started.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::job::entrance::{Entered, Entrance, Registration};
use crate::job::events::EventSink;
use crate::job::kernel_log::KernelLog;
use crate::job::spawn::{Command, SpawnError};
use crate::job::watch::Watch;
use crate::job::watched::{JOB_VARIABLE, Watched, job_mark};
use crate::job::{LeftProcess, UserspaceCap};
use crate::journal::Record;
use crate::proc::{ProcFs, ProcessKey};
use crate::process::{PidFd, SignalForwarder, reap};

/// How a job is looked after.
#[derive(Debug, Default)]
pub struct Supervision {
    /// Puts the job on record when it starts.
    pub registration: Option<Registration>,
    /// A record of the job that is there already.
    pub record: Option<Record>,
    /// Passes this process's signals on to the command.
    pub forwarder: Option<SignalForwarder>,
    /// This process is the parent of the job's orphans and collects them.
    pub collects_orphans: bool,
}

/// A started job under supervision.
#[derive(Debug)]
pub struct RunningJob {
    /// The command's process number.
    pub pid: i32,
    /// Its identity.
    pub id: crate::boxing::BoxId,
    /// The cgroup that carries its limits.
    pub cgroup: Option<PathBuf>,
    /// Why it is not on record, when it should be.
    pub record_problem: Option<Error>,
    /// The reading end of the event lines; closed by the thread after the last one.
    pub events: OwnedFd,
    /// Our ends of the pipes that were asked for.
    pub pipes: [Option<OwnedFd>; 3],
    /// A handle for signals.
    pub process: Arc<PidFd>,
}

/// Starts a command in its box and a thread that stays with it.
pub fn start(
    mut command: Command,
    entrance: impl Into<Entrance>,
    mut supervision: Supervision,
) -> Result<RunningJob, SpawnError> {
    let proc = ProcFs::system()?;
    let entrance = entrance.into();
    command.env.retain(|(name, _)| name != JOB_VARIABLE);
    let mark = job_mark(entrance.id());
    command.env.extend(mark.split_once('=').map(|(name, value)| (name.into(), value.into())));
    let (reader, writer) = UnixStream::pair().map_err(|e| Error::call("socketpair", e))?;
    let kernel_log = KernelLog::from_now();
    let began = Instant::now();

    let own_pid = std::process::id().cast_signed();
    let had_before = proc.children(own_pid).ok().flatten().unwrap_or_default();
    let entered = entrance.spawn(&proc, &command, supervision.registration.as_ref());
    let Entered { spawned, job_box, record } = entered.inspect_err(|_| {
        if let Some(record) = supervision.record.take() {
            record.erase();
        }
    })?;
    let mut record_problem = None;
    match record {
        Some(Ok(record)) => supervision.record = Some(record),
        Some(Err(error)) => record_problem = Some(error),
        None => {}
    }
    let (process, root) = match take_hold(&proc, spawned.pid, supervision.forwarder.as_ref()) {
        Ok(held) => held,
        Err(error) => {
            end_unsupervised(spawned.pid);
            let _swept_later_if_it_fails = job_box.kill_all().and_then(|_| job_box.remove());
            if let Some(record) = supervision.record.take() {
                record.erase();
            }
            return Err(error.into());
        }
    };
    if let (Some(record), Some(root)) = (&mut supervision.record, root) {
        record.set_root(root);
    }
    let (id, cgroup) = (job_box.id(), job_box.cgroup_path());
    let mut watched = Watched::new(job_box.id(), root);
    if supervision.collects_orphans {
        watched.inherit_orphans(had_before.into_iter().chain(job_box.guard_pid()).collect());
    }
    let watch = Watch::new(proc, job_box, supervision, watched, EventSink::new(writer), began)
        .of_own_child(spawned.pid)
        .with_kernel_log(kernel_log);
    let handle = Arc::clone(&process);
    std::thread::Builder::new().name("headroom-job".to_owned()).spawn(move || watch.stay(&handle)).map_err(|e| {
        end_unsupervised(spawned.pid);
        Error::call("thread", e)
    })?;
    let events = reader.into();
    Ok(RunningJob { pid: spawned.pid, id, cgroup, events, pipes: spawned.pipes, process, record_problem })
}

/// A handle on a new child, and its signals. The child is not collected before the watch does it, so the
/// number is its own until then.
fn take_hold(proc: &ProcFs, pid: i32, forwarder: Option<&SignalForwarder>) -> Result<(Arc<PidFd>, Option<ProcessKey>)> {
    let process = Arc::new(PidFd::open(pid)?);
    let root = proc.stat(pid)?.map(|stat| stat.key());
    if let Some(forwarder) = forwarder {
        forwarder.set_target(PidFd::open(pid)?);
    }
    Ok((process, root))
}

/// Ends a child that nobody can look after: told as not started, it must not go on running.
fn end_unsupervised(pid: i32) {
    if let Some(raw) = rustix::process::Pid::from_raw(pid) {
        let _gone_is_fine = rustix::process::kill_process(raw, rustix::process::Signal::KILL);
    }
    let deadline = Instant::now() + Duration::from_secs(1);
    while matches!(reap(pid), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes of a job that somebody else started, by what is on record about it.
#[must_use]
pub fn members_of(
    proc: &ProcFs,
    id: crate::boxing::BoxId,
    root: Option<ProcessKey>,
    sessions: &[ProcessKey],
) -> Vec<LeftProcess> {
    let mut watched = Watched::on_record(proc, id, root, sessions);
    watched.look_at_all(proc);
    watched.left_running(proc)
}

/// Enforces the cap of a `userspace` job that somebody else started, until its last process has ended.
pub(crate) fn guard_orphan(
    id: crate::boxing::BoxId,
    root: Option<ProcessKey>,
    sessions: &[ProcessKey],
    memory_bytes: u64,
    swap_bytes: Option<u64>,
) {
    let Ok(proc) = ProcFs::system() else { return };
    let mut watched = Watched::on_record(&proc, id, root, sessions);
    let mut cap = UserspaceCap::new(memory_bytes, swap_bytes);
    watched.look_at_all(&proc);
    while watched.members().any(|key| proc.is_alive(key)) {
        let (_, pause) = cap.tick(&proc, &mut watched);
        std::thread::sleep(pause);
    }
}
