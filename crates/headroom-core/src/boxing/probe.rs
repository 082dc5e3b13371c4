//! Which modes work here. Each is tried for real, by making a box, never concluded from a version.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::boxing::{BOX_PREFIX, BoxId, JobBox, Limits, Mode, Placement};
use crate::cgroup::{Cgroup, Hierarchies, Limit, Place, Version};
use crate::error::{Error, Result};
use crate::proc::ProcFs;
use crate::process::can_enter;
use crate::systemd::{Bus, Manager, POOL_PREFIX};

/// The limit that a trial box gets, bytes.
const TRIAL_BYTES: u64 = 64 << 20;
/// Where the processes of a container's root cgroup move, so that it can have children.
const AGENT_SEAT: &str = "headroom-agent";
/// How often the processes of a root cgroup are listed and moved before giving up.
const EVACUATION_ROUNDS: u32 = 5;

/// Why a mode cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no bus to reach systemd by.
    NoBus,
    /// The bus is not this user's own, so it is not trusted.
    UnsafeBus,
    /// The bus or the manager did not answer in time, or refused.
    NoAnswer,
    /// Only root may use it.
    NotRoot,
    /// This process is inside a job's box, and the pool is outside of it.
    InsideJob,
    /// No such hierarchy is mounted, or this process is not in it.
    NotMounted,
    /// The hierarchy has no memory controller here.
    NoMemoryController,
    /// Mounted read-only.
    ReadOnly,
    /// This user may not make cgroups there.
    NotPermitted,
    /// The cgroup has processes, so it cannot have children with limits.
    Occupied,
    /// Something else; the detail says what.
    Failed,
}

impl Obstacle {
    /// A stable word for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoBus => "no-bus",
            Self::UnsafeBus => "unsafe-bus",
            Self::NoAnswer => "no-answer",
            Self::NotRoot => "not-root",
            Self::InsideJob => "inside-job",
            Self::NotMounted => "not-mounted",
            Self::NoMemoryController => "no-memory-controller",
            Self::ReadOnly => "read-only",
            Self::NotPermitted => "not-permitted",
            Self::Occupied => "occupied",
            Self::Failed => "failed",
        }
    }
}

/// What was found out about one mode.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The mode.
    pub mode: Mode,
    /// Where its boxes would be made, or why it cannot be used.
    pub outcome: Result<Placement, (Obstacle, String)>,
}

/// Tries every mode, best first.
#[must_use]
pub fn probe(proc: &ProcFs) -> Vec<Verdict> {
    let places = Hierarchies::of_self(proc).map_err(|error| (Obstacle::Failed, error.to_string()));
    Mode::ALL
        .into_iter()
        .map(|mode| {
            let base = match mode {
                Mode::SystemdUser => places
                    .as_ref()
                    .map_err(Clone::clone)
                    .and_then(|p| probe_systemd(proc, Bus::User, p.v2.as_ref()))
                    .map(Some),
                Mode::SystemdSystem => places
                    .as_ref()
                    .map_err(Clone::clone)
                    .and_then(|p| probe_systemd(proc, Bus::System, p.v2.as_ref()))
                    .map(Some),
                Mode::Cgroup2 => {
                    places.as_ref().map_err(Clone::clone).and_then(|p| probe_v2(proc, p.v2.as_ref())).map(Some)
                }
                Mode::Cgroup1 => {
                    places.as_ref().map_err(Clone::clone).and_then(|p| probe_v1(proc, p.v1_memory.as_ref())).map(Some)
                }
                Mode::Userspace | Mode::Off => Ok(None),
            };
            Verdict { mode, outcome: base.map(|base| Placement { mode, base }) }
        })
        .collect()
}

type Probed<T> = Result<T, (Obstacle, String)>;

/// systemd: a manager that answers and whose own cgroup has the memory controller. Where it has not, it
/// takes `MemoryMax=` without a word and without effect (systemd #12362), so its property proves nothing.
fn probe_systemd(proc: &ProcFs, bus: Bus, place: Option<&Place>) -> Probed<PathBuf> {
    if bus == Bus::System && !rustix::process::getuid().is_root() {
        return Err((Obstacle::NotRoot, "only root may make units of the system's manager".to_owned()));
    }
    let place = place.ok_or((Obstacle::NotMounted, "no cgroup v2 hierarchy is mounted".to_owned()))?;
    let is_ours = |name: &str| name.starts_with(BOX_PREFIX) || name.starts_with(POOL_PREFIX);
    if place.own.iter().any(|part| part.to_str().is_some_and(is_ours)) {
        return Err((Obstacle::InsideJob, "already inside a job's box; a box within it is made by files".to_owned()));
    }
    // A bus that reaches into a container belongs to a manager whose cgroups cannot be seen from here.
    let first = proc.membership(1).ok().flatten().and_then(|membership| membership.v2);
    if first.is_some_and(|path| path.starts_with("/..")) {
        return Err((Obstacle::NotMounted, "systemd's cgroups are outside of this cgroup namespace".to_owned()));
    }
    let asked = Manager::of(bus).and_then(|manager| manager_dir(bus, place, &manager));
    let dir = asked.map_err(|error| {
        let obstacle = match &error {
            // There is a bus, and none that a user could switch on would be nearer.
            Error::Io { source, .. } if source.kind() == ErrorKind::Unsupported => Obstacle::Failed,
            Error::Io { .. } => Obstacle::NoBus,
            Error::Unsafe { .. } => Obstacle::UnsafeBus,
            _ => Obstacle::NoAnswer,
        };
        (obstacle, error.to_string())
    })?;
    if lists_memory(&Cgroup::open(&dir, Version::V2).map_err(failed)?, "cgroup.controllers")? {
        return Ok(dir);
    }
    Err((Obstacle::NoMemoryController, format!("systemd's cgroup {} has no memory controller", dir.display())))
}

/// The manager's own cgroup. Where it sits in the usual place nobody needs to be asked.
fn manager_dir(bus: Bus, place: &Place, manager: &Manager) -> Result<PathBuf> {
    let usual = match bus {
        Bus::System => place.mount_point.clone(),
        Bus::User => {
            let uid = rustix::process::getuid().as_raw();
            place.mount_point.join(format!("user.slice/user-{uid}.slice/user@{uid}.service"))
        }
    };
    if usual.is_dir() {
        return Ok(usual);
    }
    Ok(place.mount_point.join(manager.control_group()?.trim_start_matches('/')))
}

/// v1: boxes go below this process's own cgroup, so every limit above it holds for them too.
fn probe_v1(proc: &ProcFs, place: Option<&Place>) -> Probed<PathBuf> {
    let place = place.ok_or((Obstacle::NotMounted, "no v1 memory hierarchy is mounted".to_owned()))?;
    check_writable(place)?;
    trial(proc, Mode::Cgroup1, &place.own)?;
    Ok(place.own.clone())
}

/// v2: the nearest directory, from the own cgroup upwards, that can have children with limits.
fn probe_v2(proc: &ProcFs, place: Option<&Place>) -> Probed<PathBuf> {
    let place = place.ok_or((Obstacle::NotMounted, "no cgroup v2 hierarchy is mounted".to_owned()))?;
    let mut obstacle = None;
    for dir in place.own_and_above() {
        let tried = check_v2_dir(&dir).and_then(|()| {
            check_writable(place)?;
            trial(proc, Mode::Cgroup2, &dir)
        });
        match tried {
            Ok(()) => return Ok(dir),
            // The nearest directory's obstacle explains the most.
            Err(reason) => obstacle = obstacle.or(Some(reason)),
        }
    }
    if place.own == place.mount_point && matches!(obstacle, Some((Obstacle::Occupied, _))) {
        // Alone in a cgroup namespace, as in a container with writable cgroups: nobody else arranges
        // these processes, so they may move into a leaf.
        evacuate(&place.own)?;
        trial(proc, Mode::Cgroup2, &place.own)?;
        return Ok(place.own.clone());
    }
    Err(obstacle.unwrap_or((Obstacle::NotMounted, "this process's cgroup cannot be seen".to_owned())))
}

fn check_writable(place: &Place) -> Probed<()> {
    if place.read_only {
        return Err((Obstacle::ReadOnly, format!("{} is mounted read-only", place.mount_point.display())));
    }
    Ok(())
}

fn check_v2_dir(dir: &Path) -> Probed<()> {
    let cgroup = Cgroup::open(dir, Version::V2).map_err(failed)?;
    if !lists_memory(&cgroup, "cgroup.controllers")? {
        return Err((Obstacle::NoMemoryController, format!("{} has no memory controller", dir.display())));
    }
    if lists_memory(&cgroup, "cgroup.subtree_control")? {
        return Ok(());
    }
    cgroup.dir().write("cgroup.subtree_control", "+memory").map_err(failed)
}

fn lists_memory(cgroup: &Cgroup, file: &str) -> Probed<bool> {
    let text = cgroup.dir().read_if_present(file).map_err(failed)?.unwrap_or_default();
    Ok(text.split_ascii_whitespace().any(|controller| controller == "memory"))
}

/// Makes a box, and lets a process of ours in and out of it.
fn trial(proc: &ProcFs, mode: Mode, base: &Path) -> Probed<()> {
    let id = BoxId::new(proc).map_err(failed)?;
    let placement = Placement { mode, base: Some(base.to_path_buf()) };
    let limits = Limits { memory_bytes: TRIAL_BYTES, swap: Limit::Bytes(0) };
    let job_box = placement.make_box(id, limits).map_err(failed)?;
    let entered = enter(&job_box);
    let removed = job_box.remove();
    entered.map_err(failed)?;
    removed.map_err(failed)?;
    Ok(())
}

fn enter(job_box: &JobBox) -> Result<()> {
    let Some(entry) = job_box.entry()? else { return Ok(()) };
    let path = || job_box.cgroup_path().unwrap_or_default().join("cgroup.procs");
    can_enter(entry.as_fd()).map_err(|e| Error::io(path(), e))
}

/// Moves every process of a cgroup into a leaf below it and switches the memory controller on.
fn evacuate(dir: &Path) -> Probed<()> {
    let cgroup = Cgroup::open(dir, Version::V2).map_err(failed)?;
    if !dir.join(AGENT_SEAT).is_dir() {
        cgroup.dir().make_dir(AGENT_SEAT).map_err(failed)?;
    }
    let seat = Cgroup::open(dir.join(AGENT_SEAT), Version::V2).map_err(failed)?;
    for _ in 0..EVACUATION_ROUNDS {
        let text = cgroup.dir().read("cgroup.procs").map_err(failed)?;
        for pid in text.lines().filter_map(|line| line.parse::<i32>().ok()) {
            let _ended_meanwhile_is_fine = seat.enter(pid);
        }
        if cgroup.dir().write("cgroup.subtree_control", "+memory").is_ok() {
            return Ok(());
        }
    }
    Err((Obstacle::Occupied, format!("the processes in {} could not be moved into a leaf", dir.display())))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(error: Error) -> (Obstacle, String) {
    let obstacle = match error.errno() {
        Some(libc::EACCES | libc::EPERM) => Obstacle::NotPermitted,
        Some(libc::EROFS) => Obstacle::ReadOnly,
        Some(libc::EBUSY) => Obstacle::Occupied,
        Some(libc::ENOENT | libc::EOPNOTSUPP) => Obstacle::NoMemoryController,
        _ => Obstacle::Failed,
    };
    (obstacle, error.to_string())
}
