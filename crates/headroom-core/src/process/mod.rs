//! Single processes: race-free handles, `oom_score_adj`, signals passed on.

mod forward;
mod oom_score;
mod pidfd;
mod promptness;
mod reap;
mod trial;

pub use forward::{ForwardedSignal, SignalForwarder};
pub(crate) use oom_score::raise_oom_score_adj;
pub use oom_score::{OomScore, own_oom_score_adj};
pub use pidfd::PidFd;
pub(crate) use promptness::react_at_once;
pub use reap::{Ending, become_subreaper, reap, reap_orphans};
pub use trial::can_enter;
