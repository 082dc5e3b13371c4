//! A stop must not outlive who made it: a process that waits beside this one and, when this one is gone, lets
//! go on what was stopped at that moment.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Reads `+ PID` and `- PID`; at the end of its input it continues those that are left. Signals that end a whole
/// group of processes must not end it before.
const SCRIPT: &str = "\
trap '' HUP INT QUIT TERM
stopped=
while read -r sign pid; do
  left=
  for each in $stopped; do [ \"$each\" = \"$pid\" ] || left=\"$left $each\"; done
  stopped=$left
  [ \"$sign\" = + ] && stopped=\"$stopped $pid\"
done
for each in $stopped; do kill -s CONT \"$each\"; done";

#[derive(Debug)]
struct StopGuard {
    child: Child,
    input: UnixStream,
}

/// One for this process, from the first tracked job on. It ends with this process, whose end of its input goes then.
static GUARD: Mutex<Option<StopGuard>> = Mutex::new(None);

/// Starts it where it does not run.
pub(super) fn ensure() -> Result<()> {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(present) = guard.as_mut()
        && matches!(present.child.try_wait(), Ok(None))
    {
        return Ok(());
    }
    *guard = Some(start()?);
    Ok(())
}

/// Has a process remembered before it is stopped. `false` when nobody would continue it: then it must not be.
pub(super) fn remember(pid: i32) -> bool {
    send('+', pid)
}

/// It runs again.
pub(super) fn forget(pid: i32) {
    send('-', pid);
}

fn send(sign: char, pid: i32) -> bool {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(guard) = guard.as_mut() else { return false };
    let line = format!("{sign} {pid}\n");
    // SIGPIPE must not end the host.
    let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
    let sent = rustix::net::send(&guard.input, line.as_bytes(), flags);
    guard.input.flush().is_ok() && sent.is_ok_and(|sent| sent == line.len())
}

fn start() -> Result<StopGuard> {
    let (input, output) = UnixStream::pair().map_err(|e| Error::call("socketpair", e))?;
    let child = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "headroom-stop-guard"])
        .env_clear()
        // Ctrl-C goes to the terminal's foreground group.
        .process_group(0)
        .current_dir("/")
        .stdin(OwnedFd::from(output))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| Error::io("/bin/sh", e))?;
    Ok(StopGuard { child, input })
}
