//! Telling who waits from who only stands there. Whoever waits asks again and again, and each time leaves a
//! stamp (a new time on its file); whose stamp stays the same is stopped (SIGSTOP, a debugger, a frozen cgroup)
//! and must not be waited for.
//!
//! Stamps are compared with one another, never with a clock: the wall clock may jump.

use std::time::{Duration, Instant};

/// A stamp that stays the same for so long, and at so many looks, is nobody's who goes on. The looks are for a
/// machine on which everybody stood still, the one who looks as well.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
pub(super) const LOOKS: u32 = 8;

/// Something that was seen before.
#[derive(Debug)]
pub(super) struct Seen<T> {
    stamp: T,
    since: Instant,
    looks: u32,
}

impl<T: PartialEq> Seen<T> {
    pub(super) fn first(stamp: T, now: Instant) -> Self {
        Self { stamp, since: now, looks: 0 }
    }

    /// Looks once more; whether it has been the same for too long.
    pub(super) fn is_stale(&mut self, stamp: T, now: Instant) -> bool {
        if self.stamp != stamp {
            *self = Self::first(stamp, now);
        }
        self.looks = self.looks.saturating_add(1);
        self.looks > LOOKS && now.saturating_duration_since(self.since) >= SILENCE
    }
}
