//! The jobs that can be acted on, and what can be done with one.

use crate::boxing::{BoxId, Mode, Placement};
use crate::cgroup::Cgroup;
use crate::error::Result;
use crate::journal::{Facts, RuntimeDir, records};
use crate::proc::{ProcFs, ProcessKey};
use crate::process::PidFd;

/// One job with processes in it.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) id: BoxId,
    pub(super) facts: Facts,
    cgroup: Option<Cgroup>,
}

/// The jobs on record that have processes, oldest first.
pub(super) fn candidates(proc: &ProcFs, runtime: &RuntimeDir) -> Vec<Candidate> {
    let found = records(proc, runtime).unwrap_or_default().into_iter().filter_map(|(id, facts)| {
        let candidate = Candidate { id, cgroup: own_cgroup(id, &facts), facts };
        candidate.is_populated(proc).then_some(candidate)
    });
    let mut found: Vec<Candidate> = found.collect();
    found.sort_by_key(|candidate| {
        let Facts { started_boot_ms, owner, .. } = candidate.facts;
        (started_boot_ms, owner.start_ticks, candidate.id.sequence, owner.pid)
    });
    found
}

/// A record is a file that its user can edit: nothing but a job's own cgroup is ever touched.
fn own_cgroup(id: BoxId, facts: &Facts) -> Option<Cgroup> {
    let path = crate::journal::own_cgroup_path(id, facts)?;
    Cgroup::open(path, Placement::version(facts.mode)).ok()
}

impl Candidate {
    fn is_populated(&self, proc: &ProcFs) -> bool {
        match &self.cgroup {
            Some(cgroup) => cgroup.pids().is_ok_and(|pids| !pids.is_empty()),
            // A whole look at the machine for each job without a cgroup would cost more than all else.
            None if self.facts.mode == Mode::Userspace => {
                let is_alive = |key: ProcessKey| proc.is_alive(key);
                let is_watched = || !self.facts.left && is_alive(self.facts.owner);
                // Whose command has not come yet has nothing to give back.
                self.facts.root.is_some_and(|root| is_alive(root) || is_watched())
            }
            None => false,
        }
    }

    /// Handles on all of its processes, and on nobody else.
    fn members(&self, proc: &ProcFs) -> Vec<PidFd> {
        let Some(cgroup) = &self.cgroup else {
            let members = crate::job::members_of(proc, self.id, self.facts.root);
            let keys = members.into_iter().filter_map(|process| proc.living(process.pid).ok().flatten());
            return keys.filter_map(|key| PidFd::open_exactly(proc, key).ok()).collect();
        };
        let opened: Vec<PidFd> =
            cgroup.pids().unwrap_or_default().into_iter().filter_map(|pid| PidFd::open(pid).ok()).collect();
        // A number may have changed hands before its handle was open: only who is still listed counts.
        let listed = cgroup.pids().unwrap_or_default();
        opened.into_iter().filter(|process| listed.binary_search(&process.pid()).is_ok()).collect()
    }

    fn signal_all(&self, proc: &ProcFs, signal: i32) -> usize {
        self.members(proc).iter().filter(|process| process.signal(signal).is_ok()).count()
    }

    /// Lets it stand still. Where the kernel cannot freeze the box its processes are stopped, and those that
    /// they start meanwhile, until a look finds nobody new.
    pub(super) fn freeze(&self, proc: &ProcFs) {
        const ROUNDS: u32 = 5;
        if self.write("cgroup.freeze", "1").is_ok() {
            return;
        }
        let mut stopped = 0;
        for _ in 0..ROUNDS {
            let now = self.signal_all(proc, libc::SIGSTOP);
            if now == stopped {
                break;
            }
            stopped = now;
        }
    }

    /// Lets it go on.
    pub(super) fn thaw(&self, proc: &ProcFs) {
        if self.write("cgroup.freeze", "0").is_err() {
            self.signal_all(proc, libc::SIGCONT);
        }
    }

    /// Asks all of it to end. One that stands still hears it when it goes on.
    pub(super) fn terminate(&self, proc: &ProcFs, stands_still: bool) {
        self.signal_all(proc, libc::SIGTERM);
        if stands_still {
            self.thaw(proc);
        }
    }

    /// Kills all of it that is there now; does not wait.
    pub(super) fn kill(&self, proc: &ProcFs) {
        // One write kills all at once on v2 since 5.14; who stands still dies as well.
        if self.write("cgroup.kill", "1").is_err() {
            self.signal_all(proc, libc::SIGKILL);
        }
    }

    pub(super) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    pub(super) fn pids(&self, proc: &ProcFs) -> Vec<PidFd> {
        self.members(proc)
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let gone = || crate::error::Error::Gone { pid: self.facts.owner.pid };
        self.cgroup.as_ref().ok_or_else(gone)?.dir().write(file, value)
    }
}
