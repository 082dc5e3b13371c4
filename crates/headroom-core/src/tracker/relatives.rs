//! Which of the new processes are a found command's: by descent, by session, and, in the moment of its start, lost
//! ones (a daemon that has made itself a session of its own and whose parent is gone already).

use std::collections::HashSet;

use crate::error::Result;
use crate::job::Watched;
use crate::proc::{Membership, ProcFs, ProcessKey, Stat, boot_ms};
use crate::tracker::call::{CommandLine, is_of};
use crate::tracker::search::Search;

/// Variables that a shell sets itself.
const SET_BY_SHELLS: [&[u8]; 5] = [b"_=", b"PWD=", b"OLDPWD=", b"SHLVL=", b"COLUMNS="];
/// A lost process has this part of the command's environment at least (3/4).
const ALIKE: (usize, usize) = (3, 4);

/// Where the agent stands, as it was before the command.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub(super) agent: i32,
    uid: u32,
    session: i32,
    pub(super) is_in: Membership,
    /// Who gets the orphans of its descendants: the nearest ancestor that has asked for them (which /proc does not
    /// tell, but a systemd manager has), else the first process.
    reapers: HashSet<i32>,
}

impl Surroundings {
    /// `None` when the agent is gone.
    pub(super) fn of(proc: &ProcFs, agent: i32) -> Result<Option<Self>> {
        let (Some(status), Some(stat), Some(is_in)) = (proc.status(agent)?, proc.stat(agent)?, proc.membership(agent)?)
        else {
            return Ok(None);
        };
        let mut reapers = HashSet::from([1]);
        let mut above = stat.ppid;
        while let Some(parent) = proc.stat(above)? {
            if parent.name == "systemd" {
                reapers.insert(parent.pid);
            }
            above = parent.ppid;
        }
        Ok(Some(Self { agent, uid: status.uid, session: stat.session, is_in, reapers }))
    }

    /// Whether a process has lost its parent, and may have been started below the agent: nothing else is told.
    pub(super) fn may_have_lost(&self, proc: &ProcFs, stat: &Stat) -> bool {
        self.reapers.contains(&stat.ppid)
            && stat.session != self.session
            && proc.membership(stat.pid).is_ok_and(|found| found.as_ref() == Some(&self.is_in))
            && proc.status(stat.pid).is_ok_and(|status| status.is_some_and(|status| status.uid == self.uid))
    }

    /// Whether this process may look after the agent's commands.
    pub(super) fn is_of_this_user(&self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }
}

/// What identifies lost processes of one command.
#[derive(Debug)]
pub(super) struct Lost {
    root: ProcessKey,
    around: Surroundings,
    /// Empty when the command had ended before it could be read.
    environment: HashSet<Vec<u8>>,
    /// Who was seen before the command. Start times tell no more than hundredths of a second.
    strangers: HashSet<ProcessKey>,
    /// Of the call, squashed.
    texts: Vec<Vec<u8>>,
    /// Clock ticks since boot after which nobody can have been started outside; open until the box is entered.
    until_ticks: u64,
}

impl Lost {
    pub(super) fn of(proc: &ProcFs, root: ProcessKey, around: &Surroundings, search: &Search) -> Self {
        let environment = environment(proc, root.pid).unwrap_or_default();
        let (strangers, texts) = (search.strangers(), search.texts.clone());
        Self { root, around: around.clone(), environment, strangers, texts, until_ticks: u64::MAX }
    }

    /// From now on whatever the command's processes start is born in the box.
    pub(super) fn box_is_entered(&mut self) {
        if self.until_ticks == u64::MAX {
            let per_second = rustix::param::clock_ticks_per_second().max(1);
            self.until_ticks = boot_ms().saturating_mul(per_second) / 1000 + 1;
        }
    }

    pub(super) fn learn_reaper(&mut self, pid: i32) {
        // An agent that collects orphans has its own children too.
        if pid != self.around.agent {
            self.around.reapers.insert(pid);
        }
    }

    /// Whether a process was started with the command, lost its parent, and nothing says that it is another's.
    pub(super) fn includes(&self, proc: &ProcFs, stat: &Stat) -> bool {
        (self.root.start_ticks..=self.until_ticks).contains(&stat.start_ticks)
            && !self.strangers.contains(&stat.key())
            && self.around.may_have_lost(proc, stat)
            && (environment(proc, stat.pid).is_some_and(|found| self.is_alike(&found))
                || self.is_of_text(proc, stat.pid))
    }

    fn is_of_text(&self, proc: &ProcFs, pid: i32) -> bool {
        let line = proc.dir().read_bytes(format!("{pid}/cmdline")).unwrap_or_default();
        is_of(&CommandLine(&line).squashed(), &self.texts)
    }

    fn is_alike(&self, environment: &HashSet<Vec<u8>>) -> bool {
        let shared = self.environment.intersection(environment).count();
        shared > 0 && shared * ALIKE.1 >= self.environment.len() * ALIKE.0
    }
}

fn environment(proc: &ProcFs, pid: i32) -> Option<HashSet<Vec<u8>>> {
    let bytes = proc.dir().read_bytes(format!("{pid}/environ")).ok()?;
    let entries = bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let told = entries.filter(|entry| !SET_BY_SHELLS.iter().any(|name| entry.starts_with(name)));
    Some(told.map(<[u8]>::to_vec).collect())
}

/// Adds the relatives among new processes to the known ones. Answers every living member of the job among the
/// new ones, as it is now.
pub(super) fn relatives(
    proc: &ProcFs,
    watched: &mut Watched,
    newcomers: &[i32],
    mut lost: Option<&mut Lost>,
    mut may_take: impl FnMut(ProcessKey) -> bool,
) -> Vec<Stat> {
    let read = |pid: &i32| proc.stat(*pid).ok().flatten().filter(|stat| !stat.is_zombie());
    let mut strangers: Vec<Stat> = newcomers.iter().filter_map(read).collect();
    let mut family = Vec::new();
    // A child may stand before its parent in the list.
    loop {
        let before = family.len();
        strangers.retain(|stat| {
            let is_ours = watched.has(stat.key())
                || watched.is_related(stat)
                || lost.as_ref().is_some_and(|lost| lost.includes(proc, stat));
            let is_taken = is_ours && may_take(stat.key());
            if is_taken {
                watched.add(stat);
                family.push(stat.clone());
            }
            !is_taken
        });
        if family.len() == before {
            break;
        }
    }
    if let Some(lost) = &mut lost {
        let is_orphan = |stat: &&Stat| stat.pid != lost.root.pid && !watched.knows(stat.ppid);
        let adopters: Vec<i32> = family.iter().filter(is_orphan).map(|stat| stat.ppid).collect();
        for pid in adopters {
            lost.learn_reaper(pid);
        }
    }
    family
}
