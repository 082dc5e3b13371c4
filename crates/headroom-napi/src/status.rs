//! The jobs of every process of this user.

use std::path::Path;
use std::sync::Arc;

use headroom_core::journal::{RuntimeDir, broken, jobs, keep_adopting, sweep};
use headroom_core::proc::ProcFs;
use napi_derive::napi;

use crate::boxes::Peak;
use crate::error::{number, of_directory};

/// A process of a job.
#[napi(object, object_from_js = false)]
pub struct JobProcess {
    /// Its number.
    pub pid: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Its resident memory.
    pub rss_bytes: f64,
}

/// One job as it is now.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct JobView {
    /// Identity, as in the cgroup's name.
    pub id: String,
    /// `running`, `paused` (by the watchdog), `orphaned` (its starter is gone) or `left_running` (its command
    /// has ended).
    pub state: String,
    /// How it is held.
    pub mode: String,
    /// What runs.
    pub command: String,
    /// What kind of work it is.
    pub kind: String,
    /// Where it runs.
    pub cwd: String,
    /// The command's process; `null` when it is not known.
    pub pid: Option<i32>,
    /// Who started it.
    pub owner_pid: i32,
    /// The cgroup that carries its limits.
    pub cgroup: Option<String>,
    /// Memory cap.
    pub memory_bytes: f64,
    /// Swap beyond it; `null` is unlimited.
    pub swap_bytes: Option<f64>,
    /// In use now.
    pub now_bytes: f64,
    /// The most that was in use.
    pub peak: Option<Peak>,
    /// How long ago it started, milliseconds; not by the wall clock, which may jump.
    pub age_ms: f64,
    /// Its processes, largest first.
    pub processes: Vec<JobProcess>,
}

/// Lists the jobs on record in a runtime directory. With `remove`, what dead starters left behind and
/// nothing runs in is removed first.
#[napi(catch_unwind)]
pub fn list_jobs(runtime_dir: String, remove: bool) -> napi::Result<Vec<JobView>> {
    let listed = ProcFs::system().and_then(|proc| {
        let runtime = RuntimeDir::at(Path::new(&runtime_dir))?;
        if remove { sweep(&proc, &runtime) } else { jobs(&proc, &runtime) }
    });
    let views = listed.map_err(|e| of_directory(&e))?;
    Ok(views
        .into_iter()
        .map(|view| JobView {
            id: view.facts.id,
            state: view.state.as_str().to_owned(),
            mode: view.facts.mode.to_string(),
            command: view.facts.command,
            kind: view.facts.kind,
            cwd: view.facts.cwd,
            pid: view.root_pid,
            owner_pid: view.facts.owner.pid,
            cgroup: view.facts.cgroup.map(|path| path.display().to_string()),
            memory_bytes: number(view.facts.memory_bytes),
            swap_bytes: view.facts.swap_bytes.map(number),
            now_bytes: number(view.now_bytes),
            peak: view.peak.map(Peak::from),
            age_ms: number(view.age_ms),
            processes: view
                .processes
                .into_iter()
                .map(|p| JobProcess { pid: p.pid, name: p.name, rss_bytes: number(p.rss_bytes) })
                .collect(),
        })
        .collect())
}

/// Paths of what stands where records do and is none.
#[napi(catch_unwind)]
pub fn broken_records(runtime_dir: String) -> napi::Result<Vec<String>> {
    let found = RuntimeDir::at(Path::new(&runtime_dir)).and_then(|runtime| broken(&runtime));
    let found = found.map_err(|e| of_directory(&e))?;
    Ok(found.into_iter().map(|path| path.display().to_string()).collect())
}

/// Takes over jobs without a kernel limit whose starter is gone, now and once a second for as long as this
/// process lives: a thread each enforces the cap. Answers how many were taken over now.
#[napi(catch_unwind)]
pub fn adopt_orphans(runtime_dir: String) -> napi::Result<u32> {
    let adopted = RuntimeDir::at(Path::new(&runtime_dir)).and_then(|runtime| keep_adopting(&Arc::new(runtime)));
    adopted.map(|count| u32::try_from(count).unwrap_or(u32::MAX)).map_err(|e| of_directory(&e))
}
