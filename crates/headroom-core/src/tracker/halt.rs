//! Lets a job stand still for the moment in which it is moved.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::proc::{ProcFs, ProcessKey, Stat};
use crate::process::PidFd;
use crate::tracker::stop_guard;

/// How long a job may be on its way to a standstill before it is moved as it is.
const PATIENCE: Duration = Duration::from_millis(100);
/// So many looks must find nobody new.
const QUIET_LOOKS: u32 = 2;
const PAUSE: Duration = Duration::from_micros(100);

/// Stopped processes, until this is dropped. Those that somebody else had stopped stay stopped.
#[derive(Debug, Default)]
pub(super) struct Halt {
    seen: HashSet<ProcessKey>,
    stopped: Vec<PidFd>,
}

impl Halt {
    /// Stops what `family` lists, and those that they start meanwhile, until nobody new is found and all stand
    /// still. Answers the family as it was then.
    pub(super) fn bring_to_rest(&mut self, proc: &ProcFs, mut family: impl FnMut() -> Vec<Stat>) -> Vec<Stat> {
        let deadline = Instant::now() + PATIENCE;
        let mut quiet_looks = 0;
        loop {
            let found = family();
            let mut is_quiet = found.iter().all(stands_still);
            for stat in &found {
                is_quiet &= !self.stop(proc, stat);
            }
            quiet_looks = if is_quiet { quiet_looks + 1 } else { 0 };
            if quiet_looks == QUIET_LOOKS || Instant::now() > deadline {
                return found;
            }
            if !is_quiet {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Stops a process that was not seen before. Whether it was new.
    pub(super) fn stop(&mut self, proc: &ProcFs, stat: &Stat) -> bool {
        let is_new = self.seen.insert(stat.key());
        if is_new
            && !matches!(stat.state, 'T' | 't')
            && let Ok(handle) = PidFd::open_exactly(proc, stat.key())
            && stop_guard::remember(stat.pid)
        {
            if handle.signal(libc::SIGSTOP).is_ok() {
                self.stopped.push(handle);
            } else {
                stop_guard::forget(stat.pid);
            }
        }
        is_new
    }
}

/// A process in `D` starts nobody; one that waits for a vfork to end stays so while its child is stopped.
fn stands_still(stat: &Stat) -> bool {
    matches!(stat.state, 'T' | 't' | 'D' | 'Z' | 'X') || stat.is_exiting
}

impl Drop for Halt {
    fn drop(&mut self) {
        // Children first: a shell with job control must not learn that they were stopped.
        for handle in self.stopped.drain(..).rev() {
            let _gone_is_fine = handle.signal(libc::SIGCONT);
            stop_guard::forget(handle.pid());
        }
    }
}
