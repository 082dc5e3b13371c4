//! Memory that this process could really get: the machine's, bounded by every limit above it.

use std::path::PathBuf;

use crate::cgroup::{Cgroup, Hierarchies};
use crate::error::Result;
use crate::memory::MemInfo;
use crate::proc::ProcFs;

/// A cgroup above this process that has a memory limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// The cgroup's directory.
    pub cgroup: PathBuf,
    /// Its limit, bytes.
    pub limit_bytes: u64,
    /// What is left below the limit, cache that can be dropped not counted as used, bytes.
    pub left_bytes: u64,
}

/// The machine's memory and what the limits above this process leave of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// The smaller of the machine's memory and the lowest limit, bytes.
    pub total_bytes: u64,
    /// The smaller of the machine's available memory and what the tightest limit leaves, bytes. Swap
    /// and zram are not room.
    pub available_bytes: u64,
    /// The machine itself.
    pub machine: MemInfo,
    /// Limits above this process, nearest first.
    pub ceilings: Vec<Ceiling>,
}

impl Available {
    /// Measures from this process's own cgroups upwards.
    pub fn measure(proc: &ProcFs) -> Result<Self> {
        let machine = proc.meminfo()?;
        let ceilings = Ceilings::find(proc)?.measure();
        let total_bytes = ceilings.iter().map(|c| c.limit_bytes).fold(machine.total_bytes, u64::min);
        let available_bytes = ceilings.iter().map(|c| c.left_bytes).fold(machine.available_bytes, u64::min);
        Ok(Self { total_bytes, available_bytes, machine, ceilings })
    }
}

/// The cgroups above this process that had a limit when they were looked for, kept open for measuring often.
#[derive(Debug)]
pub struct Ceilings {
    cgroups: Vec<Cgroup>,
}

impl Ceilings {
    /// Looks from this process's own cgroups upwards.
    pub fn find(proc: &ProcFs) -> Result<Self> {
        let hierarchies = Hierarchies::of_self(proc)?;
        let places = [&hierarchies.v2, &hierarchies.v1_memory].into_iter().flatten();
        let cgroups = places.flat_map(|place| place.own_and_above().map(|dir| Cgroup::open(dir, place.version)));
        let mut cgroups: Vec<Cgroup> = cgroups.filter_map(Result::ok).collect();
        cgroups.retain(|cgroup| ceiling(cgroup).is_some());
        Ok(Self { cgroups })
    }

    /// What the tightest of them leaves, bytes; `None` without any. What can be dropped is looked up, which costs
    /// the kernel most, only where less than `enough` is left without it.
    #[must_use]
    pub fn left_bytes(&self, enough: u64) -> Option<u64> {
        let left = |cgroup: &Cgroup| {
            let limit_bytes = cgroup.memory_limit().ok()??.as_bytes()?;
            let left_bytes = limit_bytes.saturating_sub(cgroup.usage_bytes().ok()??);
            if left_bytes >= enough {
                return Some(left_bytes);
            }
            ceiling(cgroup).map(|ceiling| ceiling.left_bytes)
        };
        self.cgroups.iter().filter_map(left).min()
    }

    /// Each as it is now, nearest first.
    #[must_use]
    pub fn measure(&self) -> Vec<Ceiling> {
        self.cgroups.iter().filter_map(ceiling).collect()
    }
}

/// The limit of one cgroup. A file that cannot be read is no limit that we know of: the machine's own
/// numbers still hold, and a job must not fail to start for it.
fn ceiling(cgroup: &Cgroup) -> Option<Ceiling> {
    let limit_bytes = cgroup.memory_limit().ok()??.as_bytes()?;
    let used_bytes = cgroup.usage_bytes().ok()??.saturating_sub(cgroup.droppable_bytes().unwrap_or(0));
    Some(Ceiling {
        cgroup: cgroup.path().to_path_buf(),
        limit_bytes,
        left_bytes: limit_bytes.saturating_sub(used_bytes),
    })
}
