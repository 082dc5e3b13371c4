//! The runtime directory: `$XDG_RUNTIME_DIR/hermes-headroom`, else `/run/user/UID/hermes-headroom` (a system
//! service has not the variable, and must find the jobs of the user's other processes), else
//! `/tmp/hermes-headroom-UID`. Used only
//! if it is a real directory of this user that nobody else can enter; /tmp is writable to all, and a
//! directory that somebody else laid there must not be trusted.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::dir::Dir;
use crate::error::{Error, Result};

const NAME: &str = "hermes-headroom";

/// Which file a name stands for, and when it was written: the same as before, or not. No time to reckon with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    written: (i64, u64),
}

/// An open, checked runtime directory.
#[derive(Debug)]
pub struct RuntimeDir {
    dir: Dir,
}

impl RuntimeDir {
    /// Opens (and makes) the directory of this user. `xdg_runtime_dir` is that variable's value.
    pub fn open(xdg_runtime_dir: Option<&Path>) -> Result<Self> {
        let uid = rustix::process::getuid().as_raw();
        let usual = PathBuf::from(format!("/run/user/{uid}"));
        for parent in [xdg_runtime_dir.filter(|dir| dir.is_absolute()), Some(&usual)].into_iter().flatten() {
            // An inherited variable (sudo -E) may name another user's directory.
            if check(parent, uid, 0o022).is_ok() {
                return Self::at(&parent.join(NAME));
            }
        }
        Self::at(&PathBuf::from(format!("/tmp/{NAME}-{uid}")))
    }

    /// Opens (and makes) this very directory after checking it.
    pub fn at(path: &Path) -> Result<Self> {
        let uid = rustix::process::getuid().as_raw();
        match rustix::fs::mkdir(path, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(Error::io(path, e)),
        }
        check(path, uid, 0o077)?;
        let dir = Dir::open(path)?;
        // The name may have been exchanged between check and open: what was opened counts.
        let opened = rustix::fs::fstat(&dir).map_err(|e| Error::io(path, e))?;
        if opened.st_uid != uid || opened.st_mode & 0o077 != 0 {
            return Err(Error::Unsafe { path: path.to_path_buf(), why: "changed while it was opened" });
        }
        Ok(Self { dir })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Opens a regular file of this directory, never through a link, and without waiting for the other end
    /// of what is a pipe.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> Result<std::fs::File> {
        let path = || self.path().join(name);
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.dir, name, flags, Mode::from_raw_mode(0o600));
        let fd = fd.map_err(|e| Error::io(path(), e))?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| Error::io(path(), e))?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(Error::Unsafe { path: path(), why: "is not a regular file" });
        }
        Ok(std::fs::File::from(fd))
    }

    /// Whether a name still stands for the file that was opened by it. Its owner may have put a newer one
    /// in its place, and let the old one's lock go with it.
    pub(crate) fn is_current(&self, name: &str, file: &std::fs::File) -> bool {
        let named = rustix::fs::statat(&self.dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        let opened = rustix::fs::fstat(file);
        matches!((named, opened), (Ok(named), Ok(opened)) if (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino))
    }

    /// The stamp of a name's file; `None` when there is none.
    pub(crate) fn stamp(&self, name: &str) -> Option<Stamp> {
        let stat = rustix::fs::statat(&self.dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Stamp { file: (stat.st_dev, stat.st_ino), written: (stat.st_mtime, stat.st_mtime_nsec) })
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        rustix::fs::renameat(&self.dir, from, &self.dir, to).map_err(|e| Error::io(self.path().join(to), e))
    }

    pub(crate) fn unlink(&self, name: &str) -> Result<()> {
        let flags = rustix::fs::AtFlags::empty();
        crate::dir::absent_as_none(
            rustix::fs::unlinkat(&self.dir, name, flags).map_err(|e| Error::io(self.path().join(name), e)),
        )
        .map(|_| ())
    }

    /// Opens (and makes) a directory below this one, which must be as safe as this one.
    pub(crate) fn below(&self, name: &str) -> Result<Self> {
        Self::at(&self.path().join(name))
    }

    /// Names of the files with this ending, sorted.
    pub(crate) fn files_ending_in(&self, ending: &str) -> Result<Vec<String>> {
        let mut names = self.names()?;
        names.retain(|name| name.ends_with(ending));
        names.sort();
        Ok(names)
    }

    /// Every name that is UTF-8, in no order.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let failed = |e| Error::io(self.path(), e);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.dir).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }
}

fn check(path: &Path, uid: u32, forbidden_bits: u32) -> Result<()> {
    let refuse = |why| Err(Error::Unsafe { path: path.to_path_buf(), why });
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::io(path, e))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| Error::io(path, e))?;
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::Directory => {}
        rustix::fs::FileType::Symlink => return refuse("is a symbolic link, must be a directory: remove it"),
        _ => return refuse("is not a directory: remove it"),
    }
    if stat.st_uid != uid {
        return refuse("belongs to another user: remove it, or set XDG_RUNTIME_DIR to a directory of yours");
    }
    if stat.st_mode & forbidden_bits != 0 {
        return refuse(
            "can be reached by other users, must have mode 0700: remove it, or chmod 700 it if all in it is yours",
        );
    }
    Ok(())
}
