//! Jobs on record: one locked file a job in a directory that only this user can reach. The lock says
//! that the job's starter lives; the file says where the box is when it does not.

mod adopt;
mod jobs;
mod record;
mod runtime_dir;

pub use adopt::{adopt, keep_adopting};
pub use jobs::{JobState, JobView, broken, jobs, sweep};
pub use record::{Facts, Record};
pub(crate) use runtime_dir::Mark;
pub use runtime_dir::RuntimeDir;
