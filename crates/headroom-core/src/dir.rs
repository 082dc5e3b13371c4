//! Directory handles. Kernel files are read relative to an open directory, so that a path which is
//! replaced in between cannot mix two objects. See openat(2).

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Largest file that is read, in bytes. Kernel files are far smaller; a longer one is cut.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// An open directory and the path it was opened by (for messages only).
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl Dir {
    /// Opens a directory by its path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::io(path, e))?;
        Ok(Self { fd, path: path.to_path_buf() })
    }

    /// Opens a directory below this one.
    pub fn open_dir(&self, name: impl AsRef<Path>) -> Result<Self> {
        let path = self.path.join(&name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name.as_ref(), flags, Mode::empty()).map_err(|e| Error::io(&path, e))?;
        Ok(Self { fd, path })
    }

    /// The path this directory was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a whole file below this directory.
    pub fn read_bytes(&self, name: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = || self.path.join(&name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name.as_ref(), flags, Mode::empty()).map_err(|e| Error::io(path(), e))?;
        let mut bytes = Vec::with_capacity(1024);
        std::fs::File::from(fd).take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(|e| Error::io(path(), e))?;
        Ok(bytes)
    }

    /// Reads a whole text file below this directory.
    pub fn read(&self, name: impl AsRef<Path>) -> Result<String> {
        let bytes = self.read_bytes(&name)?;
        String::from_utf8(bytes)
            .map_err(|e| Error::parse(self.path.join(&name), &String::from_utf8_lossy(e.as_bytes()), "UTF-8 text"))
    }

    /// Reads a text file that this kernel may not have: absent, switched off, or its object gone.
    pub fn read_if_present(&self, name: impl AsRef<Path>) -> Result<Option<String>> {
        absent_as_none(self.read(name))
    }

    /// Writes `value` to an existing file below this directory in one call, as kernel files want it.
    pub fn write(&self, name: impl AsRef<Path>, value: &str) -> Result<()> {
        let mut file = std::fs::File::from(self.open_for_writing(&name)?);
        file.write_all(value.as_bytes()).map_err(|e| Error::io(self.path.join(&name), e))
    }

    /// Opens an existing file below this directory for writing.
    pub fn open_for_writing(&self, name: impl AsRef<Path>) -> Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name.as_ref(), flags, Mode::empty())
            .map_err(|e| Error::io(self.path.join(&name), e))
    }

    /// Makes a directory (mode 0755) below this one.
    pub fn make_dir(&self, name: impl AsRef<Path>) -> Result<()> {
        rustix::fs::mkdirat(&self.fd, name.as_ref(), Mode::from_raw_mode(0o755))
            .map_err(|e| Error::io(self.path.join(&name), e))
    }

    /// Removes an empty directory (or an empty cgroup) below this one; an absent one is fine.
    pub fn remove_dir(&self, name: impl AsRef<Path>) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, name.as_ref(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(Error::io(self.path.join(&name), e)),
        }
    }

    /// Names of the directories directly below this one.
    pub fn dirs(&self) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).map_err(|e| Error::io(&self.path, e))? {
            let entry = entry.map_err(|e| Error::io(&self.path, e))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." && entry.file_type().is_dir() {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        Ok(names)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Turns «this kernel does not have it» and «its object is gone» into `None`.
///
/// `ENOENT`: no such file. `ENODEV`: the cgroup was removed. `ESRCH`: the process ended.
/// `EOPNOTSUPP`: PSI is switched off.
pub(crate) fn absent_as_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Io { source, .. }) if is_absent(&source) => Ok(None),
        Err(e) => Err(e),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ESRCH | libc::EOPNOTSUPP))
}
