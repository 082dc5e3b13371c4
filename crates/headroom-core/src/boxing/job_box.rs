//! One job's box: limits, use, counters, end.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::boxing::{BOX_PREFIX, BoxId, Mode};
use crate::cgroup::{Cgroup, Limit, Peak, Version};
use crate::error::Result;
use crate::systemd::{Door, Guard};

/// What a job may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Swap beyond it.
    pub swap: Limit,
}

#[derive(Debug)]
struct Cgroups {
    /// Below which the box was made, and is removed again; none when systemd does both.
    base: Option<Cgroup>,
    /// Carries the limits and the counters.
    job: Cgroup,
    /// Where the processes sit (`job` itself on v1).
    seat: Cgroup,
}

/// A box, with or without a kernel limit. Dropping it leaves the box as it is: a job may outlive the
/// process that started it.
#[derive(Debug)]
pub struct JobBox {
    mode: Mode,
    id: BoxId,
    limits: Limits,
    cgroups: Option<Cgroups>,
    /// The name by which the box is found in a process's cgroup path.
    name: String,
    /// Keeps the pool, and with it this box's counters, until this is dropped.
    guard: Option<Guard>,
    /// The way in for processes that files cannot move.
    door: Option<Door>,
}

impl JobBox {
    pub(crate) fn without_cgroup(mode: Mode, id: BoxId, limits: Limits) -> Self {
        Self { mode, id, limits, cgroups: None, name: id.cgroup_name(), guard: None, door: None }
    }

    pub(crate) fn with_cgroup(mode: Mode, id: BoxId, limits: Limits, base: Cgroup, job: Cgroup, seat: Cgroup) -> Self {
        let cgroups = Some(Cgroups { base: Some(base), job, seat });
        Self { mode, id, limits, cgroups, name: id.cgroup_name(), guard: None, door: None }
    }

    /// A box that is a whole unit of systemd's.
    pub(crate) fn of_unit(mode: Mode, id: BoxId, limits: Limits, unit: Cgroup) -> Result<Self> {
        let name = unit.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let seat = Cgroup::open(unit.path(), unit.version())?;
        let cgroups = Some(Cgroups { base: None, job: unit, seat });
        Ok(Self { mode, id, limits, cgroups, name, guard: None, door: None })
    }

    pub(crate) fn guarded_by(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    pub(crate) fn reached_through(mut self, door: Door) -> Self {
        self.door = Some(door);
        self
    }

    /// Where the job's processes sit, as a path below the base.
    pub(crate) fn seat_below_base(&self) -> String {
        let seat = self.cgroups.as_ref().map(|cgroups| cgroups.seat.path().to_path_buf()).unwrap_or_default();
        let base = self.cgroups.as_ref().and_then(|cgroups| cgroups.base.as_ref()).map(Cgroup::path);
        let below = base.and_then(|base| seat.strip_prefix(base).ok()).map(|below| below.display().to_string());
        below.unwrap_or_default()
    }

    /// How the job is held.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The name by which the box is found in a process's cgroup path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The job's identity.
    #[must_use]
    pub fn id(&self) -> BoxId {
        self.id
    }

    /// The limits that were set.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The cgroup that carries the limits.
    #[must_use]
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroups.as_ref().map(|cgroups| &cgroups.job)
    }

    /// Its directory.
    #[must_use]
    pub fn cgroup_path(&self) -> Option<PathBuf> {
        self.cgroup().map(|cgroup| cgroup.path().to_path_buf())
    }

    /// The handle through which a child enters before exec; none without a cgroup.
    pub fn entry(&self) -> Result<Option<OwnedFd>> {
        self.cgroups.as_ref().map(|cgroups| cgroups.seat.entry()).transpose()
    }

    /// Moves a running process in.
    pub fn enter(&self, pid: i32) -> Result<()> {
        self.cgroups.as_ref().map_or(Ok(()), |cgroups| cgroups.seat.enter(pid))
    }

    /// Moves running processes in: by files, and by one call to the unit's manager for those where that is not
    /// allowed. One that has ended is left out. Who asks looks where they are: an answer proves nothing.
    pub(crate) fn bring_in(&self, pids: &[i32]) -> Result<()> {
        let mut refused = Vec::new();
        let mut problem = None;
        for pid in pids {
            match self.enter(*pid) {
                Err(error) if error.errno() == Some(libc::ESRCH) => {}
                Err(error) => {
                    refused.push(*pid);
                    problem = Some(error);
                }
                Ok(()) => {}
            }
        }
        match (problem, &self.door) {
            (Some(error), Some(door)) if matches!(error.errno(), Some(libc::EACCES | libc::EPERM)) => {
                door.attach(&self.seat_below_base(), &refused)
            }
            (Some(error), _) => Err(error),
            (None, _) => Ok(()),
        }
    }

    /// Processes inside, ascending; empty without a cgroup.
    pub fn pids(&self) -> Result<Vec<i32>> {
        let mut pids = self.cgroup().map_or(Ok(Vec::new()), Cgroup::pids)?;
        // Where a whole unit is the box, the guard sits in it as well.
        pids.retain(|pid| Some(*pid) != self.guard_pid());
        Ok(pids)
    }

    /// The kernel's record of the most memory in use.
    pub fn peak(&self) -> Result<Option<Peak>> {
        self.cgroup().map_or(Ok(None), Cgroup::peak)
    }

    /// How many of the job's processes the kernel has killed. Those of a box inside this one count only
    /// when it was this box's limit that they died of: the inner box tells its own.
    pub fn oom_kills(&self) -> Result<u64> {
        let Some(Cgroups { job, seat, .. }) = &self.cgroups else { return Ok(0) };
        match job.version() {
            _ if job.limit_was_hit()? => job.oom_kills(),
            Version::V2 => seat.own_oom_kills(),
            Version::V1 => {
                let mut sum = job.own_oom_kills()?;
                for child in job.children()?.iter().filter(|child| !is_box(child)) {
                    sum += child.oom_kills()?;
                }
                Ok(sum)
            }
        }
    }

    /// Whether the job came up against its own limit; `false` with kills means that memory ran out above
    /// the box.
    pub fn limit_was_hit(&self) -> Result<bool> {
        self.cgroup().map_or(Ok(false), Cgroup::limit_was_hit)
    }

    /// Kills everything inside and waits for it; `false` when something is stuck.
    pub fn kill_all(&self) -> Result<bool> {
        self.cgroup().map_or(Ok(true), Cgroup::kill_all)
    }

    /// Removes the box; `false` when a process is still inside. Read peak and counters before.
    pub fn remove(&self) -> Result<bool> {
        let Some(cgroups) = &self.cgroups else { return Ok(true) };
        match &cgroups.base {
            Some(base) => base.remove_child(&self.name),
            None => Ok(self.pids()?.is_empty()),
        }
    }

    /// The process that keeps the pool, which is a child of this one and none of the job's.
    pub(crate) fn guard_pid(&self) -> Option<i32> {
        self.guard.as_ref().map(Guard::pid)
    }

    /// Whether somebody else has ended the pool, and the job with it.
    pub(crate) fn pool_was_stopped(&mut self) -> bool {
        self.guard.as_mut().is_some_and(Guard::was_ended)
    }

    /// Lets the pool end with its last process. Read everything before.
    pub(crate) fn let_pool_go(&mut self) {
        self.guard = None;
    }

    /// Whether a process's cgroup, as it reads now, is this box.
    #[must_use]
    pub fn holds(&self, membership: &crate::proc::Membership) -> bool {
        self.cgroups.is_none() || membership.has_component(&self.name)
    }
}

fn is_box(cgroup: &Cgroup) -> bool {
    cgroup.path().file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(BOX_PREFIX))
}
