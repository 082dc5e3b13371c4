//! systemd over D-Bus: a pool unit that it makes and delegates, with one leaf cgroup a job below it. A
//! delegated cgroup is the only place where somebody else may make cgroups beside systemd. See
//! org.freedesktop.systemd1(5) and <https://systemd.io/CGROUP_DELEGATION/>.

mod bus;
mod deadline;
mod door;
mod guard;
mod manager;
mod pool;

pub use bus::{Bus, find_socket};
pub(crate) use door::Door;
pub(crate) use guard::Guard;
pub use manager::{Manager, UnitLimits};
pub use pool::{POOL_PREFIX, Pool};
