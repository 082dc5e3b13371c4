//! The jobs of every process of this user, and the cleaning up after those whose starter is gone.

use std::path::PathBuf;

use rustix::fs::OFlags;

use crate::boxing::{BoxId, Placement};
use crate::cgroup::{Cgroup, Peak, PeakSource};
use crate::error::Result;
use crate::job::{LeftProcess, members_of};
use crate::journal::mark::MARK_ENDING;
use crate::journal::record::{self, ENDING, Facts, boot_id};
use crate::journal::{Handling, Mark, RuntimeDir};
use crate::proc::{ProcFs, ProcessKey};
use crate::systemd::POOL_PREFIX;

/// Files of a writer that died between writing and renaming.
const UNFINISHED: &str = ".new";

/// What a job does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Its command runs and its starter waits for it.
    Running,
    /// Its starter is gone; it runs on in its box.
    Orphaned,
    /// Its command has ended, processes of it run on in its box.
    LeftRunning,
    /// The watchdog lets it stand still.
    Paused,
}

impl JobState {
    /// The word used in status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Orphaned => "orphaned",
            Self::LeftRunning => "left_running",
            Self::Paused => "paused",
        }
    }
}

/// One job as it is now.
#[derive(Debug, Clone)]
pub struct JobView {
    /// What is on record.
    pub facts: Facts,
    /// What it does.
    pub state: JobState,
    /// The command's process as recorded, if exactly that one lives; else the oldest of the job, for a starter
    /// that died before it could say which it is, and for a command that has ended.
    pub root_pid: Option<i32>,
    /// How long ago it started, milliseconds. By the kernel's clock where it can be: the wall clock may have
    /// jumped since.
    pub age_ms: u64,
    /// Memory in use, bytes.
    pub now_bytes: u64,
    /// The most it used, where that is known.
    pub peak: Option<Peak>,
    /// Its processes, largest first.
    pub processes: Vec<LeftProcess>,
}

/// Lists the jobs on record that still have processes or a waiting starter.
pub fn jobs(proc: &ProcFs, runtime: &RuntimeDir) -> Result<Vec<JobView>> {
    visit(proc, runtime, false)
}

/// Removes what dead starters left behind, as far as nothing runs in it, and lists the rest.
pub fn sweep(proc: &ProcFs, runtime: &RuntimeDir) -> Result<Vec<JobView>> {
    visit(proc, runtime, true)
}

/// What is on record of this boot, without a look at the jobs themselves.
pub(crate) fn records(proc: &ProcFs, runtime: &RuntimeDir) -> Result<Vec<(BoxId, Facts)>> {
    let boot = boot_id(proc);
    let read = |name: &String| record::read(&mut runtime.open_file(name, OFlags::RDONLY).ok()?);
    let found = runtime.files_ending_in(ENDING)?;
    Ok(found.iter().filter_map(read).filter(|(_, facts)| facts.boot_id == boot).collect())
}

/// The cgroup on record, if it is that of this very job: a record is a file that its user can edit.
pub(crate) fn own_cgroup_path(id: BoxId, facts: &Facts) -> Option<&std::path::Path> {
    let path = facts.cgroup.as_deref()?;
    let name = path.file_name()?;
    (*name == *id.cgroup_name() || is_unit_of_ours(name)).then_some(path)
}

/// Files that stand where records do and are none: cut short, of another release, a link, a directory. `sweep`
/// removes those that are files and that nobody holds.
pub fn broken(runtime: &RuntimeDir) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in runtime.files_ending_in(ENDING)? {
        let is_broken = match runtime.open_file(&name, OFlags::RDONLY) {
            // A newer one may have been put in its place.
            Ok(mut file) => record::read(&mut file).is_none() && runtime.is_current(&name, &file),
            Err(error) => error.errno() != Some(libc::ENOENT),
        };
        if is_broken {
            found.push(runtime.path().join(name));
        }
    }
    Ok(found)
}

fn visit(proc: &ProcFs, runtime: &RuntimeDir, remove: bool) -> Result<Vec<JobView>> {
    let boot = boot_id(proc);
    let mut views = Vec::new();
    for name in runtime.files_ending_in(ENDING)? {
        let Ok(mut file) = runtime.open_file(&name, OFlags::RDONLY) else { continue };
        // Shared, so that two who look at once do not take each other for the owner.
        let is_owned = file.try_lock_shared().is_err();
        if !is_owned && !runtime.is_current(&name, &file) {
            continue;
        }
        let Some((id, facts)) = record::read(&mut file) else {
            // Not ours to understand. An owner that is still writing holds the lock.
            if remove && !is_owned {
                erase(runtime, &name);
            }
            continue;
        };
        if facts.boot_id != boot {
            if remove && !is_owned {
                erase(runtime, &name);
            }
            continue;
        }
        let is_paused = Mark::read(runtime, id).is_some_and(|mark| mark.handling == Handling::Paused);
        let view = look(proc, id, facts, is_owned, is_paused);
        if is_owned || !view.processes.is_empty() {
            views.push(view);
        } else if remove && remove_box(&view.facts) {
            erase(runtime, &name);
        }
    }
    if remove {
        remove_unfinished(proc, runtime)?;
    }
    Ok(views)
}

fn look(proc: &ProcFs, id: BoxId, facts: Facts, is_owned: bool, is_paused: bool) -> JobView {
    // A lock alone does not say who holds it: an adopted job's is held by its adopter.
    let state = match (is_owned && proc.is_alive(facts.owner), facts.left) {
        _ if is_paused => JobState::Paused,
        (_, true) => JobState::LeftRunning,
        (true, false) => JobState::Running,
        (false, false) => JobState::Orphaned,
    };
    let cgroup = own_cgroup_path(id, &facts).and_then(|path| Cgroup::open(path, Placement::version(facts.mode)).ok());
    let (processes, now_bytes, peak) = match &cgroup {
        Some(cgroup) => {
            let processes = crate::job::describe(proc, cgroup.pids().unwrap_or_default());
            let now = cgroup.usage_bytes().ok().flatten().unwrap_or(0);
            (processes, now, cgroup.peak().ok().flatten())
        }
        None if facts.cgroup.is_some() => (Vec::new(), 0, None),
        None => {
            let processes = members_of(proc, id, facts.root, &facts.sessions);
            let exact = |pid| proc.rollup(pid).ok().flatten().map(|rollup| rollup.pss_bytes);
            let now = processes.iter().map(|process| exact(process.pid).unwrap_or(process.rss_bytes)).sum();
            let peak = Peak { bytes: now, source: PeakSource::Sampled };
            (processes, now, Some(peak))
        }
    };
    let oldest = oldest(proc, &processes);
    let root_pid = facts.root.filter(|key| proc.is_alive(*key)).or(oldest).map(|key| key.pid);
    let age_ms = facts.root.or(oldest).map_or_else(|| since(facts.started_unix_ms), ProcessKey::age_ms);
    JobView { facts, state, root_pid, age_ms, now_bytes, peak, processes }
}

/// By the wall clock; nothing when that was put back since.
fn since(unix_ms: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(unix_ms)
}

fn oldest(proc: &ProcFs, processes: &[LeftProcess]) -> Option<ProcessKey> {
    let key = |process: &LeftProcess| proc.stat(process.pid).ok().flatten().map(|stat| stat.key());
    processes.iter().filter_map(key).min_by_key(|key| (key.start_ticks, key.pid))
}

/// Where no leaf can be made a whole unit is the job's box.
fn is_unit_of_ours(name: &std::ffi::OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(".scope")).is_some_and(|name| name.starts_with(POOL_PREFIX))
}

/// Whether the box is gone now.
fn remove_box(facts: &Facts) -> bool {
    let Some(path) = &facts.cgroup else { return true };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return true };
    if is_unit_of_ours(name) {
        // systemd's to remove, with its last process.
        let cgroup = Cgroup::open(path, Placement::version(facts.mode));
        return cgroup.and_then(|unit| unit.pids()).map_or(true, |pids| pids.is_empty());
    }
    // A record is a file that its user can edit: nothing but a job's cgroup is ever removed.
    if BoxId::parse(&facts.id).is_none_or(|id| *name != *id.cgroup_name()) {
        return true;
    }
    match Cgroup::open(parent, Placement::version(facts.mode)) {
        Ok(base) => base.remove_child(name).unwrap_or(false),
        Err(_) => !path.exists(),
    }
}

fn remove_unfinished(proc: &ProcFs, runtime: &RuntimeDir) -> Result<()> {
    for name in runtime.files_ending_in(MARK_ENDING)? {
        let id = name.strip_suffix(MARK_ENDING).and_then(BoxId::parse);
        let has_record = |id: BoxId| runtime.open_file(&format!("{id}{ENDING}"), OFlags::RDONLY).is_ok();
        // The starter reads it at the job's end, then removes both.
        if id.is_none_or(|id| !proc.is_alive(id.owner) && !has_record(id)) {
            erase(runtime, &name);
        }
    }
    for name in runtime.files_ending_in(UNFINISHED)? {
        let owner = name.strip_suffix(UNFINISHED).and_then(BoxId::parse).map(|id| id.owner);
        if owner.is_none_or(|owner| !proc.is_alive(owner)) {
            erase(runtime, &name);
        }
    }
    Ok(())
}

/// A record that cannot be removed is met again the next time; the others must not suffer from it.
fn erase(runtime: &RuntimeDir, name: &str) {
    let _met_again = runtime.unlink(name);
}
