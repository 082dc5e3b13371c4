//! Jobs on record: one locked file a job in a directory that only this user can reach. The lock says
//! that the job's starter lives; the file says where the box is when it does not.

mod adopt;
mod claim;
mod jobs;
pub(crate) mod locked;
mod mark;
mod record;
mod runtime_dir;

pub use adopt::{adopt, keep_adopting};
pub use claim::Claim;
pub use jobs::{JobState, JobView, broken, jobs, sweep};
pub(crate) use jobs::{own_cgroup_path, records};
pub use mark::{Cause, Handling, Mark};
pub use record::{Facts, Record};
pub use runtime_dir::RuntimeDir;
pub(crate) use runtime_dir::Stamp;
