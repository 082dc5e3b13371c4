//! /proc/PID/cgroup: where a process sits in each hierarchy. See cgroups(7).

use crate::error::{Error, Result};
use crate::proc::ProcFs;

/// The cgroups of one process, as paths inside their hierarchies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Path in the v2 hierarchy (the line `0::/…`).
    pub v2: Option<String>,
    /// Path in the v1 hierarchy that has the memory controller.
    pub v1_memory: Option<String>,
}

impl Membership {
    /// Whether one of the paths has a component with exactly this name.
    #[must_use]
    pub fn has_component(&self, name: &str) -> bool {
        [&self.v2, &self.v1_memory].into_iter().flatten().any(|path| path.split('/').any(|part| part == name))
    }
}

impl ProcFs {
    /// Reads a process's cgroups; `None` when it is gone.
    pub fn membership(&self, pid: i32) -> Result<Option<Membership>> {
        self.membership_in(&format!("{pid}/cgroup"))
    }

    /// The cgroups of this very process; empty on a kernel without cgroups.
    pub fn own_membership(&self) -> Result<Membership> {
        Ok(self.membership_in("self/cgroup")?.unwrap_or_default())
    }

    fn membership_in(&self, file: &str) -> Result<Option<Membership>> {
        let Some(text) = self.dir().read_if_present(file)? else { return Ok(None) };
        let mut membership = Membership::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(id), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                return Err(Error::parse(self.dir().path().join(file), line, "`ID:CONTROLLERS:PATH`"));
            };
            if id == "0" && controllers.is_empty() {
                membership.v2 = Some(path.to_owned());
            } else if controllers.split(',').any(|controller| controller == "memory") {
                membership.v1_memory = Some(path.to_owned());
            }
        }
        Ok(Some(membership))
    }
}
