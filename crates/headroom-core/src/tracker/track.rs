//! Makes a call's box and starts the thread that stays with the call.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

use crate::boxing::BoxId;
use crate::error::{Error, Result};
use crate::job::{Entrance, EventSink, KernelLog, Supervision, Watch, Watched};
use crate::journal::Record;
use crate::proc::ProcFs;
use crate::process::{PidFd, react_at_once};
use crate::tracker::call::squash;
use crate::tracker::halt::Released;
use crate::tracker::newcomers::Newcomers;
use crate::tracker::registry::Entry;
use crate::tracker::relatives::Surroundings;
use crate::tracker::search::Search;
use crate::tracker::stay::Tracker;
use crate::tracker::{TrackedCall, stop_guard};

/// Priority of the thread; only root may have it.
const NICENESS: i32 = -15;

/// A call whose command is looked for.
#[derive(Debug)]
pub struct Tracked {
    /// The job's identity; [`finish`](crate::tracker::finish) takes it.
    pub id: BoxId,
    /// The cgroup that carries its limits.
    pub cgroup: Option<PathBuf>,
    /// Why it is not on record, when it should be.
    pub record_problem: Option<Error>,
    /// The reading end of the event lines; closed by the thread after the last one.
    pub events: OwnedFd,
}

/// Why a call is not tracked.
#[derive(Debug, thiserror::Error)]
pub enum TrackError {
    /// Its box could not be made. Another mode may do.
    #[error(transparent)]
    Box(Error),
    /// The agent is gone or another user's, or this process lacks what it needs.
    #[error(transparent)]
    Other(#[from] Error),
}

/// Makes a call's box, puts the job on record and looks for the call's command from then on: start it after this
/// has returned. A command that is not found, or does not get in, runs as it would have without.
pub fn track(
    call: TrackedCall,
    entrance: impl Into<Entrance>,
    mut supervision: Supervision,
) -> Result<Tracked, TrackError> {
    let entrance = entrance.into();
    let proc = ProcFs::system()?;
    let Some(around) = Surroundings::of(&proc, call.agent)? else { return Err(Error::Gone { pid: call.agent }.into()) };
    if !around.is_of_this_user() {
        return Err(Error::call("tracking a process of another user", rustix::io::Errno::PERM).into());
    }
    let agent = PidFd::open(call.agent)?;
    let (reader, writer) = UnixStream::pair().map_err(|e| Error::call("socketpair", e))?;
    let texts: Vec<Vec<u8>> = call.texts.iter().map(|text| squash(text.as_bytes())).filter(|t| !t.is_empty()).collect();
    let entry = Entry::new(entrance.id(), call.agent, texts.clone())?;
    let (job_box, record) = entrance.prepare(&proc, supervision.registration.as_ref()).map_err(TrackError::Box)?;
    let mut record_problem = None;
    match record {
        Some(Ok(record)) => supervision.record = Some(record),
        Some(Err(error)) => record_problem = Some(error),
        None => {}
    }
    if job_box.mode().is_kernel_limit() {
        let _then_nothing_is_stopped = stop_guard::ensure();
    }
    let (id, cgroup) = (job_box.id(), job_box.cgroup_path());
    let mut watched = Watched::new(id, None);
    watched.follow_sessions();
    let began = Instant::now();
    let newcomers = match Newcomers::since_now(&proc, call.agent) {
        Ok(newcomers) => newcomers,
        Err(error) => {
            let _swept_later_if_it_fails = job_box.remove();
            supervision.record.take().into_iter().for_each(Record::erase);
            return Err(error.into());
        }
    };
    let search = Search::new(newcomers, around.clone(), texts);
    let watch = Watch::new(proc, job_box, supervision, watched, EventSink::new(writer), began)
        .with_kernel_log(KernelLog::from_now());
    let tracker = Tracker {
        call,
        around,
        agent,
        entry,
        search,
        watch,
        announced: began,
        has_returned: false,
        released: Released::default(),
    };
    let (is_up, wait_for_it) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("headroom-track".to_owned())
        .spawn(move || {
            react_at_once(NICENESS);
            // A new thread waits its turn like any other; a command could be over by then.
            let _nobody_waits_any_more = is_up.send(());
            tracker.stay();
        })
        .map_err(|e| Error::call("thread", e))?;
    let _it_looks = wait_for_it.recv();
    Ok(Tracked { id, cgroup, record_problem, events: reader.into() })
}
