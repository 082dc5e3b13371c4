//! Boxing a command that another process (the agent) starts. The box is there before the command; its shell
//! is found by looking at the agent's new children, stopped with all that it has started, moved in, and
//! continued.
//!
//! What starts before the box is entered starts outside, and what the shell started in that time has to be found.
//! Whatever a process in the box starts later is born there.

mod call;
mod enter;
mod halt;
mod newcomers;
mod registry;
mod relatives;
mod search;
mod stay;
mod stop_guard;
mod track;

pub use call::TrackedCall;
pub use registry::finish;
pub use track::{TrackError, Tracked, track};
