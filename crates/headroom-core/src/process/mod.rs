//! Single processes: race-free handles, `oom_score_adj`, signals passed on.

mod attendant;
mod forward;
mod oom_score;
mod peer;
mod pidfd;
mod reap;
mod trial;

pub(crate) use attendant::start_attendant;
pub use forward::{ForwardedSignal, SignalForwarder};
pub use oom_score::{OomScore, oom_score_adj, own_oom_score_adj};
pub use peer::peer_uid;
pub use pidfd::PidFd;
pub use reap::{Ending, become_subreaper, reap, reap_orphans};
pub use trial::can_enter;
