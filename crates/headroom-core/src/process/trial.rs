//! A process that enters a cgroup and ends there, to learn whether entering is allowed.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets a child write itself into an open `cgroup.procs`. The kernel's refusal is the error.
pub fn can_enter(entry: BorrowedFd<'_>) -> io::Result<()> {
    let entry = entry.as_raw_fd();
    // SAFETY: the child makes only async-signal-safe calls: write and _exit.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: one byte of a static string is written to an open descriptor.
        let written = unsafe { libc::write(entry, b"0".as_ptr().cast(), 1) };
        let answer = if written == 1 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) };
        // SAFETY: ends the child without running anything of its parent's.
        unsafe { libc::_exit(answer) };
    }
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours and nobody else waits for it.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    match libc::WEXITSTATUS(status) {
        0 if libc::WIFEXITED(status) => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}
