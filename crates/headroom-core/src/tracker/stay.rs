//! The thread that stays with one call: searches, brings in, watches to the end.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::boxing::Mode;
use crate::job::{Event, ForeignUnit, Measure, Watch};
use crate::journal::Record;
use crate::proc::ProcessKey;
use crate::process::PidFd;
use crate::tracker::TrackedCall;
use crate::tracker::enter::Entering;
use crate::tracker::halt::Released;
use crate::tracker::newcomers::Newcomers;
use crate::tracker::registry::Entry;
use crate::tracker::relatives::{Lost, Surroundings};
use crate::tracker::search::{Found, Search};

/// How often to look in the first moment, and how long that is. Faster finds no more.
const FAST_PAUSE: Duration = Duration::from_micros(500);
const FAST_FOR: Duration = Duration::from_millis(250);
/// How often to look then.
const SLOW_PAUSE: Duration = Duration::from_millis(5);
/// Every so many slow looks, one at all processes of the machine.
const WIDE_LOOK_EVERY: u32 = 20;
/// How long relatives are looked for after the box is entered. What is born later is born inside.
const LATE_FOR: Duration = Duration::from_secs(1);
/// So often is looked for others when the command's shell is gone soon.
const REMAINDER_LOOKS: u32 = 40;
/// How often it is looked for processes that left the box, which reads all processes of the machine.
const STRAYS_EVERY: Duration = Duration::from_secs(1);
/// One call, from its announcement to the end of its command.
pub(super) struct Tracker {
    pub(super) call: TrackedCall,
    pub(super) around: Surroundings,
    pub(super) agent: PidFd,
    pub(super) entry: Entry,
    pub(super) search: Search,
    pub(super) watch: Watch,
    pub(super) announced: Instant,
    /// The call has returned: nothing more is started for it.
    pub(super) has_returned: bool,
    /// Processes that were stopped a moment ago and may stop again.
    pub(super) released: Released,
}

/// Why a search has ended.
enum Outcome {
    Found(Found),
    Returned,
    AgentGone,
}

impl Tracker {
    pub(super) fn stay(mut self) {
        loop {
            let found = match self.search() {
                Outcome::Found(found) => found,
                Outcome::Returned => return self.give_up("no process was seen that was started for it"),
                Outcome::AgentGone => return self.give_up("the agent ended"),
            };
            let is_guess = self.stay_with(found);
            if !is_guess || self.has_returned {
                return self.end();
            }
            // What was taken for the command has ended, and the call has not returned.
        }
    }

    fn give_up(mut self, reason: &str) {
        self.watch.measure = Measure::Nothing;
        self.watch.events.send(&Event::NotEntered { pid: None, reason: reason.to_owned() });
        self.end();
    }

    fn end(self) {
        // Its processes are known by their cgroup or on record; others may begin to look.
        drop(self.entry);
        self.watch.close(None);
    }

    fn search(&mut self) -> Outcome {
        let mut looks = 0_u32;
        loop {
            // What was true before the look decides after it: who returns has started all that it will.
            let (has_returned, agent_is_gone) = (self.has_returned, self.agent_has_ended());
            let is_fast = self.announced.elapsed() < FAST_FOR;
            looks = if is_fast { 0 } else { looks + 1 };
            let is_wide = has_returned || agent_is_gone || (looks + 1).is_multiple_of(WIDE_LOOK_EVERY);
            let proc = &self.watch.proc;
            let found = self.search.look(proc, &mut self.entry, is_wide, agent_is_gone);
            if let Some(found) = found.or_else(|| self.search.guess(proc, &mut self.entry)) {
                return Outcome::Found(found);
            }
            if has_returned || agent_is_gone {
                return if agent_is_gone { Outcome::AgentGone } else { Outcome::Returned };
            }
            self.wait(if is_fast { FAST_PAUSE } else { SLOW_PAUSE }, None);
        }
    }

    /// Brings a command in, and stays until it has ended. Whether it was a guess to the end.
    fn stay_with(&mut self, found: Found) -> bool {
        self.watch.began = Instant::now();
        let mut found = found;
        'command: loop {
            let root = found.stat.key();
            let handle = PidFd::open_exactly(&self.watch.proc, root).ok();
            let mut lost = self.bring_in(&found);
            if !found.is_guess {
                self.entry.end_search();
            }
            let Some(handle) = handle.filter(|_| !found.is_remainder) else {
                self.look_for_remainder(&mut lost);
                return found.is_guess;
            };
            let entered = Instant::now();
            let mut next_stray_look = entered + STRAYS_EVERY;
            loop {
                // Without a box whatever the job starts is born outside, to its end.
                let is_late = entered.elapsed() > LATE_FOR && !matches!(self.watch.measure, Measure::Cap(_));
                if entered.elapsed() > LATE_FOR {
                    lost = None;
                }
                if !is_late {
                    self.look_for_relatives(&mut lost);
                    self.wake_echoes();
                }
                if found.is_guess
                    && !self.has_returned
                    && let Some(better) = self.search.look(&self.watch.proc, &mut self.entry, false, false)
                {
                    found = better;
                    continue 'command;
                }
                if Instant::now() >= next_stray_look {
                    next_stray_look = Instant::now() + STRAYS_EVERY;
                    self.bring_back_strays();
                }
                let due = self.watch.sample();
                let pause = match () {
                    () if is_late && !found.is_guess => due,
                    () if self.announced.elapsed() < FAST_FOR => due.min(FAST_PAUSE),
                    () => due.min(SLOW_PAUSE),
                };
                if self.wait(pause, Some(&handle)) {
                    if lost.is_some() {
                        self.look_for_remainder(&mut lost);
                    } else if !is_late {
                        self.look_for_relatives(&mut lost);
                    }
                    return found.is_guess;
                }
            }
        }
    }

    /// The command has ended soon after its start, or before it was seen. What it has left is brought in, before
    /// the account is closed with it as what is left.
    fn look_for_remainder(&mut self, lost: &mut Option<Lost>) {
        for _ in 0..REMAINDER_LOOKS {
            self.look_for_relatives(lost);
            self.wake_echoes();
            self.wait(FAST_PAUSE, None);
        }
    }

    /// The first moment with a command: it enters its box, and goes on record.
    fn bring_in(&mut self, found: &Found) -> Option<Lost> {
        let (root, proc) = (found.stat.key(), &self.watch.proc);
        if found.is_scoped {
            self.watch.watched.add(&found.stat);
            self.watch.measure = Measure::Unit(ForeignUnit::of(root, self.around.is_in.clone()));
            self.watch.events.send(&Event::Entered { pid: root.pid, scoped: true, moved: 0 });
            return None;
        }
        // Who is lost among several that start at once cannot be told whose it is.
        let mut lost = self.entry.is_only_searcher().then(|| Lost::of(proc, root, &self.around, &self.search));
        if found.is_remainder {
            self.watch.watched.follow_session_of(&found.stat);
        }
        let has_box = self.watch.job_box.mode().is_kernel_limit();
        let mut entering = entering(&mut self.watch, &mut self.search.newcomers, &mut self.entry, &self.call);
        let (moved, problem) = if has_box {
            let entered = entering.enter(&found.stat, &mut lost);
            self.released = entered.released;
            (entered.moved, entered.problem)
        } else {
            entering.watched.add(&found.stat);
            entering.family(lost.as_mut());
            (0, None)
        };
        if let Some(reason) = problem.filter(|_| moved == 0) {
            self.watch.measure = Measure::Nothing;
            self.watch.events.send(&Event::NotEntered { pid: Some(root.pid), reason });
            return None;
        }
        self.note_on_record(root);
        self.watch.events.send(&Event::Entered { pid: root.pid, scoped: false, moved });
        lost
    }

    /// Who stopped because another one was stopped goes on, unless the watchdog lets the job stand still.
    fn wake_echoes(&mut self) {
        let record = self.watch.supervision.record.as_ref();
        self.released.look_again(&self.watch.proc, || record.and_then(Record::mark).is_some());
    }

    fn note_on_record(&mut self, root: ProcessKey) {
        let sessions = self.watch.watched.sessions();
        if let Some(record) = &mut self.watch.supervision.record {
            record.set_found(root, sessions);
        }
    }

    fn look_for_relatives(&mut self, lost: &mut Option<Lost>) {
        if !matches!(self.watch.measure, Measure::Box | Measure::Cap(_)) {
            return;
        }
        let has_box = self.watch.job_box.mode().is_kernel_limit();
        let mut entering = entering(&mut self.watch, &mut self.search.newcomers, &mut self.entry, &self.call);
        if has_box {
            entering.bring_in_late(lost);
        } else {
            entering.family(lost.as_mut());
        }
    }

    /// Members that are where the agent is, not in the box. Those elsewhere were put there by somebody, and are
    /// only counted.
    fn bring_back_strays(&mut self) {
        let is_in_box = matches!(self.watch.measure, Measure::Box) && self.watch.job_box.mode() != Mode::Off;
        if is_in_box {
            let is_near = |found: &_| *found == self.around.is_in;
            self.watch.bring_back(is_near);
        }
        let root = self.watch.supervision.record.as_ref().and_then(Record::root);
        if let Some(root) = root {
            self.note_on_record(root);
        }
    }

    fn agent_has_ended(&self) -> bool {
        self.agent.wait(Duration::ZERO).unwrap_or(true)
    }

    /// Waits, and notes whether the call has returned. Whether the command has ended.
    fn wait(&mut self, pause: Duration, command: Option<&PidFd>) -> bool {
        let timeout = Timespec::try_from(pause).unwrap_or_default();
        let mut fds = Vec::with_capacity(2);
        fds.extend(command.map(|command| PollFd::from_borrowed_fd(command.as_fd(), PollFlags::IN)));
        if !self.has_returned {
            fds.push(PollFd::from_borrowed_fd(self.entry.returned().as_fd(), PollFlags::IN));
        }
        let is_ready = matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0);
        let mut ready = fds.iter().map(|fd| is_ready && !fd.revents().is_empty());
        let has_ended = command.is_some() && ready.next().unwrap_or(false);
        self.has_returned |= ready.next().unwrap_or(false);
        has_ended
    }
}

fn entering<'a>(
    watch: &'a mut Watch,
    newcomers: &'a mut Newcomers,
    entry: &'a mut Entry,
    call: &TrackedCall,
) -> Entering<'a> {
    let Watch { proc, job_box, watched, .. } = watch;
    Entering { proc, job_box, watched, newcomers, entry, oom_score_adj: call.oom_score_adj }
}
