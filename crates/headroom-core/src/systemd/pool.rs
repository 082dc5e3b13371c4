//! The pool: one delegated scope that carries the sum of all jobs' limits, with a leaf below it for each
//! job. It is made with the first job and ends with the last one's guard.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::boxing::{BoxId, JobBox, Limits, Mode, Placement};
use crate::cgroup::{Cgroup, Hierarchies, Limit, Version};
use crate::error::{Error, Result};
use crate::journal::RuntimeDir;
use crate::proc::ProcFs;
use crate::systemd::Bus;
use crate::systemd::door::on_manager;
use crate::systemd::manager::UnitLimits;
use crate::systemd::{Door, Guard};

/// Every pool unit's name starts with this.
pub const POOL_PREFIX: &str = "headroom-pool-";
/// Where guards sit, so that the pool's own directory has no process and its leaves can have limits.
const GUARD_SEAT: &str = "guard";
/// How long somebody else may take to make the pool.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// How long a changed limit may take to reach the kernel.
const LIMIT_PATIENCE: Duration = Duration::from_millis(500);

static NEXT: AtomicU32 = AtomicU32::new(1);

/// Which pool, and what it may use in all.
#[derive(Debug, Clone)]
pub struct Pool {
    /// Whose manager makes it.
    pub bus: Bus,
    /// The sum for all jobs.
    pub limits: UnitLimits,
    /// Where the present pool is on record; without it every process has a pool of its own.
    pub runtime: Option<Arc<RuntimeDir>>,
}

/// A pool as it is on record.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Present {
    unit: String,
    cgroup: PathBuf,
}

impl Pool {
    /// Puts a process (which must not run anything yet) into a new box of the pool. One call to the
    /// manager at most: none when the pool is there and plain files suffice.
    pub fn admit(&self, proc: &ProcFs, pid: i32, id: BoxId, limits: Limits) -> Result<JobBox> {
        let guard = Guard::start()?;
        // Held until the pool is on record: two who begin at once share one pool.
        let _lock = self.lock();
        let present = self.swept(proc);
        let admitted = match &present {
            Some(present) => self
                .admit_to(present, &guard, pid, id, limits)
                .or_else(|_it_ended_meanwhile| self.admit_to_new(proc, &guard, pid, id, limits)),
            None => self.admit_to_new(proc, &guard, pid, id, limits),
        };
        let job_box = admitted?.guarded_by(guard);
        // The reply of a manager proves nothing; the process's own cgroup does.
        let membership = proc.membership(pid).ok().flatten();
        if membership.is_some_and(|membership| job_box.holds(&membership)) {
            return Ok(job_box);
        }
        let _empty = job_box.remove();
        Err(Error::call("moving the job", std::io::Error::other("it is not where systemd said it is")))
    }

    /// Makes a box in the pool for a job that somebody else is going to start. Two calls to the manager at most:
    /// none when the pool is there and plain files lead to it.
    pub fn prepare(&self, proc: &ProcFs, id: BoxId, limits: Limits) -> Result<JobBox> {
        let guard = Guard::start()?;
        let _lock = self.lock();
        let present = self.swept(proc);
        let made = match &present {
            Some(present) => self
                .prepare_in(present, &guard, id, limits)
                .or_else(|_it_ended_meanwhile| self.prepare_in_new(proc, &guard, id, limits)),
            None => self.prepare_in_new(proc, &guard, id, limits),
        };
        Ok(made?.guarded_by(guard))
    }

    fn prepare_in(&self, present: &Present, guard: &Guard, id: BoxId, limits: Limits) -> Result<JobBox> {
        let door = Door { bus: self.bus, unit: present.unit.clone() };
        seat_guard(&present.cgroup, guard).or_else(|error| match error.errno() {
            Some(libc::EACCES | libc::EPERM) => door.attach(GUARD_SEAT, &[guard.pid()]),
            _ => Err(error),
        })?;
        Ok(self.make_box(&present.cgroup, id, limits)?.reached_through(door))
    }

    fn prepare_in_new(&self, proc: &ProcFs, guard: &Guard, id: BoxId, limits: Limits) -> Result<JobBox> {
        let (unit, cgroup) = self.start_unit(proc, guard, None)?;
        let door = Door { bus: self.bus, unit: unit.clone() };
        if let Ok(job_box) = self.furnish(&cgroup, guard, None, id, limits) {
            self.record(&Present { unit, cgroup });
            return Ok(job_box.reached_through(door));
        }
        Ok(self.whole_unit(&unit, &cgroup, id, limits)?.reached_through(door))
    }

    fn mode(&self) -> Mode {
        match self.bus {
            Bus::User => Mode::SystemdUser,
            Bus::System => Mode::SystemdSystem,
        }
    }

    fn make_box(&self, cgroup: &Path, id: BoxId, limits: Limits) -> Result<JobBox> {
        Placement { mode: self.mode(), base: Some(cgroup.to_path_buf()) }.make_box(id, limits)
    }

    fn admit_to(&self, present: &Present, guard: &Guard, pid: i32, id: BoxId, limits: Limits) -> Result<JobBox> {
        let job_box = self.make_box(&present.cgroup, id, limits)?;
        let admitted = job_box.enter(pid).or_else(|error| match error.errno() {
            // From a login session or a system service files do not lead here: the manager may move us.
            Some(libc::EACCES | libc::EPERM) => {
                let seat = format!("/{}", job_box.seat_below_base());
                on_manager(self.bus, |manager| manager.attach(&present.unit, &seat, &[pid, guard.pid()]))
            }
            _ => Err(error),
        });
        let seated = admitted.and_then(|()| seat_guard(&present.cgroup, guard));
        if let Err(error) = seated {
            // The child may be inside already; the next try puts it elsewhere.
            let _out_again =
                Cgroup::open(present.cgroup.join(GUARD_SEAT), Version::V2).and_then(|seat| seat.enter(pid));
            let _swept_later_if_it_fails = job_box.remove();
            return Err(error);
        }
        Ok(job_box)
    }

    fn admit_to_new(&self, proc: &ProcFs, guard: &Guard, pid: i32, id: BoxId, limits: Limits) -> Result<JobBox> {
        let (unit, cgroup) = self.start_unit(proc, guard, Some(pid))?;
        if let Ok(job_box) = self.furnish(&cgroup, guard, Some(pid), id, limits) {
            self.record(&Present { unit, cgroup });
            return Ok(job_box);
        }
        self.whole_unit(&unit, &cgroup, id, limits)
    }

    /// A new unit with the guard in it, and a job's process where there is one already.
    fn start_unit(&self, proc: &ProcFs, guard: &Guard, pid: Option<i32>) -> Result<(String, PathBuf)> {
        let own = proc.own_key()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unit = format!("{POOL_PREFIX}{}-{}-{number}.scope", own.pid, own.start_ticks);
        let description = "Memory-capped jobs of hermes-headroom";
        let pids: Vec<i32> = std::iter::once(guard.pid()).chain(pid).collect();
        on_manager(self.bus, |manager| manager.start_scope(&unit, description, self.limits, &pids))?;
        let cgroup = cgroup_of(proc, guard.pid())?;
        if cgroup.ends_with(&unit) {
            return Ok((unit, cgroup));
        }
        Err(Error::call("moving the job", std::io::Error::other("it is not in the unit that was made")))
    }

    /// No leaf can be made there: the unit itself becomes the job's box.
    fn whole_unit(&self, unit: &str, cgroup: &Path, id: BoxId, limits: Limits) -> Result<JobBox> {
        let whole = UnitLimits { memory_bytes: limits.memory_bytes, swap: limits.swap };
        on_manager(self.bus, |manager| manager.set_limits(unit, whole))?;
        let cgroup = Cgroup::open(cgroup, Version::V2)?;
        wait_until_in_force(&cgroup, limits.memory_bytes)?;
        JobBox::of_unit(self.mode(), id, limits, cgroup)
    }

    /// Turns a new unit's cgroup into a pool and seats its first job.
    fn furnish(&self, cgroup: &Path, guard: &Guard, pid: Option<i32>, id: BoxId, limits: Limits) -> Result<JobBox> {
        let pool = Cgroup::open(cgroup, Version::V2)?;
        let seat = pool.make_child(GUARD_SEAT)?;
        seat.enter(guard.pid())?;
        pid.map_or(Ok(()), |pid| seat.enter(pid))?;
        pool.dir().write("cgroup.subtree_control", "+memory")?;
        let job_box = self.make_box(cgroup, id, limits)?;
        pid.map_or(Ok(()), |pid| job_box.enter(pid))?;
        Ok(job_box)
    }

    fn file(&self, ending: &str) -> String {
        format!("pool-{}{ending}", self.mode())
    }

    /// The present pool, without the boxes of dead starters.
    fn swept(&self, proc: &ProcFs) -> Option<Present> {
        let present = self.present()?;
        let pool = Placement { mode: self.mode(), base: Some(present.cgroup.clone()) };
        let _tried_again_next_time = pool.remove_abandoned(proc);
        Some(present)
    }

    /// The pool on record, if it is still there.
    fn present(&self) -> Option<Present> {
        let runtime = self.runtime.as_ref()?;
        let file = runtime.open_file(&self.file(".json"), OFlags::RDONLY).ok()?;
        let present: Present = serde_json::from_reader(std::io::Read::take(file, 1 << 16)).ok()?;
        let is_ours = present.unit.starts_with(POOL_PREFIX) && present.cgroup.ends_with(&present.unit);
        // A pool whose last process has ended is being removed, or was left behind by that: not to be used.
        let is_held = || {
            let events = crate::dir::Dir::open(&present.cgroup).and_then(|dir| dir.read("cgroup.events"));
            events.is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
        };
        (is_ours && present.cgroup.join(GUARD_SEAT).is_dir() && is_held()).then_some(present)
    }

    /// A pool that is not on record serves one process; that is all that is lost.
    fn record(&self, present: &Present) {
        let Some(runtime) = &self.runtime else { return };
        let temporary = self.file(".tmp");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        if let Ok(file) = runtime.open_file(&temporary, flags)
            && serde_json::to_writer(file, present).is_ok()
        {
            let _see_above = runtime.rename(&temporary, &self.file(".json"));
        }
    }

    fn lock(&self) -> Option<std::fs::File> {
        let runtime = self.runtime.as_ref()?;
        let file = runtime.open_file(&self.file(".lock"), OFlags::RDWR | OFlags::CREATE).ok()?;
        let deadline = Instant::now() + LOCK_PATIENCE;
        while file.try_lock().is_err() {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(file)
    }
}

/// systemd answers before it writes, and without a memory controller it never writes: only the kernel's own
/// file tells.
fn wait_until_in_force(unit: &Cgroup, memory_bytes: u64) -> Result<()> {
    let deadline = Instant::now() + LIMIT_PATIENCE;
    let page = rustix::param::page_size() as u64;
    loop {
        let limit = unit.memory_limit()?.and_then(Limit::as_bytes);
        if limit.is_some_and(|bytes| bytes / page == memory_bytes / page) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let source = std::io::Error::other("the unit's memory limit is not in force");
            return Err(Error::call("SetUnitProperties", source));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn seat_guard(pool: &Path, guard: &Guard) -> Result<()> {
    Cgroup::open(pool.join(GUARD_SEAT), Version::V2)?.enter(guard.pid())
}

/// The directory of a process's v2 cgroup.
fn cgroup_of(proc: &ProcFs, pid: i32) -> Result<PathBuf> {
    let gone = || Error::Gone { pid };
    let path = proc.membership(pid)?.ok_or_else(gone)?.v2.ok_or_else(gone)?;
    let place = Hierarchies::of_self(proc)?.v2.ok_or_else(gone)?;
    Ok(place.mount_point.join(path.trim_start_matches('/')))
}
