//! A process that keeps a pool alive while somebody needs it. systemd removes a scope, and with it the
//! counters of its jobs, the moment its last process ends; a job's account could not be closed.

use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::process::start_attendant;

/// How long a guard may take to end by itself.
const EXIT_PATIENCE: Duration = Duration::from_millis(200);

/// Waits for the end of its input, which comes when its maker drops it or dies.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

impl Guard {
    pub(crate) fn start() -> Result<Self> {
        let mut child = start_attendant("headroom-guard", "read -r _")?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Whether it is gone although its maker still holds its input: somebody has ended the pool.
    pub(crate) fn was_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.input.take());
        if !self.ends_within(EXIT_PATIENCE) {
            // Stopped or frozen: it cannot see the end of its input.
            let _gone_is_fine = self.child.kill();
            let _left_if_it_is_stuck = self.ends_within(EXIT_PATIENCE);
        }
    }
}

impl Guard {
    fn ends_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        // An error means that somebody else has collected it.
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}
