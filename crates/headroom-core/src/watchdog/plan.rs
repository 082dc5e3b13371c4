//! What to do next, as a state machine without side effects: it is told the time, the verdict and the jobs.
//!
//! The newest job goes first and the oldest never while there is another. A job is paused when an older one
//! may end meanwhile; otherwise, or when that did not help, it is told to end and killed two seconds later.
//! Then there is rest: memory comes back with a delay, and so do the numbers that tell of it.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::boxing::BoxId;
use crate::watchdog::Verdict;

/// Between SIGTERM and SIGKILL.
const TERM_PATIENCE: Duration = Duration::from_secs(2);
/// After a job has gone.
const REST: Duration = Duration::from_secs(15);
/// After a job may go on.
const REST_AFTER_RESUME: Duration = Duration::from_secs(2);
/// A pause that has not helped by then does not help.
const PAUSE_HELPS_WITHIN: Duration = Duration::from_secs(1);
/// The same, while its pages are being written to swap.
const PAGE_OUT_HELPS_WITHIN: Duration = Duration::from_secs(5);
/// A box that does not empty in this time after SIGKILL is stuck in the kernel.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Let it stand still, and push its pages out where there is swap.
    Pause(BoxId),
    /// Let it go on.
    Resume(BoxId),
    /// Ask all of it to end.
    Terminate(BoxId),
    /// Kill all of it. Comes again until it is gone.
    Kill(BoxId),
}

#[derive(Debug)]
struct Paused {
    id: BoxId,
    since: Instant,
    /// The jobs that were older.
    elders: Vec<BoxId>,
    pages: Pages,
}

/// What becomes of a paused job's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    Stay,
    Leaving,
    Left { bytes: u64 },
}

#[derive(Debug)]
struct Stopping {
    id: BoxId,
    since: Instant,
    killing_since: Option<Instant>,
}

/// The state between two looks.
#[derive(Debug)]
pub struct Plan {
    pause_limit: Duration,
    reserve_bytes: u64,
    paused: Option<Paused>,
    stopping: Option<Stopping>,
    rest_until: Option<Instant>,
    /// How long each job has stood still.
    spent: HashMap<BoxId, Duration>,
    stuck: HashSet<BoxId>,
}

impl Plan {
    /// With nothing under way.
    #[must_use]
    pub fn new(pause_limit: Duration, reserve_bytes: u64) -> Self {
        Self {
            pause_limit,
            reserve_bytes,
            paused: None,
            stopping: None,
            rest_until: None,
            spent: HashMap::new(),
            stuck: HashSet::new(),
        }
    }

    /// Takes over a job that somebody else has paused.
    pub fn adopt_paused(&mut self, now: Instant, id: BoxId, elders: Vec<BoxId>, spent: Duration) {
        self.spent.insert(id, spent);
        self.paused = Some(Paused { id, since: now, elders, pages: Pages::Stay });
    }

    /// The paused job, if there is one.
    #[must_use]
    pub fn paused(&self) -> Option<BoxId> {
        self.paused.as_ref().map(|paused| paused.id)
    }

    /// How long a job has stood still before its present pause.
    #[must_use]
    pub fn spent(&self, id: BoxId) -> Duration {
        self.spent.get(&id).copied().unwrap_or_default()
    }

    /// A paused job's pages are on their way to swap.
    pub fn pages_are_leaving(&mut self, id: BoxId) {
        self.set_pages(id, Pages::Leaving);
    }

    /// So much of a paused job was pushed out; 0 when it could not be.
    pub fn pages_have_left(&mut self, id: BoxId, bytes: u64) {
        self.set_pages(id, if bytes == 0 { Pages::Stay } else { Pages::Left { bytes } });
    }

    fn set_pages(&mut self, id: BoxId, pages: Pages) {
        if let Some(paused) = self.paused.as_mut().filter(|paused| paused.id == id) {
            paused.pages = pages;
        }
    }

    /// Something is under way that wants to be looked at often.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.paused.is_some() || self.stopping.is_some()
    }

    /// What to do now. `jobs` are those that have processes, oldest first.
    pub fn next(&mut self, now: Instant, verdict: &Verdict, jobs: &[BoxId]) -> Option<Step> {
        self.forget_the_gone(now, jobs);
        let step = self.go_on_stopping(now, verdict);
        if self.stopping.is_some() {
            return step;
        }
        if let Some(step) = self.look_after_the_paused(now, verdict, jobs) {
            return Some(step);
        }
        verdict.cause?;
        let is_resting = self.rest_until.is_some_and(|until| now < until);
        if is_resting && !verdict.is_emergency {
            return None;
        }
        let (newest, elders) = self.newest(jobs)?;
        if let Some(paused) = &self.paused {
            // A pause is under way and gets its chance, unless somebody newer came meanwhile.
            return (paused.id != newest).then(|| self.stop(now, newest, verdict));
        }
        let may_pause = !elders.is_empty() && !verdict.is_emergency && self.spent(newest) < self.pause_limit;
        if may_pause {
            self.paused = Some(Paused { id: newest, since: now, elders, pages: Pages::Stay });
            return Some(Step::Pause(newest));
        }
        Some(self.stop(now, newest, verdict))
    }

    fn forget_the_gone(&mut self, now: Instant, jobs: &[BoxId]) {
        let is_gone = |id: &BoxId| !jobs.contains(id);
        self.spent.retain(|id, _| !is_gone(id));
        self.stuck.retain(|id| !is_gone(id));
        if self.paused.as_ref().is_some_and(|paused| is_gone(&paused.id)) {
            self.paused = None;
        }
        if self.stopping.as_ref().is_some_and(|stopping| is_gone(&stopping.id)) {
            self.stopping = None;
            self.rest_until = Some(now + REST);
        }
    }

    /// The newest job that can be acted on, and all that are older.
    fn newest(&self, jobs: &[BoxId]) -> Option<(BoxId, Vec<BoxId>)> {
        let at = jobs.iter().rposition(|id| !self.stuck.contains(id))?;
        Some((*jobs.get(at)?, jobs.get(..at)?.to_vec()))
    }

    fn stop(&mut self, now: Instant, id: BoxId, verdict: &Verdict) -> Step {
        let killing_since = verdict.is_emergency.then_some(now);
        self.stopping = Some(Stopping { id, since: now, killing_since });
        if self.paused.as_ref().is_some_and(|paused| paused.id == id) {
            self.paused = None;
        }
        if verdict.is_emergency { Step::Kill(id) } else { Step::Terminate(id) }
    }

    /// Nothing to do is an answer too: the job has its two seconds.
    fn go_on_stopping(&mut self, now: Instant, verdict: &Verdict) -> Option<Step> {
        let stopping = self.stopping.as_mut()?;
        let is_time = verdict.is_emergency || now.duration_since(stopping.since) >= TERM_PATIENCE;
        if stopping.killing_since.is_none() && is_time {
            stopping.killing_since = Some(now);
        }
        let (id, killing_since) = (stopping.id, stopping.killing_since?);
        if now.duration_since(killing_since) >= STUCK_AFTER {
            self.stuck.insert(id);
            self.stopping = None;
            self.rest_until = Some(now + REST);
            return None;
        }
        Some(Step::Kill(id))
    }

    fn look_after_the_paused(&mut self, now: Instant, verdict: &Verdict, jobs: &[BoxId]) -> Option<Step> {
        let paused = self.paused.as_ref()?;
        let (id, stood) = (paused.id, now.duration_since(paused.since));
        let an_elder_ended = paused.elders.iter().any(|elder| !jobs.contains(elder));
        let is_alone = !paused.elders.iter().any(|elder| jobs.contains(elder));
        let needed = match paused.pages {
            Pages::Left { bytes } => self.reserve_bytes.saturating_add(bytes),
            Pages::Stay | Pages::Leaving => self.reserve_bytes,
        };
        let patience = if paused.pages == Pages::Stay { PAUSE_HELPS_WITHIN } else { PAGE_OUT_HELPS_WITHIN };
        let is_over = self.spent(id) + stood >= self.pause_limit;
        if verdict.cause.is_some() {
            let has_not_helped = stood >= patience || verdict.is_emergency;
            // Who is newer than the paused job goes before it.
            let is_newest = self.newest(jobs).is_some_and(|(newest, _)| newest == id);
            return (is_newest && (has_not_helped || is_alone || is_over)).then(|| self.stop(now, id, verdict));
        }
        let may_go_on = an_elder_ended || is_alone || is_over || verdict.available_bytes >= needed;
        // What comes and goes within a moment is no reason: pausing costs a job little, thrashing much.
        if !may_go_on || (stood < PAUSE_HELPS_WITHIN && !an_elder_ended && !is_alone) {
            return None;
        }
        *self.spent.entry(id).or_default() += stood;
        self.paused = None;
        self.rest_until = Some(now + REST_AFTER_RESUME);
        Some(Step::Resume(id))
    }
}
