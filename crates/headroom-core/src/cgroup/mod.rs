//! Memory cgroups of both versions behind one handle. v1: the kernel's
//! Documentation/admin-guide/cgroup-v1/memory.rst; v2: Documentation/admin-guide/cgroup-v2.rst.

mod handle;
mod limit;
mod locate;
mod members;

pub use handle::{Cgroup, Peak, PeakSource};
pub use limit::Limit;
pub use locate::{Hierarchies, Place, Version};
