//! One job from start to end: spawned into its box before exec, watched, accounted for.

mod account;
mod entrance;
mod events;
mod foreign_unit;
mod kernel_log;
mod report;
mod sessions;
mod spawn;
mod supervise;
mod userspace_cap;
mod watch;
mod watched;

pub use entrance::{Entrance, Registration};
pub use events::Event;
pub(crate) use events::EventSink;
pub(crate) use foreign_unit::ForeignUnit;
pub(crate) use kernel_log::KernelLog;
pub use report::{Ended, LeftProcess, Victim};
pub use spawn::{Command, SpawnError, Spawned, Stdio, spawn, spawn_admitted};
pub(crate) use supervise::guard_orphan;
pub use supervise::{RunningJob, Supervision, members_of, start};
pub use userspace_cap::UserspaceCap;
pub(crate) use watch::{Measure, Watch};
pub(crate) use watched::{Watched, describe};
