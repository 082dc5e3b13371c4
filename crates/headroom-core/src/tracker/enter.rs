//! Brings a found command into its box, with all that it has started by then.

use crate::boxing::JobBox;
use crate::job::Watched;
use crate::proc::{ProcFs, Stat};
use crate::process::raise_oom_score_adj;
use crate::tracker::halt::{Halt, Released};
use crate::tracker::newcomers::Newcomers;
use crate::tracker::registry::Entry;
use crate::tracker::relatives::{Lost, relatives};

/// So often is looked again who is outside while the job stands still.
const ROUNDS: u32 = 5;

/// What an entering works on.
pub(super) struct Entering<'a> {
    pub(super) proc: &'a ProcFs,
    pub(super) job_box: &'a JobBox,
    pub(super) watched: &'a mut Watched,
    pub(super) newcomers: &'a mut Newcomers,
    pub(super) entry: &'a mut Entry,
    pub(super) oom_score_adj: i32,
}

/// How it went.
pub(super) struct Entered {
    /// Processes that were moved in.
    pub(super) moved: u64,
    /// Why some could not be.
    pub(super) problem: Option<String>,
    /// Those that were stopped for it and may stop again.
    pub(super) released: Released,
}

impl Entering<'_> {
    /// Stops the command and its relatives, moves them, looks again, and lets them go on.
    pub(super) fn enter(&mut self, root: &Stat, lost: &mut Option<Lost>) -> Entered {
        let mut halt = Halt::default();
        halt.stop(self.proc, root);
        self.watched.add(root);
        let mut entered = Entered { moved: 0, problem: None, released: Released::default() };
        for _ in 0..ROUNDS {
            let family = halt.bring_to_rest(self.proc, || self.family(lost.as_mut()));
            let outside: Vec<&Stat> = family.iter().filter(|stat| self.is_outside(stat)).collect();
            if outside.is_empty() {
                break;
            }
            entered.problem = self.bring_in(&outside);
            entered.moved += outside.iter().filter(|stat| !self.is_outside(stat)).count() as u64;
            if entered.problem.is_some() {
                break;
            }
        }
        if let Some(lost) = lost {
            lost.box_is_entered();
        }
        entered.released = halt.release();
        entered
    }

    /// Moves relatives that were found late, without stopping them: their own children are found at the next look.
    /// Answers how many there were.
    pub(super) fn bring_in_late(&mut self, lost: &mut Option<Lost>) -> usize {
        let family = self.family(lost.as_mut());
        let outside: Vec<&Stat> = family.iter().filter(|stat| self.is_outside(stat)).collect();
        if !outside.is_empty() {
            for stat in &outside {
                self.watched.note_escape(stat.key());
            }
            let _counted_as_outside_if_it_fails = self.bring_in(&outside);
        }
        outside.len()
    }

    /// The job's processes among the new ones. In `userspace` mode knowing them is all.
    pub(super) fn family(&mut self, lost: Option<&mut Lost>) -> Vec<Stat> {
        let new = self.newcomers.near(self.proc);
        let entry = &mut *self.entry;
        let family = relatives(self.proc, self.watched, &new, lost, |key| entry.take_relative(key));
        for stat in &family {
            raise_oom_score_adj(self.proc, stat.pid, self.oom_score_adj);
        }
        family
    }

    fn bring_in(&self, outside: &[&Stat]) -> Option<String> {
        let pids: Vec<i32> = outside.iter().map(|stat| stat.pid).collect();
        let answer = self.job_box.bring_in(&pids);
        // An answer proves nothing; the processes' own cgroups do.
        outside.iter().any(|stat| self.is_outside(stat)).then(|| match answer {
            Err(error) => error.to_string(),
            Ok(()) => "it is not where it was moved to".to_owned(),
        })
    }

    fn is_outside(&self, stat: &Stat) -> bool {
        let holds = |pid| self.proc.membership(pid).ok().flatten().is_none_or(|found| self.job_box.holds(&found));
        // Who is ending is not told to be in any cgroup.
        let is_ending = |now: &Stat| now.key() != stat.key() || now.is_zombie() || now.is_exiting;
        !holds(stat.pid) && self.proc.stat(stat.pid).ok().flatten().is_some_and(|now| !is_ending(&now))
    }
}
