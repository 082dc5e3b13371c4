//! The watch over a job: samples, enforces the cap where the kernel does not, counts escapes. Who runs it
//! says when the command has ended.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::boxing::{JobBox, Mode};
use crate::job::events::EventSink;
use crate::job::foreign_unit::ForeignUnit;
use crate::job::kernel_log::KernelLog;
use crate::job::supervise::Supervision;
use crate::job::watched::{Watched, describe};
use crate::job::{Event, LeftProcess, UserspaceCap, Victim};
use crate::journal::{Handling, Record};
use crate::proc::{Membership, ProcFs};
use crate::process::{PidFd, reap, reap_orphans};

/// How often a job with a kernel limit is sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked what the watchdog did with the job.
const MARK_EVERY: Duration = Duration::from_millis(100);
/// How often escapes are looked for, which reads all processes of the machine.
const ESCAPES_EVERY: Duration = Duration::from_secs(1);
/// Priority of the thread that enforces a cap by itself.
const WATCH_NICENESS: i32 = -15;

/// What tells how much memory the job uses, and holds it.
#[derive(Debug)]
pub(crate) enum Measure {
    /// The box's own cgroup, if it has one.
    Box,
    /// This process, by sampling and killing.
    Cap(UserspaceCap),
    /// A unit that somebody else put the job into. It is only read.
    Unit(ForeignUnit),
    /// Nothing: the job did not get into its box.
    Nothing,
}

/// One job under watch.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) proc: ProcFs,
    pub(crate) job_box: JobBox,
    pub(crate) supervision: Supervision,
    pub(crate) watched: Watched,
    pub(crate) measure: Measure,
    pub(crate) events: EventSink,
    /// The command's process, where it is a child of this one and has to be collected.
    pub(super) own_child: Option<i32>,
    pub(super) kernel_log: Option<KernelLog>,
    pub(crate) began: Instant,
    pub(super) sampled_peak_bytes: u64,
    pub(super) oom_kills_told: u64,
    /// The job was seen at its own limit.
    pub(super) cap_hit: bool,
    pub(super) cap_victims: Vec<Victim>,
    /// The most that each large process was seen to hold, for the case that the kernel's log may not be read.
    pub(super) seen_large: HashMap<i32, LeftProcess>,
    /// Every process that was seen in the box, for the kernel's log.
    pub(super) seen_inside: HashSet<i32>,
    next_sample: Instant,
    next_escapes_look: Instant,
    next_mark_look: Instant,
    is_paused: bool,
    pub(super) escaped: u64,
}

impl Watch {
    pub(crate) fn new(
        proc: ProcFs,
        job_box: JobBox,
        supervision: Supervision,
        watched: Watched,
        events: EventSink,
        began: Instant,
    ) -> Self {
        let limits = job_box.limits();
        let measure = match job_box.mode() {
            Mode::Userspace => Measure::Cap(UserspaceCap::new(limits.memory_bytes, limits.swap.as_bytes())),
            _ => Measure::Box,
        };
        Self {
            proc,
            job_box,
            supervision,
            watched,
            measure,
            events,
            own_child: None,
            kernel_log: None,
            began,
            sampled_peak_bytes: 0,
            oom_kills_told: 0,
            cap_hit: false,
            cap_victims: Vec::new(),
            seen_large: HashMap::new(),
            seen_inside: HashSet::new(),
            next_sample: began,
            next_escapes_look: began + ESCAPES_EVERY,
            next_mark_look: began + MARK_EVERY,
            is_paused: false,
            escaped: 0,
        }
    }

    /// The command is a child of this process, which alone collects it.
    pub(super) fn of_own_child(mut self, pid: i32) -> Self {
        self.own_child = Some(pid);
        self
    }

    /// Who was killed is read from the kernel's log, where that is allowed.
    pub(crate) fn with_kernel_log(mut self, log: Option<KernelLog>) -> Self {
        self.kernel_log = log;
        self
    }

    /// Stays with a child of this process to its end.
    pub(super) fn stay(mut self, process: &PidFd) {
        self.raise_priority();
        let ending = loop {
            let pause = self.sample();
            if has_ended(process, pause) {
                break self.own_child.and_then(|pid| reap(pid).ok().flatten());
            }
        };
        self.close(ending);
    }

    /// Among many busy processes the one that must stop them should not wait for its turn. Only root may; others
    /// go on as they are. In Linux this is the calling thread's own priority.
    pub(crate) fn raise_priority(&self) {
        if matches!(self.measure, Measure::Cap(_)) {
            let _best_effort = rustix::process::setpriority_process(None, WATCH_NICENESS);
        }
    }

    /// Looks at what is due, and answers how long nothing will be.
    pub(crate) fn sample(&mut self) -> Duration {
        if Instant::now() >= self.next_sample {
            self.next_sample = Instant::now() + self.take_sample();
        }
        if Instant::now() >= self.next_escapes_look {
            self.look_for_escapes();
        }
        if Instant::now() >= self.next_mark_look {
            self.look_at_mark();
        }
        self.next_sample.saturating_duration_since(Instant::now())
    }

    fn take_sample(&mut self) -> Duration {
        match &mut self.measure {
            Measure::Cap(cap) => {
                let (victims, pause) = cap.tick(&self.proc, &mut self.watched);
                for victim in victims {
                    self.events.send(&Event::CapKill(victim.clone()));
                    self.cap_victims.push(victim);
                }
                pause
            }
            Measure::Box => self.sample_cgroup(),
            Measure::Unit(unit) => {
                unit.sample(&self.proc);
                SAMPLE_EVERY
            }
            Measure::Nothing => SAMPLE_EVERY,
        }
    }

    fn sample_cgroup(&mut self) -> Duration {
        let Some(cgroup) = self.job_box.cgroup() else { return SAMPLE_EVERY };
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

    pub(super) fn look_for_escapes(&mut self) {
        self.watched.look_at_all(&self.proc);
        self.count_escapes();
        self.collect_orphans();
        self.next_escapes_look = Instant::now() + ESCAPES_EVERY;
    }

    /// Orphans that have ended wait for their parent, which is this process now.
    pub(super) fn collect_orphans(&self) {
        if self.supervision.collects_orphans {
            let own = std::process::id().cast_signed();
            let children = self.proc.children(own).ok().flatten().unwrap_or_default();
            let guard = self.job_box.guard_pid();
            reap_orphans(children.into_iter().filter(|pid| Some(*pid) != self.own_child && Some(*pid) != guard));
        }
    }

    /// Looks for members outside the box and moves those in whose cgroups satisfy `is_to_come`. Each was found
    /// outside, and counts as that.
    pub(crate) fn bring_back(&mut self, is_to_come: impl Fn(&Membership) -> bool) {
        self.watched.look_at_all(&self.proc);
        let outside = self.watched.outside(&self.proc, &self.job_box);
        for (key, _) in &outside {
            self.watched.note_escape(*key);
        }
        let to_come: Vec<i32> = outside.iter().filter(|(_, at)| is_to_come(at)).map(|(key, _)| key.pid).collect();
        if !to_come.is_empty() {
            let _counted_in_any_case = self.job_box.bring_in(&to_come);
        }
    }

    /// A job that was never in its box has no escapes.
    pub(super) fn count_escapes(&mut self) {
        if matches!(self.measure, Measure::Box | Measure::Cap(_)) {
            self.escaped = self.watched.count_escapes(&self.proc, &self.job_box);
        }
    }
}

/// Whether the process has ended, after `patience` at the latest.
fn has_ended(process: &PidFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).unwrap_or_default();
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0)
}
