//! Taking over a job whose starter is gone: from then on it is watched, and accounted for, as if it were ours.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::boxing::{BoxId, JobBox, Limits, Mode};
use crate::cgroup::Limit;
use crate::error::{Error, Result};
use crate::job::events::EventSink;
use crate::job::kernel_log::KernelLog;
use crate::job::supervise::Supervision;
use crate::job::watch::{Root, Watch};
use crate::job::watched::Watched;
use crate::journal::{Record, RuntimeDir, own_cgroup_path};
use crate::proc::{ProcFs, ProcessKey};
use crate::process::PidFd;
use crate::systemd::{Bus, guard_pool_of};

/// The reading end of the job's event lines, as `start` gives it; `None` when there is no such job, or somebody looks
/// after it. A job whose processes have all ended is accounted for at once.
pub fn resume(runtime: &Arc<RuntimeDir>, id: BoxId) -> Result<Option<OwnedFd>> {
    let proc = ProcFs::system()?;
    let Some(record) = Record::take_over(Arc::clone(runtime), &proc, id)? else { return Ok(None) };
    let facts = record.facts();
    let limits = Limits { memory_bytes: facts.memory_bytes, swap: facts.swap_bytes.map_or(Limit::Max, Limit::Bytes) };
    let mode = facts.mode;
    let cgroup = own_cgroup_path(id, facts);
    if facts.cgroup.is_some() && cgroup.is_none_or(|path| !path.is_dir()) {
        // Its box is gone, and with it everything that could be told.
        record.erase();
        return Ok(None);
    }
    let job_box = JobBox::reopen(mode, id, limits, cgroup)?;
    let job_box = match mode {
        Mode::SystemdUser => guard_pool_of(Bus::User, job_box)?,
        Mode::SystemdSystem => guard_pool_of(Bus::System, job_box)?,
        _ => job_box,
    };
    let root = facts.root.filter(|key| proc.is_alive(*key));
    let began = began(facts.root);
    let process = root.and_then(|key| PidFd::open_exactly(&proc, key).ok());
    let mut watched = Watched::new(id, root);
    if let Some(leader) = facts.root {
        watched.include_session(leader);
    }
    let (reader, writer) = UnixStream::pair().map_err(|e| Error::call("socketpair", e))?;
    let watch = Watch::begin(
        proc,
        process.map_or(Root::Gone, |process| Root::Foreign { process }),
        job_box,
        watched,
        Supervision { record: Some(record), ..Supervision::default() },
        KernelLog::from_now(),
        EventSink::new(writer),
        began,
    );
    let thread = std::thread::Builder::new().name("headroom-job".to_owned());
    thread.spawn(move || watch.stay()).map_err(|e| Error::call("thread", e))?;
    Ok(Some(reader.into()))
}

fn began(root: Option<ProcessKey>) -> Instant {
    let now = Instant::now();
    root.and_then(|key| now.checked_sub(Duration::from_millis(key.age_ms()))).unwrap_or(now)
}
