//! A file and its lock.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{OFlags, Timespec, Timestamps};

use crate::error::{Error, Result};
use crate::journal::RuntimeDir;
use crate::proc::{ProcFs, ProcessKey};

/// A file of the directory whose lock is ours as long as this lives.
#[derive(Debug)]
pub(crate) struct Locked {
    pub(crate) file: File,
}

/// What came of trying for a lock.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// Nobody had it; now we have.
    Had(Locked),
    /// Somebody has it.
    Held,
    /// The file is not there, or was removed while we tried.
    Gone,
    /// What has this name is no file that could be locked: a link, a directory, a pipe.
    Foreign,
}

impl Locked {
    /// Opens a file and tries for its lock, without waiting.
    pub(crate) fn attempt(dir: &RuntimeDir, name: &str, flags: OFlags) -> Result<Attempt> {
        let file = match dir.open_file(name, flags) {
            Ok(file) => file,
            // A file that was to be made cannot be missing: its directory is.
            Err(error) if flags.contains(OFlags::CREATE) && error.errno() == Some(libc::ENOENT) => return Err(error),
            Err(error) => return without_file(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Attempt::Held),
            Err(TryLockError::Error(error)) => return Err(Error::io(dir.path().join(name), error)),
        }
        let locked = Self { file };
        // The lock of a file that no longer has the name keeps nobody out.
        Ok(if dir.is_current(name, &locked.file) { Attempt::Had(locked) } else { Attempt::Gone })
    }
}

impl Locked {
    /// Writes down who has it, for those who find it held. On a full disk nobody is named.
    pub(crate) fn sign(&self, proc: &ProcFs) {
        let text = proc.own_key().ok().and_then(|key| serde_json::to_vec(&key).ok()).unwrap_or_default();
        let _nobody_is_named = self.file.set_len(0).and_then(|()| self.file.write_all_at(&text, 0));
    }

    /// Who has signed the file last. Says nothing about whether they still have it.
    pub(crate) fn signature(dir: &RuntimeDir, name: &str) -> Option<ProcessKey> {
        let file = dir.open_file(name, OFlags::RDONLY).ok()?;
        let mut text = [0; 128];
        let length = file.read_at(&mut text, 0).ok()?;
        serde_json::from_slice(text.get(..length)?).ok()
    }

    /// Leaves a new stamp. Where that cannot be written (a read-only disk) others may take us for stopped.
    pub(crate) fn beat(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _taken_for_stopped = rustix::fs::futimens(&self.file, &times);
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing would not do while a child that was forked meanwhile has the descriptor too.
        let _closing_is_left = self.file.unlock();
    }
}

/// A file whose lock somebody has; `None` for any other. Lets others look at the same time.
pub(crate) fn held(dir: &RuntimeDir, name: &str) -> Option<File> {
    let file = dir.open_file(name, OFlags::RDONLY).ok()?;
    match file.try_lock_shared() {
        Ok(()) => {
            let _closing_is_left = file.unlock();
            None
        }
        Err(TryLockError::WouldBlock) => Some(file),
        Err(TryLockError::Error(_)) => None,
    }
}

/// An error that says that nobody can hold the file is no error; any other (no descriptors left, say) must not
/// be taken for a free place.
fn without_file(error: Error) -> Result<Attempt> {
    match (&error, error.errno()) {
        (Error::Unsafe { .. }, _) | (_, Some(libc::ELOOP | libc::EISDIR | libc::ENXIO | libc::ENODEV)) => {
            Ok(Attempt::Foreign)
        }
        (_, Some(libc::ENOENT)) => Ok(Attempt::Gone),
        _ => Err(error),
    }
}

/// A lock that is somebody's for a moment only; asking again later is the way out.
pub(crate) fn busy(dir: &RuntimeDir, name: &str) -> Error {
    Error::io(dir.path().join(name), io::Error::from(rustix::io::Errno::AGAIN))
}
