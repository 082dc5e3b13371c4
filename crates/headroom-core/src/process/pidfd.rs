//! Handles on processes that cannot be confused by a reused process number. See `pidfd_open(2)`
//! (Linux 5.3).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::error::{Error, Result};
use crate::proc::{ProcFs, ProcessKey};

/// A handle on one process, its own child or not.
#[derive(Debug)]
pub struct PidFd {
    fd: OwnedFd,
    pid: i32,
}

impl PidFd {
    /// Opens a handle on whatever process has this number now.
    pub fn open(pid: i32) -> Result<Self> {
        let raw = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw).ok_or(Error::Gone { pid })?;
        match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
            Ok(fd) => Ok(Self { fd, pid }),
            Err(rustix::io::Errno::SRCH) => Err(Error::Gone { pid }),
            Err(e) => Err(Error::call("pidfd_open", e)),
        }
    }

    /// Opens a handle on exactly this process: the start time is compared after the handle is open, so
    /// that the number cannot change hands in between.
    pub fn open_exactly(proc: &ProcFs, key: ProcessKey) -> Result<Self> {
        let handle = Self::open(key.pid)?;
        if proc.stat(key.pid)?.is_some_and(|stat| stat.key() == key) {
            Ok(handle)
        } else {
            Err(Error::Gone { pid: key.pid })
        }
    }

    /// The process number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) -> Result<()> {
        let Some(signal) = Signal::from_named_raw(signal) else {
            return Err(Error::call("pidfd_send_signal", rustix::io::Errno::INVAL));
        };
        match rustix::process::pidfd_send_signal(&self.fd, signal) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::SRCH) => Err(Error::Gone { pid: self.pid }),
            Err(e) => Err(Error::call("pidfd_send_signal", e)),
        }
    }

    /// Pushes ranges (address and length) of its memory out to swap; what cannot be is left where it is. See
    /// `process_madvise(2)`.
    pub fn page_out(&self, ranges: &[(usize, usize)]) {
        let vectors: Vec<libc::iovec> = ranges
            .iter()
            .map(|(address, length)| libc::iovec { iov_base: *address as *mut libc::c_void, iov_len: *length })
            .collect();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&self.fd);
        // SAFETY: `vectors` is valid for its length; the addresses are another process's and only advise the kernel.
        let _advice_only = unsafe {
            libc::syscall(libc::SYS_process_madvise, fd, vectors.as_ptr(), vectors.len(), libc::MADV_PAGEOUT, 0)
        };
    }

    /// Waits until the process has ended. `false` when it still runs after `patience`.
    pub fn wait(&self, patience: Duration) -> Result<bool> {
        let timeout = Timespec::try_from(patience).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(Error::call("poll", e)),
        }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
