//! Collecting ended children. Nothing here touches a child that somebody else (libuv, a caller's own
//! `Command`) started, except in a process that has declared itself the parent of orphans.

use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::error::{Error, Result};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By itself, with this code.
    ExitCode(i32),
    /// By this signal.
    Signal(i32),
}

/// Makes this process the one that inherits orphans of its descendants (`PR_SET_CHILD_SUBREAPER`).
/// Only for a process that is all ours: a host such as an agent does not reap children it never made.
pub fn become_subreaper() -> Result<()> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|e| Error::call("prctl(PR_SET_CHILD_SUBREAPER)", e))
}

/// Collects one child that has ended; `None` when it still runs.
pub fn reap(pid: i32) -> Result<Option<Ending>> {
    let id = WaitId::Pid(Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw).ok_or(Error::Gone { pid })?);
    match rustix::process::waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(status) => Ok(status.and_then(|status| {
            status.exit_status().map(Ending::ExitCode).or_else(|| status.terminating_signal().map(Ending::Signal))
        })),
        Err(rustix::io::Errno::CHILD) => Err(Error::Gone { pid }),
        Err(e) => Err(Error::call("waitid", e)),
    }
}

/// Collects ended processes among `pids` that have become our children; others are left alone.
pub fn reap_orphans(pids: impl IntoIterator<Item = i32>) {
    for pid in pids {
        let _not_ours_is_fine = reap(pid);
    }
}
