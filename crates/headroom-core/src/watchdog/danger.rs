//! Whether a measurement means danger. Pure: time comes with the readings.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::journal::Cause;
use crate::watchdog::{Reading, Rules, Stalls};

/// Waiting is judged over this long.
const WINDOW: Duration = Duration::from_secs(1);
/// With a shorter history nothing is said about waiting.
const SHORTEST_HISTORY: Duration = Duration::from_millis(500);
/// The fastest that memory is filled: a C program did 2.7 GiB/s where this was measured.
const GROWTH_BYTES_PER_MS: u64 = 3 << 20;
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What one reading means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Danger, and why.
    pub cause: Option<Cause>,
    /// The cause is the agent's own waiting while there seems to be enough: it counts only when no job is in the
    /// agent's cgroup or below it, because those wait there too.
    pub is_agents_own: bool,
    /// Less than half of the critical line is left.
    pub is_emergency: bool,
    /// Available memory then, bytes.
    pub available_bytes: u64,
    /// Free swap then, bytes.
    pub swap_free_bytes: u64,
    /// How long to wait before the next reading.
    pub pause: Duration,
}

/// Judges readings in their order.
#[derive(Debug)]
pub struct Judge {
    rules: Rules,
    /// Totals of the last second, and the last one before it.
    history: VecDeque<(Instant, u64)>,
}

impl Judge {
    /// By these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, history: VecDeque::new() }
    }

    /// Judges the newest reading.
    pub fn judge(&mut self, reading: &Reading) -> Verdict {
        let available_bytes = reading.available_bytes;
        let is_low = available_bytes < self.rules.critical_bytes;
        let stalled = self.stalled(reading);
        let room = available_bytes.saturating_sub(self.rules.critical_bytes);
        Verdict {
            cause: if is_low { Some(Cause::Available) } else { stalled },
            is_agents_own: !is_low && stalled.is_some() && available_bytes >= self.rules.reserve_bytes,
            is_emergency: available_bytes < self.rules.critical_bytes / 2,
            available_bytes,
            swap_free_bytes: reading.swap_free_bytes,
            pause: Duration::from_millis(room / GROWTH_BYTES_PER_MS).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
        }
    }

    fn stalled(&mut self, reading: &Reading) -> Option<Cause> {
        let (Stalls::Agent { total_us: total } | Stalls::System { total_us: total } | Stalls::Refaults { total }) =
            reading.stalls
        else {
            return None;
        };
        // Totals that went back are another cgroup's, or another boot's.
        if self.history.back().is_some_and(|(at, last)| *last > total || *at > reading.at) {
            self.history.clear();
        }
        self.history.push_back((reading.at, total));
        while self.history.get(1).is_some_and(|(at, _)| reading.at.duration_since(*at) >= WINDOW) {
            self.history.pop_front();
        }
        let (since, first) = *self.history.front()?;
        let took = reading.at.duration_since(since);
        if took < SHORTEST_HISTORY {
            return None;
        }
        let grown = total - first;
        // A job that thrashes within its own box stalls the machine's numbers too: those count only while
        // memory is short for everybody.
        let is_short = reading.available_bytes < self.rules.reserve_bytes;
        match reading.stalls {
            Stalls::Refaults { .. } => {
                let per_s = u128::from(grown) * 1000 / took.as_millis().max(1);
                let per_s = u64::try_from(per_s).unwrap_or(u64::MAX);
                (is_short && per_s >= self.rules.refaults_per_s).then_some(Cause::Refaults(per_s))
            }
            stalls => {
                let percent = u128::from(grown) * 100 / took.as_micros().max(1);
                let percent = u32::try_from(percent).unwrap_or(u32::MAX).min(100);
                let counts = is_short || matches!(stalls, Stalls::Agent { .. });
                (counts && percent >= self.rules.stalled_percent).then_some(Cause::Stalled(percent))
            }
        }
    }

    /// What happened before an action says nothing about the time after it.
    pub fn forget(&mut self) {
        self.history.clear();
    }
}
