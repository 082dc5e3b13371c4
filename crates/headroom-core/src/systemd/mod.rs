//! systemd over D-Bus: a pool unit that it makes and delegates, with one leaf cgroup a job below it. A
//! delegated cgroup is the only place where somebody else may make cgroups beside systemd. See
//! org.freedesktop.systemd1(5) and <https://systemd.io/CGROUP_DELEGATION/>.

mod bus;
mod deadline;
mod guard;
mod manager;
mod pool;
mod service;

pub use bus::{Bus, find_socket};
pub(crate) use guard::Guard;
pub use manager::{Manager, UnitLimits};
pub(crate) use pool::guard_pool_of;
pub use pool::{POOL_PREFIX, Pool};
pub use service::{Service, start_service};
