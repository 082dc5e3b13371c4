//! Who belongs to a job without being in its box.

use std::collections::HashSet;

use crate::job::Watched;
use crate::proc::{Membership, ProcFs, ProcessKey, Stat};
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

/// Programs that inherit the orphans of what is below them (`PR_SET_CHILD_SUBREAPER`); the kernel does not tell.
const HEIRS: [&str; 8] =
    ["systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "conmon", "containerd-shim"];

/// Of the shell's variables so many parts must stand in a process's environment as they do in the shell's: its own
/// offspring has nearly all of them, a stranger's beside it has not those that the agent has added.
const SAME_PERCENT: usize = 90;

/// Recognises those that left the job's session before it was boxed (`setsid -f`): orphans, younger than the shell,
/// with its environment, where the agent is and in no box, while no other call is starting. Whoever is not certain
/// is left alone: what is taken for the job's may be killed with it.
#[derive(Debug)]
pub(super) struct OrphanRule {
    /// Who inherits the agent's orphans.
    heirs: HashSet<i32>,
    /// The agent, whatever is above it, and this process.
    never: HashSet<i32>,
    agents_place: Option<Membership>,
}

impl OrphanRule {
    pub(super) fn new(proc: &ProcFs, agent_pid: i32) -> Self {
        let tree = proc.tree().unwrap_or_default();
        let is_heir = |stat: &&Stat| HEIRS.iter().any(|name| stat.name.starts_with(name));
        let heirs = tree.ancestors(agent_pid).filter(is_heir).map(|stat| stat.pid).chain([1]).collect();
        let own_pid = std::process::id().cast_signed();
        let above = |pid| tree.ancestors(pid).map(|stat| stat.pid).chain([pid]);
        let never = above(agent_pid).chain(above(own_pid)).collect();
        Self { heirs, never, agents_place: proc.membership(agent_pid).ok().flatten() }
    }

    /// Adds those of the new processes that fit.
    pub(super) fn adopt(&self, proc: &ProcFs, watched: &mut Watched, shell: &Shell, unknown: &[Stat]) {
        for before in unknown {
            // Whose child it is may have changed.
            if let Ok(Some(now)) = proc.stat(before.pid)
                && now.key() == before.key()
                && self.fits(proc, shell, &now)
            {
                watched.add(now.key());
            }
        }
    }

    fn fits(&self, proc: &ProcFs, shell: &Shell, stat: &Stat) -> bool {
        self.heirs.contains(&stat.ppid)
            && !self.never.contains(&stat.pid)
            && stat.start_ticks >= shell.key.start_ticks
            && self.agents_place.is_some()
            && proc.membership(stat.pid).ok().flatten() == self.agents_place
            && proc.is_own_users(stat.pid)
            && shell.has_passed_on(proc, stat.pid)
    }
}

/// A shell that was found, with what it was started with.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) key: ProcessKey,
    environment: HashSet<Vec<u8>>,
}

impl Shell {
    pub(super) fn new(proc: &ProcFs, key: ProcessKey) -> Self {
        Self { key, environment: proc.environment(key.pid).into_iter().collect() }
    }

    fn has_passed_on(&self, proc: &ProcFs, pid: i32) -> bool {
        let found: HashSet<Vec<u8>> = proc.environment(pid).into_iter().collect();
        let same = self.environment.intersection(&found).count();
        !self.environment.is_empty() && same * 100 >= self.environment.len() * SAME_PERCENT
    }
}
