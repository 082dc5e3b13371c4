//! The processes of a cgroup: listing, killing.

use std::time::{Duration, Instant};

use crate::cgroup::Cgroup;
use crate::error::{Error, Result};
use crate::process::PidFd;

/// How long processes may take to end after SIGKILL before `kill_all` gives up waiting.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

impl Cgroup {
    /// Process numbers in this cgroup and below, ascending. Zombies are not listed by the kernel.
    pub fn pids(&self) -> Result<Vec<i32>> {
        let text = self.dir().read_if_present("cgroup.procs")?.unwrap_or_default();
        let mut pids = Vec::new();
        for line in text.lines() {
            let pid =
                line.parse().map_err(|_| Error::parse(self.path().join("cgroup.procs"), line, "a process number"))?;
            // 0 stands for a process of a pid namespace that cannot be seen from here.
            if pid > 0 {
                pids.push(pid);
            }
        }
        for child in self.children()? {
            pids.extend(child.pids()?);
        }
        pids.sort_unstable();
        Ok(pids)
    }

    /// Kills everything in this cgroup and below, and waits until it is empty. `false` when something
    /// is still there after two seconds (a process stuck in the kernel).
    pub fn kill_all(&self) -> Result<bool> {
        let deadline = Instant::now() + KILL_PATIENCE;
        // One write kills all at once on v2 since 5.14; elsewhere process by process until none is left,
        // because one may fork while its parent is being killed.
        let _absent_before_5_14 = self.dir().write("cgroup.kill", "1");
        loop {
            let pids = self.pids()?;
            if pids.is_empty() {
                return Ok(true);
            }
            let handles: Vec<PidFd> = pids.into_iter().filter_map(|pid| PidFd::open(pid).ok()).collect();
            // A number may have changed hands before its handle was open: only who is still listed is killed.
            let still_listed = self.pids()?;
            for process in handles.iter().filter(|process| still_listed.contains(&process.pid())) {
                let _gone_is_fine = process.signal(libc::SIGKILL);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
