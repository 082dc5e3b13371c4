//! Who belongs to a job without being in its box.

use std::collections::HashSet;

use crate::job::Watched;
use crate::proc::{Membership, ProcFs, Stat};
use crate::tracker::newcomers::Newcomers;

/// So many new processes that belong to nobody are remembered; more than that are a busy machine's.
const MOST_UNKNOWN: usize = 512;

/// Adds new processes that descend from members or are of the job's sessions; the others stay in `unknown`, as they
/// may turn out to be later.
pub(super) fn gather(proc: &ProcFs, watched: &mut Watched, newcomers: &mut Newcomers, unknown: &mut Vec<Stat>) {
    unknown.extend(newcomers.look(proc));
    // A chain of new processes may stand in any order.
    loop {
        let (members, others): (Vec<Stat>, Vec<Stat>) = unknown.drain(..).partition(|stat| watched.is_related(stat));
        *unknown = others;
        if members.is_empty() {
            break;
        }
        for stat in members {
            watched.add(stat.key());
        }
    }
    if unknown.len() > MOST_UNKNOWN {
        unknown.retain(|stat| proc.is_alive(stat.key()));
        let surplus = unknown.len().saturating_sub(MOST_UNKNOWN);
        unknown.drain(..surplus);
    }
}

/// Recognises those that left the job's session before it was boxed (`setsid -f`): orphans, new, where the agent
/// is and in no box, while no other call is starting.
#[derive(Debug)]
pub(super) struct OrphanRule {
    /// Who inherits the agent's orphans: process 1, or a subreaper above it.
    heirs: HashSet<i32>,
    agents_place: Option<Membership>,
}

impl OrphanRule {
    pub(super) fn new(proc: &ProcFs, agent_pid: i32) -> Self {
        let tree = proc.tree().unwrap_or_default();
        let heirs = tree.ancestors(agent_pid).map(|stat| stat.pid).chain([1]).collect();
        Self { heirs, agents_place: proc.membership(agent_pid).ok().flatten() }
    }

    /// Adds those of the new processes that fit.
    pub(super) fn adopt(&self, proc: &ProcFs, watched: &mut Watched, unknown: &[Stat]) {
        for before in unknown {
            // Whose child it is may have changed.
            if let Ok(Some(now)) = proc.stat(before.pid)
                && now.key() == before.key()
                && self.fits(proc, &now)
            {
                watched.add(now.key());
            }
        }
    }

    fn fits(&self, proc: &ProcFs, stat: &Stat) -> bool {
        self.heirs.contains(&stat.ppid)
            && self.agents_place.is_some()
            && proc.membership(stat.pid).ok().flatten() == self.agents_place
            && proc.is_own_users(stat.pid)
    }
}
