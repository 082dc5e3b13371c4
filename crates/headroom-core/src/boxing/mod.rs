//! The box: what holds a job's memory. A mode says how; a placement says where; a box is one job's.

mod id;
mod job_box;
mod mode;
mod placement;
mod probe;

pub use id::{BOX_PREFIX, BoxId};
pub use job_box::{JobBox, Limits};
pub use mode::Mode;
pub use placement::Placement;
pub use probe::{Obstacle, Verdict, probe};
