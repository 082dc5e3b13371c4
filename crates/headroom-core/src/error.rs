//! The one error type of this crate. Every variant names the thing that is wrong.

use std::io;
use std::path::{Path, PathBuf};

/// Why an operation on the system failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory could not be read, written, made or removed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A kernel file had a line of an unknown shape.
    #[error("{}: expected {expected}, found {line:?}", file.display())]
    Parse {
        /// The file that was read.
        file: PathBuf,
        /// The offending line, cut to a readable length.
        line: String,
        /// What should have stood there.
        expected: &'static str,
    },
    /// The process does not exist any more, or its number belongs to another process now.
    #[error("process {pid} is gone")]
    Gone {
        /// The process number that was asked for.
        pid: i32,
    },
    /// A system call without a file of its own failed.
    #[error("{call}: {source}")]
    Call {
        /// The system call.
        call: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A directory that must belong to this user alone does not.
    #[error("{}: {why}", path.display())]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Longest piece of an offending line that an error repeats, in characters.
const SHOWN_CHARS: usize = 120;

impl Error {
    #[cold]
    pub(crate) fn io(path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source: source.into() }
    }

    #[cold]
    pub(crate) fn parse(file: impl AsRef<Path>, line: &str, expected: &'static str) -> Self {
        let line = line.chars().take(SHOWN_CHARS).collect();
        Self::Parse { file: file.as_ref().to_path_buf(), line, expected }
    }

    #[cold]
    pub(crate) fn call(call: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Call { call, source: source.into() }
    }

    /// A stable word for programs: `E_IO`, `E_PARSE`, `E_GONE`, `E_CALL` or `E_UNSAFE_DIRECTORY`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "E_IO",
            Self::Parse { .. } => "E_PARSE",
            Self::Gone { .. } => "E_GONE",
            Self::Call { .. } => "E_CALL",
            Self::Unsafe { .. } => "E_UNSAFE_DIRECTORY",
        }
    }

    /// The message, and what to do about it, for an error of the runtime directory.
    #[must_use]
    pub fn with_advice(&self) -> String {
        let advice = match self.errno() {
            Some(libc::ENOSPC | libc::EDQUOT) => ": free some space there",
            Some(libc::EROFS) => ": make it writable, or set XDG_RUNTIME_DIR to a directory of yours that is",
            Some(libc::EACCES | libc::EPERM) => {
                ": let your user write to it, or set XDG_RUNTIME_DIR to a directory of yours"
            }
            // What is wrong with a directory says itself what to do.
            _ => "",
        };
        format!("{self}{advice}")
    }

    /// The kernel's error number, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } | Self::Call { source, .. } => source.raw_os_error(),
            Self::Parse { .. } | Self::Gone { .. } | Self::Unsafe { .. } => None,
        }
    }
}
