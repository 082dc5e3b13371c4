//! The thread: stands by, measures, decides, acts, tells.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;

use crate::boxing::BoxId;
use crate::error::{Error, Result};
use crate::job::EventSink;
use crate::journal::locked::{Attempt, Locked};
use crate::journal::{Handling, Mark, RuntimeDir};
use crate::proc::{ProcFs, boot_ms};
use crate::process::PidFd;
use crate::watchdog::candidate::{Candidate, candidates};
use crate::watchdog::pin::Pinned;
use crate::watchdog::{Cause, Gauge, Judge, Plan, Rules, Step, Verdict, page_out};

/// Whose lock this is acts; the others stand by.
const LOCK_FILE: &str = "watchdog.lock";
/// Who has this one acts while the holder of the first is stopped (Ctrl-Z): a lock does not end with that.
const DEPUTY_LOCK_FILE: &str = "watchdog-deputy.lock";
/// Who only observes must not keep another one from acting.
const OBSERVERS_LOCK_FILE: &str = "watchdog-observer.lock";
const STAND_BY: Duration = Duration::from_secs(1);
/// How often to look while a job is paused or ending.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// How often danger is told where nothing is done about it.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// Priority of the thread; only root may have it.
const NICENESS: i32 = -15;

/// One line of what the watchdog tells.
#[derive(Debug, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told<'a> {
    /// This watchdog acts from now on.
    Guarding {
        /// Its code and stack are locked in memory.
        locked: bool,
    },
    /// It cannot act, nor can any other one: the lock cannot be had by anybody.
    Unable {
        /// Why.
        reason: String,
    },
    /// It did something with a job, or (`observed`) would have.
    Acted {
        action: Action,
        observed: bool,
        job: String,
        command: &'a str,
        kind: &'a str,
        cause: Option<Cause>,
        available_bytes: u64,
        critical_bytes: u64,
    },
    /// A paused job's pages were pushed out to swap.
    PushedOut { job: String, bytes: u64 },
    /// There is danger, and no job to act on.
    Danger { cause: Cause, available_bytes: u64, critical_bytes: u64 },
}

#[derive(Debug, Clone, Copy, serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Pause,
    Resume,
    Terminate,
    Kill,
}

/// A watchdog at work, or standing by. Ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    stop: Arc<OwnedFd>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Starts the thread. The descriptor has one JSON line an event; it is closed by the thread's end.
pub fn start(runtime: Arc<RuntimeDir>, rules: Rules) -> Result<(Running, OwnedFd)> {
    let (reader, writer) = UnixStream::pair().map_err(|e| Error::call("socketpair", e))?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let stop = Arc::new(rustix::event::eventfd(0, flags).map_err(|e| Error::call("eventfd", e))?);
    let proc = ProcFs::system()?;
    let gauge = Gauge::new(ProcFs::system()?, rules.reserve_bytes.saturating_mul(2), rules.agent_pid)?;
    let (sender, receiver) = channel();
    let watch = Watch {
        proc,
        runtime,
        gauge,
        judge: Judge::new(rules.clone()),
        plan: Plan::new(rules.pause_limit, rules.reserve_bytes),
        rules,
        events: EventSink::new(writer),
        stop: Arc::clone(&stop),
        jobs: Vec::new(),
        told_at: None,
        killed: None,
        sender,
        receiver,
    };
    let thread = std::thread::Builder::new().name("headroom-watch".to_owned()).spawn(move || watch.stay());
    let thread = Some(thread.map_err(|e| Error::call("thread", e))?);
    Ok((Running { stop, thread }, reader.into()))
}

/// Lets jobs go on that were paused by a watchdog that is gone, where no other one has taken over. Answers how
/// many.
pub fn wake_forgotten(runtime: &RuntimeDir) -> Result<usize> {
    let Attempt::Had(_lock) = Locked::attempt(runtime, LOCK_FILE, OFlags::RDWR)? else {
        return Ok(0);
    };
    let proc = ProcFs::system()?;
    let is_paused = |job: &Candidate| Mark::read(runtime, job.id).is_some_and(|mark| mark.handling == Handling::Paused);
    let paused: Vec<Candidate> = candidates(&proc, runtime).into_iter().filter(is_paused).collect();
    for job in &paused {
        Mark::erase(runtime, job.id);
        job.thaw(&proc);
    }
    Ok(paused.len())
}

impl Running {
    /// Ends the thread; a job that it had paused goes on. Waits for it.
    pub fn stop(&mut self) {
        let _only_fails_when_full = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _nothing_is_left_of_a_panic = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What lets this watchdog act.
struct Office {
    /// It stands in for one that is stopped.
    is_deputy: bool,
    _lock: Locked,
}

struct Watch {
    proc: ProcFs,
    runtime: Arc<RuntimeDir>,
    gauge: Gauge,
    judge: Judge,
    plan: Plan,
    rules: Rules,
    events: EventSink,
    stop: Arc<OwnedFd>,
    jobs: Vec<Candidate>,
    told_at: Option<Instant>,
    /// The job whose killing was told; the step comes again until it is gone.
    killed: Option<BoxId>,
    sender: Sender<(BoxId, u64)>,
    receiver: Receiver<(BoxId, u64)>,
}

impl Watch {
    fn stay(mut self) {
        let pinned = Pinned::new(&self.proc);
        // Among many busy processes the one that must stop them should not wait for its turn.
        let _best_effort = rustix::process::setpriority_process(None, NICENESS);
        while let Some(office) = self.stand_by() {
            self.events.send(&Told::Guarding { locked: pinned.is_whole() });
            if !self.rules.observe {
                self.take_over_paused();
            }
            let is_over = self.act_in(&office);
            self.leave();
            if is_over {
                break;
            }
        }
    }

    /// Whether this watchdog is to end; `false` when who was stood in for goes on.
    fn act_in(&mut self, office: &Office) -> bool {
        let mut next_check = Instant::now() + STAND_BY;
        loop {
            let pause = self.look();
            if self.is_stopped_within(pause) {
                return true;
            }
            if office.is_deputy && Instant::now() >= next_check {
                if !self.holder_is_stopped() {
                    return false;
                }
                next_check = Instant::now() + STAND_BY;
            }
        }
    }

    /// Waits until no other watchdog of this user acts. `None` when it is to end before that.
    fn stand_by(&mut self) -> Option<Office> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = if self.rules.observe { OBSERVERS_LOCK_FILE } else { LOCK_FILE };
        let mut is_told = false;
        loop {
            let problem = match Locked::attempt(&self.runtime, file, flags) {
                Ok(Attempt::Had(lock)) => {
                    lock.sign(&self.proc);
                    return Some(Office { is_deputy: false, _lock: lock });
                }
                Ok(Attempt::Held | Attempt::Gone) => None,
                Ok(Attempt::Foreign) => {
                    Some(format!("{} is not a regular file: remove it", self.runtime.path().join(file).display()))
                }
                Err(error) => Some(error.with_advice()),
            };
            // It may pass, so the next try comes all the same.
            if let (Some(reason), false) = (problem, is_told) {
                self.events.send(&Told::Unable { reason });
                is_told = true;
            }
            if !self.rules.observe
                && self.holder_is_stopped()
                && let Ok(Attempt::Had(lock)) = Locked::attempt(&self.runtime, DEPUTY_LOCK_FILE, flags)
            {
                return Some(Office { is_deputy: true, _lock: lock });
            }
            if self.is_stopped_within(STAND_BY) {
                return None;
            }
        }
    }

    /// Whether who has the lock stands still, as after a Ctrl-Z.
    fn holder_is_stopped(&self) -> bool {
        let holder = Locked::signature(&self.runtime, LOCK_FILE);
        let stat = holder.and_then(|key| self.proc.stat(key.pid).ok()?.filter(|stat| stat.key() == key));
        stat.is_some_and(|stat| matches!(stat.state, 'T' | 't'))
    }

    fn is_stopped_within(&self, pause: Duration) -> bool {
        let timeout = Timespec::try_from(pause).unwrap_or_default();
        let mut fds = [PollFd::new(&*self.stop, PollFlags::IN)];
        matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0)
    }

    /// Measures once and does what is to be done. Answers how long to wait.
    fn look(&mut self) -> Duration {
        let Ok(reading) = self.gauge.read() else { return STAND_BY };
        let mut verdict = self.judge.judge(&reading);
        while let Ok((id, bytes)) = self.receiver.try_recv() {
            self.plan.pages_have_left(id, bytes);
            self.events.send(&Told::PushedOut { job: id.to_string(), bytes });
        }
        // Most looks need no jobs, and listing them costs more than all the rest.
        if verdict.cause.is_none() && !self.plan.is_busy() {
            return verdict.pause;
        }
        self.jobs = candidates(&self.proc, &self.runtime);
        if verdict.is_agents_own && self.jobs.iter().any(|job| self.is_with_agent(job)) {
            // A job that thrashes within its own cap is no reason.
            verdict.cause = None;
        }
        let ids: Vec<BoxId> = self.jobs.iter().map(|job| job.id).collect();
        let step = if self.rules.observe { None } else { self.plan.next(reading.at, &verdict, &ids) };
        match (step, verdict.cause) {
            (Some(step), _) => self.act(step, &verdict),
            (None, Some(cause)) if self.rules.observe || ids.is_empty() => {
                self.tell_danger(reading.at, cause, &verdict);
            }
            _ => {}
        }
        if self.plan.is_busy() { verdict.pause.min(BUSY_PAUSE) } else { verdict.pause }
    }

    fn is_with_agent(&self, job: &Candidate) -> bool {
        let root = job.facts.root.filter(|root| self.proc.is_alive(*root)).map(|root| root.pid);
        let any = root.or_else(|| job.pids(&self.proc).first().map(PidFd::pid));
        any.is_none_or(|pid| self.gauge.is_with_agent(pid))
    }

    fn act(&mut self, step: Step, verdict: &Verdict) {
        let (Step::Pause(id) | Step::Resume(id) | Step::Terminate(id) | Step::Kill(id)) = step;
        let Some(job) = self.jobs.iter().find(|job| job.id == id) else { return };
        // The mark comes first: whoever sees the job end must find out why.
        match step {
            Step::Pause(_) => {
                self.mark(id, Handling::Paused, verdict);
                job.freeze(&self.proc);
                if verdict.swap_free_bytes > 0 {
                    self.plan.pages_are_leaving(id);
                    self.push_out(job);
                }
            }
            Step::Resume(_) => {
                Mark::erase(&self.runtime, id);
                job.thaw(&self.proc);
            }
            Step::Terminate(_) => {
                let stands_still = Mark::read(&self.runtime, id).is_some_and(|mark| mark.handling == Handling::Paused);
                self.mark(id, Handling::Stopped, verdict);
                job.terminate(&self.proc, stands_still);
            }
            Step::Kill(_) => {
                // A job that was told to end keeps the reason that it was told for.
                let is_told = Mark::read(&self.runtime, id).is_some_and(|mark| mark.handling == Handling::Stopped);
                if !is_told {
                    self.mark(id, Handling::Stopped, verdict);
                }
                job.kill(&self.proc);
            }
        }
        self.judge.forget();
        if self.killed == Some(id) {
            return;
        }
        let action = match step {
            Step::Pause(_) => Action::Pause,
            Step::Resume(_) => Action::Resume,
            Step::Terminate(_) => Action::Terminate,
            Step::Kill(_) => Action::Kill,
        };
        if matches!(action, Action::Kill) {
            self.killed = Some(id);
        }
        self.tell_acted(action, id, false, verdict);
    }

    fn tell_acted(&mut self, action: Action, id: BoxId, observed: bool, verdict: &Verdict) {
        let Some(job) = self.jobs.iter().find(|job| job.id == id) else { return };
        self.events.send(&Told::Acted {
            action,
            observed,
            job: id.to_string(),
            command: &job.facts.command,
            kind: &job.facts.kind,
            cause: verdict.cause,
            available_bytes: verdict.available_bytes,
            critical_bytes: self.rules.critical_bytes,
        });
    }

    fn tell_danger(&mut self, now: Instant, cause: Cause, verdict: &Verdict) {
        if self.told_at.is_some_and(|at| now.duration_since(at) < TELL_EVERY) {
            return;
        }
        self.told_at = Some(now);
        if let Some(newest) = self.jobs.last().map(|job| job.id) {
            self.tell_acted(Action::Terminate, newest, true, verdict);
            return;
        }
        let (available_bytes, critical_bytes) = (verdict.available_bytes, self.rules.critical_bytes);
        self.events.send(&Told::Danger { cause, available_bytes, critical_bytes });
    }

    fn mark(&self, id: BoxId, handling: Handling, verdict: &Verdict) {
        let mark = Mark {
            handling,
            cause: verdict.cause.unwrap_or(Cause::Available),
            available_bytes: verdict.available_bytes,
            critical_bytes: self.rules.critical_bytes,
            boot_ms: boot_ms(),
            paused_before_ms: u64::try_from(self.plan.spent(id).as_millis()).unwrap_or(u64::MAX),
        };
        // On a full disk the job's end stays unexplained; it must not stay undone.
        let _unexplained_then = mark.write(&self.runtime, id);
    }

    /// Writing to slow swap takes seconds, in which this thread has to go on looking.
    fn push_out(&self, job: &Candidate) {
        let Ok(proc) = ProcFs::system() else { return };
        let (id, processes, sender) = (job.id, job.pids(&self.proc), self.sender.clone());
        let cgroup = job.cgroup().and_then(|cgroup| cgroup.open_again().ok());
        let work = move || {
            let bytes = page_out::push_out(&proc, cgroup.as_ref(), &processes);
            let _nobody_waits_any_more = sender.send((id, bytes));
        };
        let started = std::thread::Builder::new().name("headroom-swap".to_owned()).spawn(work);
        if started.is_err() {
            let _it_counts_as_staying = self.sender.send((job.id, 0));
        }
    }

    /// The last watchdog may have died while a job stood still.
    fn take_over_paused(&mut self) {
        self.jobs = candidates(&self.proc, &self.runtime);
        let ids: Vec<BoxId> = self.jobs.iter().map(|job| job.id).collect();
        let is_paused = |mark: &Mark| mark.handling == Handling::Paused;
        let paused = ids.iter().enumerate().filter_map(|(at, id)| {
            let mark = Mark::read(&self.runtime, *id).filter(is_paused)?;
            let stood = boot_ms().saturating_sub(mark.boot_ms).saturating_add(mark.paused_before_ms);
            Some((at, *id, Duration::from_millis(stood)))
        });
        let mut paused: Vec<(usize, BoxId, Duration)> = paused.collect();
        let newest = paused.pop();
        for (_, id, _) in paused {
            self.let_go_on(id);
        }
        if let Some((at, id, stood)) = newest {
            self.plan.adopt_paused(Instant::now(), id, ids.into_iter().take(at).collect(), stood);
        }
    }

    fn let_go_on(&self, id: BoxId) {
        Mark::erase(&self.runtime, id);
        if let Some(job) = self.jobs.iter().find(|job| job.id == id) {
            job.thaw(&self.proc);
        }
    }

    /// Nothing stands still because of a watchdog that is not there any more. Whoever takes over decides anew.
    fn leave(&mut self) {
        if let Some(id) = self.plan.paused() {
            self.jobs = candidates(&self.proc, &self.runtime);
            self.let_go_on(id);
            self.plan = Plan::new(self.rules.pause_limit, self.rules.reserve_bytes);
        }
    }
}
