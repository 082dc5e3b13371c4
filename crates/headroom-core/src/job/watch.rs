//! The thread that stays with a job: waits for its command, samples, enforces the cap where the kernel does not,
//! counts escapes, and closes the account before the box is removed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::boxing::{JobBox, Mode};
use crate::cgroup::{Peak, PeakSource};
use crate::job::events::EventSink;
use crate::job::kernel_log::KernelLog;
use crate::job::supervise::Supervision;
use crate::job::watched::{Watched, describe};
use crate::job::{Ended, Event, LeftProcess, UserspaceCap, Victim};
use crate::journal::{Handling, Record};
use crate::proc::ProcFs;
use crate::process::{Ending, PidFd, SignalForwarder, reap, reap_orphans};

/// How often a job with a kernel limit is sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked what the watchdog did with the job.
const MARK_EVERY: Duration = Duration::from_millis(100);
/// How often escapes are looked for, which reads all processes of the machine.
const ESCAPES_EVERY: Duration = Duration::from_secs(1);
/// How long the last processes of a job (the rest of a pipeline) may take to end after its command.
const SETTLE_PATIENCE: Duration = Duration::from_millis(100);
const SETTLE_PAUSE: Duration = Duration::from_millis(2);

/// A process that held less than this part of the cap is nobody the kernel would have chosen.
const LARGE_PART: u64 = 8;

/// Priority of the thread that enforces a cap by itself.
const WATCH_NICENESS: i32 = -15;

/// The process whose end is the end of the job's command.
#[derive(Debug)]
pub(crate) enum Root {
    /// Ours to collect.
    Child {
        /// Its handle.
        process: Arc<PidFd>,
        /// Its number, its own until it is collected.
        pid: i32,
    },
    /// Somebody else's: how it ended is theirs to know.
    Foreign {
        /// Its handle.
        process: PidFd,
    },
    /// It has ended already, or was never found.
    Gone,
}

/// Looks after something of its own while a job is watched. Answers when it wants its next turn; `None` for never.
pub(crate) type Companion = Box<dyn FnMut(&ProcFs, &JobBox, &mut Watched) -> Option<Duration> + Send>;

/// One job under supervision.
pub(crate) struct Watch {
    proc: ProcFs,
    root: Root,
    job_box: JobBox,
    supervision: Supervision,
    watched: Watched,
    cap: Option<UserspaceCap>,
    kernel_log: Option<KernelLog>,
    events: EventSink,
    began: Instant,
    sampled_peak_bytes: u64,
    oom_kills_told: u64,
    /// The job was seen at its own limit.
    cap_hit: bool,
    cap_victims: Vec<Victim>,
    /// The most that each large process was seen to hold, for the case that the kernel's log may not be read.
    seen_large: HashMap<i32, LeftProcess>,
    /// Every process that was seen in the box, for the kernel's log.
    seen_inside: HashSet<i32>,
    next_escapes_look: Instant,
    next_mark_look: Instant,
    next_sample: Instant,
    is_paused: bool,
    escaped: u64,
    companion: Option<Companion>,
}

impl Watch {
    #[expect(clippy::too_many_arguments, reason = "all of it is moved in, once for each way a job begins")]
    pub(crate) fn begin(
        proc: ProcFs,
        root: Root,
        job_box: JobBox,
        watched: Watched,
        supervision: Supervision,
        kernel_log: Option<KernelLog>,
        events: EventSink,
        began: Instant,
    ) -> Self {
        Self {
            cap: (job_box.mode() == Mode::Userspace)
                .then(|| UserspaceCap::new(job_box.limits().memory_bytes, job_box.limits().swap.as_bytes())),
            proc,
            root,
            job_box,
            watched,
            supervision,
            kernel_log,
            events,
            began,
            sampled_peak_bytes: 0,
            oom_kills_told: 0,
            cap_hit: false,
            cap_victims: Vec::new(),
            seen_large: HashMap::new(),
            seen_inside: HashSet::new(),
            next_escapes_look: began + ESCAPES_EVERY,
            next_mark_look: began + MARK_EVERY,
            next_sample: began,
            is_paused: false,
            escaped: 0,
            companion: None,
        }
    }

    pub(crate) fn with(mut self, companion: Option<Companion>) -> Self {
        self.companion = companion;
        self
    }

    /// Stays until the command has ended and its account is told.
    pub(crate) fn stay(mut self) {
        if self.cap.is_some() {
            // Among many busy processes the one that must stop them should not wait for its turn. Only root
            // may; others go on as they are. In Linux this is the calling thread's own priority.
            let _best_effort = rustix::process::setpriority_process(None, WATCH_NICENESS);
        }
        let ending = loop {
            let pause = self.sample();
            if self.wait(pause) {
                break self.collect();
            }
        };
        let ended = self.close_account(ending);
        self.leave(&ended);
        self.events.send_last(&Event::Ended(ended));
    }

    /// Whether the command has ended.
    fn wait(&self, pause: Duration) -> bool {
        let process: &PidFd = match &self.root {
            Root::Child { process, .. } => process,
            Root::Foreign { process } => process,
            Root::Gone => return true,
        };
        let timeout = Timespec::try_from(pause).unwrap_or_default();
        let mut fds = [PollFd::new(process, PollFlags::IN)];
        matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0)
    }

    /// How the command ended, where that is ours to know.
    fn collect(&self) -> Option<Ending> {
        match &self.root {
            Root::Child { pid, .. } => reap(*pid).ok().flatten(),
            Root::Foreign { .. } | Root::Gone => None,
        }
    }

    fn child_pid(&self) -> Option<i32> {
        match &self.root {
            Root::Child { pid, .. } => Some(*pid),
            Root::Foreign { .. } | Root::Gone => None,
        }
    }

    fn sample(&mut self) -> Duration {
        let wanted = self.companion.as_mut().map(|look| look(&self.proc, &self.job_box, &mut self.watched));
        if let Some(None) = wanted {
            self.companion = None;
        }
        let pause = match &mut self.cap {
            Some(cap) => {
                let (victims, pause) = cap.tick(&self.proc, &mut self.watched);
                for victim in victims {
                    self.events.send(&Event::CapKill(victim.clone()));
                    self.cap_victims.push(victim);
                }
                pause
            }
            None => self.sample_cgroup(),
        };
        if Instant::now() >= self.next_escapes_look {
            self.look_for_escapes();
        }
        if Instant::now() >= self.next_mark_look {
            self.look_at_mark();
        }
        wanted.flatten().map_or(pause, |wanted| pause.min(wanted))
    }

    fn sample_cgroup(&mut self) -> Duration {
        let Some(cgroup) = self.job_box.cgroup() else { return SAMPLE_EVERY };
        let now = Instant::now();
        if now < self.next_sample {
            return self.next_sample - now;
        }
        self.next_sample = now + SAMPLE_EVERY;
        let usage = cgroup.usage_bytes().ok().flatten().unwrap_or(0);
        self.sampled_peak_bytes = self.sampled_peak_bytes.max(usage);
        let pids = self.job_box.pids().unwrap_or_default();
        self.seen_inside.extend(&pids);
        if usage > self.job_box.limits().memory_bytes / 2 {
            for process in describe(&self.proc, pids) {
                let seen = self.seen_large.entry(process.pid).or_insert_with(|| process.clone());
                if process.rss_bytes > seen.rss_bytes {
                    *seen = process;
                }
            }
        }
        let count = self.job_box.oom_kills().unwrap_or(0);
        self.cap_hit |= self.job_box.limit_was_hit().unwrap_or(false);
        if count > self.oom_kills_told {
            self.oom_kills_told = count;
            self.events.send(&Event::OomKill { count });
        }
        SAMPLE_EVERY
    }

    /// What the watchdog, maybe another process's, does with this job.
    fn look_at_mark(&mut self) {
        self.next_mark_look = Instant::now() + MARK_EVERY;
        let mark = self.supervision.record.as_ref().and_then(Record::mark);
        if mark.as_ref().is_some_and(|mark| mark.handling == Handling::Stopped) {
            // That is told at the end; going on only to hear a signal is no news.
            return;
        }
        let paused = mark.is_some();
        if paused != self.is_paused {
            self.is_paused = paused;
            self.events.send(&Event::Paused { paused });
        }
    }

    fn look_for_escapes(&mut self) {
        self.watched.look_at_all(&self.proc);
        self.escaped = self.watched.count_escapes(&self.proc, &self.job_box);
        self.collect_orphans();
        self.next_escapes_look = Instant::now() + ESCAPES_EVERY;
    }

    /// Orphans that have ended wait for their parent, which is this process now.
    fn collect_orphans(&self) {
        if self.supervision.collects_orphans {
            let own = std::process::id().cast_signed();
            let children = self.proc.children(own).ok().flatten().unwrap_or_default();
            let guard = self.job_box.guard_pid();
            let kept = [self.child_pid(), guard];
            reap_orphans(children.into_iter().filter(|pid| !kept.contains(&Some(*pid))));
        }
    }

    fn close_account(&mut self, ending: Option<Ending>) -> Ended {
        let took_ms = self.began.elapsed().as_secs_f64() * 1000.0;
        self.look_for_escapes();
        let left_running = self.settle();
        self.escaped = self.watched.count_escapes(&self.proc, &self.job_box);
        // A cgroup that was removed under us has no counters any more; what was seen before counts.
        let oom_kills = self.job_box.oom_kills().unwrap_or(0).max(self.oom_kills_told);
        Ended {
            ending,
            peak: self.peak(),
            cap_hit: !self.cap_victims.is_empty() || self.cap_hit || self.job_box.limit_was_hit().unwrap_or(false),
            oom_kills,
            cap_kills: self.cap_victims.len() as u64,
            victims: self.victims(oom_kills),
            left_running,
            escaped: self.escaped,
            watchdog: self
                .supervision
                .record
                .as_ref()
                .and_then(Record::mark)
                .filter(|mark| mark.handling == Handling::Stopped),
            pool_stopped: self.job_box.pool_was_stopped(),
            ended_by_signal: self.supervision.forwarder.as_ref().and_then(SignalForwarder::last_ending_signal),
            took_ms,
        }
    }

    /// Who is left once the rest of a pipeline has had a moment to end: in the box, or known to be the job's
    /// and outside of it. Somebody in the middle of a double fork is seen only at a second look.
    fn settle(&mut self) -> Vec<LeftProcess> {
        let deadline = Instant::now() + SETTLE_PATIENCE;
        let mut quiet_looks = 0;
        loop {
            self.watched.look_at_all(&self.proc);
            let mut left = self.watched.left_running(&self.proc);
            let known: HashSet<i32> = left.iter().map(|process| process.pid).collect();
            let inside = self.job_box.pids().unwrap_or_default().into_iter().filter(|pid| !known.contains(pid));
            left.extend(describe(&self.proc, inside));
            self.collect_orphans();
            quiet_looks = if left.is_empty() { quiet_looks + 1 } else { 0 };
            if quiet_looks > 1 || Instant::now() > deadline {
                return left;
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    fn peak(&self) -> Option<Peak> {
        let sampled = |bytes| Some(Peak { bytes, source: PeakSource::Sampled });
        match (&self.cap, self.job_box.cgroup()) {
            (Some(cap), _) => sampled(cap.peak_bytes()),
            (None, Some(_)) => self.job_box.peak().ok().flatten().or_else(|| sampled(self.sampled_peak_bytes)),
            (None, None) => None,
        }
    }

    fn victims(&mut self, oom_kills: u64) -> Vec<Victim> {
        if !self.cap_victims.is_empty() {
            return std::mem::take(&mut self.cap_victims);
        }
        if oom_kills == 0 {
            return Vec::new();
        }
        let logged = self.kernel_log.as_mut().map(|log| log.victims_in(self.job_box.name(), &self.seen_inside));
        if let Some(victims) = logged.filter(|victims| !victims.is_empty()) {
            return victims;
        }
        // The kernel takes the largest: of those that were large and are gone, so many as it killed. One
        // that grew and died between two samples stays unknown, rather than somebody else be blamed.
        let large_bytes = self.job_box.limits().memory_bytes / LARGE_PART;
        let is_gone = |pid| !matches!(self.proc.living(pid), Ok(Some(_)));
        let mut gone: Vec<&LeftProcess> = self
            .seen_large
            .values()
            .filter(|process| process.rss_bytes >= large_bytes && is_gone(process.pid))
            .collect();
        gone.sort_by_key(|process| std::cmp::Reverse(process.rss_bytes));
        gone.truncate(usize::try_from(oom_kills).unwrap_or(usize::MAX));
        gone.into_iter().map(|p| Victim { pid: p.pid, name: p.name.clone(), rss_bytes: p.rss_bytes }).collect()
    }

    /// Removes the box, or leaves it on record with the processes that keep it.
    fn leave(&mut self, ended: &Ended) {
        let is_empty = ended.left_running.is_empty() || self.job_box.pids().is_ok_and(|pids| pids.is_empty());
        let has_cgroup = self.job_box.cgroup().is_some();
        let removed =
            is_empty && (has_cgroup || ended.left_running.is_empty()) && self.job_box.remove().unwrap_or(false);
        if let Some(record) = self.supervision.record.take() {
            if removed {
                record.erase();
            } else {
                record.keep_as_left();
            }
        }
        self.job_box.let_pool_go();
    }
}
