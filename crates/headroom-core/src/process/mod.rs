//! Single processes: race-free handles, `oom_score_adj`, signals passed on.

mod forward;
mod oom_score;
mod pidfd;
mod reap;

pub use forward::{ForwardedSignal, SignalForwarder};
pub use oom_score::{OomScore, own_oom_score_adj};
pub use pidfd::PidFd;
pub use reap::{Ending, become_subreaper, reap, reap_orphans};
