//! Stops a shell with everything it has started, moves all of it into the box, and lets it go on.

use std::time::{Duration, Instant};

use crate::boxing::JobBox;
use crate::error::Result;
use crate::job::Watched;
use crate::proc::{ProcFs, ProcessKey, Stat};
use crate::process::{PidFd, oom_score_adj};
use crate::tracker::call::TrackedCall;
use crate::tracker::newcomers::Newcomers;
use crate::tracker::strays::gather;
use crate::tracker::waker;

/// All of it may take so long; then it goes on as it is.
const PATIENCE: Duration = Duration::from_millis(500);
/// After so many looks that find nobody new everybody is there.
const QUIET_LOOKS: u32 = 2;
const PAUSE: Duration = Duration::from_micros(200);

/// Members that stand still until this is dropped; those that stood still before stay so.
struct Standstill {
    handles: Vec<PidFd>,
    /// Others that are stopped at the same time must not be forgotten with these.
    _alone: std::sync::MutexGuard<'static, ()>,
}

static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

impl Standstill {
    fn begin() -> Self {
        Self { handles: Vec::new(), _alone: ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) }
    }

    fn stop(&mut self, proc: &ProcFs, key: ProcessKey) {
        let runs = proc.stat(key.pid).is_ok_and(|stat| stat.is_some_and(|stat| !matches!(stat.state, 'T' | 't' | 'Z')));
        if let (true, Ok(handle)) = (runs, PidFd::open_exactly(proc, key))
            && waker::remember(key.pid).is_ok()
            && handle.signal(libc::SIGSTOP).is_ok()
        {
            self.handles.push(handle);
        }
    }

    fn all_stand(&self, proc: &ProcFs) -> bool {
        self.handles.iter().all(|handle| {
            proc.stat(handle.pid())
                .is_ok_and(|stat| stat.is_none_or(|stat| matches!(stat.state, 'T' | 't' | 'Z' | 'X')))
        })
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        // Children first: a parent that sees a child stopped may stop itself (script does).
        for handle in self.handles.iter().rev() {
            let _gone_is_fine = handle.signal(libc::SIGCONT);
        }
        waker::forget();
    }
}

/// How the entering went.
#[derive(Debug)]
pub(super) struct Moved {
    /// So many processes were moved.
    pub(super) count: usize,
    /// Why one could not be moved, the first time.
    pub(super) problem: Option<crate::error::Error>,
}

/// Moves the members that are outside, and those that they start meanwhile.
pub(super) fn enter(
    proc: &ProcFs,
    job_box: &JobBox,
    watched: &mut Watched,
    (newcomers, unknown): (&mut Newcomers, &mut Vec<Stat>),
    call: &TrackedCall,
) -> Moved {
    let mut still = Standstill::begin();
    let deadline = Instant::now() + PATIENCE;
    let mut stopped: std::collections::HashSet<ProcessKey> = std::collections::HashSet::new();
    let mut quiet = 0;
    while quiet < QUIET_LOOKS && Instant::now() < deadline {
        let new: Vec<ProcessKey> = watched.members().filter(|key| stopped.insert(*key)).collect();
        quiet = if new.is_empty() { quiet + 1 } else { 0 };
        for key in new {
            still.stop(proc, key);
        }
        while !still.all_stand(proc) && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        gather(proc, watched, newcomers, unknown);
    }
    let moved = move_outsiders(proc, job_box, watched, call);
    drop(still);
    moved
}

/// Moves members that are outside of the box, as they are.
pub(super) fn move_outsiders(proc: &ProcFs, job_box: &JobBox, watched: &Watched, call: &TrackedCall) -> Moved {
    let mut moved = Moved { count: 0, problem: None };
    for key in watched.members() {
        let is_outside = matches!(proc.membership(key.pid), Ok(Some(membership)) if !job_box.holds(&membership))
            && proc.is_alive(key);
        raise_score(proc, key, call);
        if !is_outside {
            continue;
        }
        match job_box.admit(key.pid).and_then(|()| is_inside(proc, job_box, key)) {
            Ok(true) => moved.count += 1,
            // It has ended meanwhile.
            Ok(false) => {}
            Err(error) if error.errno() == Some(libc::ESRCH) => {}
            Err(error) => moved.problem = moved.problem.or(Some(error)),
        }
    }
    moved
}

/// What a manager answers proves nothing; the process's own cgroup does.
fn is_inside(proc: &ProcFs, job_box: &JobBox, key: ProcessKey) -> Result<bool> {
    match proc.membership(key.pid)? {
        Some(membership) if job_box.holds(&membership) => Ok(true),
        _ if !proc.is_alive(key) => Ok(false),
        _ => Err(crate::error::Error::call("moving the job", std::io::Error::other("it is not where it was put"))),
    }
}

/// Best effort: who cannot be raised is still held by the box.
fn raise_score(proc: &ProcFs, key: ProcessKey, call: &TrackedCall) {
    if let Ok(Some(present)) = oom_score_adj(proc, key.pid)
        && let Some(score) = call.score_for(present)
    {
        let file = format!("{}/oom_score_adj", key.pid);
        let _best_effort = proc.dir().write(file, &String::from_utf8_lossy(score.as_bytes()));
    }
}
