//! Sessions as a way to know a job's processes. An orphan's parent is somebody else, its session is not: see
//! setsid(2).

use std::collections::{HashMap, HashSet};

use crate::proc::{ProcessKey, ProcessTree, Stat};

/// Sessions whose processes are one job's.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// The start time of each session's leader, by its number.
    leaders: HashMap<i32, u64>,
}

impl Sessions {
    pub(crate) fn of(leaders: &[ProcessKey]) -> Self {
        Self { leaders: leaders.iter().map(|key| (key.pid, key.start_ticks)).collect() }
    }

    /// By number, ascending.
    pub(crate) fn leaders(&self) -> Vec<ProcessKey> {
        let mut leaders: Vec<ProcessKey> =
            self.leaders.iter().map(|(pid, start_ticks)| ProcessKey { pid: *pid, start_ticks: *start_ticks }).collect();
        leaders.sort_unstable();
        leaders
    }

    pub(crate) fn add(&mut self, leader: ProcessKey) {
        self.leaders.insert(leader.pid, leader.start_ticks);
    }

    /// A session that one of the job's processes leads is the job's.
    pub(crate) fn learn(&mut self, stat: &Stat) {
        if stat.session == stat.pid {
            self.leaders.insert(stat.pid, stat.start_ticks);
        }
    }

    /// Whether a process is of one of these sessions. Nobody in a session is older than its leader.
    pub(crate) fn includes(&self, stat: &Stat) -> bool {
        self.leaders.get(&stat.session).is_some_and(|leader_ticks| {
            if stat.pid == stat.session { stat.start_ticks == *leader_ticks } else { stat.start_ticks >= *leader_ticks }
        })
    }

    /// The kernel gives a number out again when no process is of its session any more, not before.
    pub(crate) fn forget_ended(&mut self, tree: &ProcessTree) {
        let is_another = |pid: &i32, ticks: &u64| tree.get(*pid).is_some_and(|stat| stat.start_ticks != *ticks);
        let living: HashSet<i32> = tree.iter().map(|stat| stat.session).collect();
        self.leaders.retain(|pid, ticks| living.contains(pid) && !is_another(pid, ticks));
    }
}
