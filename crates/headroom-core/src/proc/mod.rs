//! Readers of /proc, by hand: small, without a dependency, and over any root so that tests use a
//! folder of real files. A process that ended is `None`, never an error. See proc(5).

mod listing;
mod membership;
mod mounts;
mod rss;
mod stat;
mod status;
mod unit;

use std::path::Path;

pub use listing::{ProcessTree, descendants_of};
pub use membership::Membership;
pub use mounts::Mount;
pub use rss::{Rollup, Statm};
pub(crate) use stat::boot_ms;
pub use stat::{ProcessKey, Stat};
pub use status::Status;
pub use unit::{Manager, SystemdUnit};

use crate::dir::{Dir, absent_as_none};
use crate::error::Result;

/// An open /proc (or a folder shaped like it).
#[derive(Debug)]
pub struct ProcFs {
    dir: Dir,
}

impl ProcFs {
    /// Opens the running system's /proc.
    pub fn system() -> Result<Self> {
        Self::at("/proc")
    }

    /// Opens a folder that is shaped like /proc.
    pub fn at(root: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { dir: Dir::open(root)? })
    }

    /// The folder itself.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Every process number at this moment, ascending.
    pub fn pids(&self) -> Result<Vec<i32>> {
        let mut pids: Vec<i32> = self.dir.dirs()?.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        Ok(pids)
    }

    /// The words of a process's command line, bytes that are not UTF-8 replaced (for people to read).
    pub fn cmdline(&self, pid: i32) -> Result<Option<Vec<String>>> {
        let Some(bytes) = absent_as_none(self.dir.read_bytes(format!("{pid}/cmdline")))? else { return Ok(None) };
        let words = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut words: Vec<String> = words.collect();
        while words.last().is_some_and(String::is_empty) {
            words.pop();
        }
        Ok(Some(words))
    }

    /// Whether a process was started with this exact `NAME=value` in its environment. A process that
    /// this user may not look into counts as not having it.
    #[must_use]
    pub fn has_environment(&self, pid: i32, assignment: &str) -> bool {
        self.dir
            .read_bytes(format!("{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|entry| entry == assignment.as_bytes()))
    }

    /// The `NAME=value` entries that a process was started with; empty for one that this user may not look into.
    #[must_use]
    pub fn environment(&self, pid: i32) -> Vec<Vec<u8>> {
        let bytes = self.dir.read_bytes(format!("{pid}/environ")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).map(<[u8]>::to_vec).collect()
    }

    /// Whether this number is a process's own, not that of one of its threads.
    #[must_use]
    pub fn is_process(&self, pid: i32) -> bool {
        let text = self.read_lossy(pid, "status").ok().flatten().unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("Tgid:")).is_some_and(|tgid| tgid.trim().parse() == Ok(pid))
    }

    /// Whether a process is of this process's user.
    #[must_use]
    pub fn is_own_users(&self, pid: i32) -> bool {
        let text = self.read_lossy(pid, "status").ok().flatten().unwrap_or_default();
        let real = text.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next());
        real.and_then(|uid| uid.parse().ok()) == Some(rustix::process::getuid().as_raw())
    }

    fn read(&self, pid: i32, file: &str) -> Result<Option<String>> {
        self.dir.read_if_present(format!("{pid}/{file}"))
    }

    fn read_lossy(&self, pid: i32, file: &str) -> Result<Option<String>> {
        let bytes = absent_as_none(self.dir.read_bytes(format!("{pid}/{file}")))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn file(&self, pid: i32, file: &str) -> std::path::PathBuf {
        self.dir.path().join(format!("{pid}/{file}"))
    }
}
