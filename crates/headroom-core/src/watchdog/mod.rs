//! The watchdog: a thread that stops or pauses the newest job while there is still memory to do it with.
//!
//! The kernel's caps are the guarantee that a job stays in its box; the watchdog is for what no cap sees: the
//! rest of the machine growing while jobs run within their caps. It measures, decides and acts on its own
//! thread, so a host whose JavaScript is busy, or stuck in reclaim, is no obstacle. One watchdog of a user
//! acts at a time; others stand by for its end.
//!
//! Thresholds come from outside; the order of events (pause, terminate, kill, rest) is `plan`'s.

mod candidate;
mod danger;
mod gauge;
mod page_out;
mod pin;
mod plan;
mod rules;
mod watch;

pub use crate::journal::Cause;
pub use danger::{Judge, Verdict};
pub use gauge::{Gauge, Reading, Stalls};
pub use plan::{Plan, Step};
pub use rules::Rules;
pub use watch::{Running, start, wake_forgotten};
