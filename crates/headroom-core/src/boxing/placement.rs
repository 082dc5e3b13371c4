//! Where boxes of a mode are made.

use std::path::{Path, PathBuf};

use crate::boxing::{BoxId, JobBox, Limits, Mode};
use crate::cgroup::{Cgroup, Version};
use crate::error::Result;
use crate::proc::ProcFs;

/// In the v2 hierarchy a job's limits stand on its own directory and its processes sit one level below:
/// a cgroup with processes cannot have children with a controller, and a `run` inside a job needs some.
pub(super) const V2_SEAT: &str = "job";

/// A proven place for boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// How jobs are held there.
    pub mode: Mode,
    /// The cgroup below which boxes are made; none in `userspace` and `off`.
    pub base: Option<PathBuf>,
}

impl Placement {
    /// Which interface the cgroups of a mode have.
    #[must_use]
    pub fn version(mode: Mode) -> Version {
        if mode == Mode::Cgroup1 { Version::V1 } else { Version::V2 }
    }

    /// Makes a box with its limits set, before anything is inside.
    pub fn make_box(&self, id: BoxId, limits: Limits) -> Result<JobBox> {
        let Some(base) = &self.base else { return Ok(JobBox::without_cgroup(self.mode, id, limits)) };
        let base = Cgroup::open(base, Self::version(self.mode))?;
        let name = id.cgroup_name();
        let job = base.make_child(&name)?;
        let made = (|| {
            job.set_limits(limits.memory_bytes, limits.swap)?;
            let seat = match job.version() {
                Version::V1 => Cgroup::open(job.path(), Version::V1)?,
                Version::V2 => {
                    job.dir().write("cgroup.subtree_control", "+memory")?;
                    job.make_child(V2_SEAT)?
                }
            };
            Ok(seat)
        })();
        match made {
            Ok(seat) => Ok(JobBox::with_cgroup(self.mode, id, limits, base, job, seat)),
            Err(error) => {
                let _nothing_was_made = base.remove_child(&name);
                Err(error)
            }
        }
    }

    /// Removes boxes whose maker is dead and which hold no process. Answers the names of those removed.
    pub fn remove_abandoned(&self, proc: &ProcFs) -> Result<Vec<String>> {
        let Some(base) = &self.base else { return Ok(Vec::new()) };
        let base = Cgroup::open(base, Self::version(self.mode))?;
        let mut removed = Vec::new();
        for name in base.dir().dirs()? {
            let Some(name) = name.to_str() else { continue };
            let Some(id) = BoxId::from_cgroup_name(name) else { continue };
            if proc.is_alive(id.owner) || !is_empty(base.path(), name, base.version()) {
                continue;
            }
            if base.remove_child(name)? {
                removed.push(name.to_owned());
            }
        }
        Ok(removed)
    }
}

fn is_empty(base: &Path, name: &str, version: Version) -> bool {
    Cgroup::open(base.join(name), version).and_then(|cgroup| cgroup.pids()).is_ok_and(|pids| pids.is_empty())
}
