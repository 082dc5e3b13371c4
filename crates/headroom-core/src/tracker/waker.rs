//! Whoever is stopped to be moved must go on even if this process is killed before it can say so: a child of ours
//! knows their numbers, and continues them when its input ends.

use std::io::Write;
use std::process::{Child, ChildStdin};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::process::start_attendant;

/// Each line is a number to remember; `-` forgets them. `TERM` comes to everything in a unit that is stopped.
const SCRIPT: &str = r#"trap "" TERM HUP INT
while read -r line; do
  case $line in -) set -- ;; *) set -- "$@" "$line" ;; esac
done
[ $# -eq 0 ] || kill -CONT "$@" 2> /dev/null"#;

#[derive(Debug)]
struct Waker {
    child: Child,
    input: ChildStdin,
}

static WAKER: Mutex<Option<Waker>> = Mutex::new(None);

impl Waker {
    fn start() -> Result<Self> {
        let mut child = start_attendant("headroom-waker", SCRIPT)?;
        let input = child.stdin.take().ok_or_else(|| Error::call("pipe", rustix::io::Errno::BADF))?;
        Ok(Self { child, input })
    }
}

/// Says who is about to be stopped. An error means that nobody would wake them: they must not be stopped.
pub(super) fn remember(pid: i32) -> Result<()> {
    tell(&format!("{pid}\n"))
}

/// They go on again.
pub(super) fn forget() {
    let _told_the_next_time = tell("-\n");
}

fn tell(line: &str) -> Result<()> {
    let mut held = WAKER.lock().unwrap_or_else(PoisonError::into_inner);
    if held.as_mut().is_some_and(|waker| matches!(waker.child.try_wait(), Ok(Some(_)))) {
        *held = None;
    }
    if held.is_none() {
        *held = Some(Waker::start()?);
    }
    let Some(waker) = held.as_mut() else { return Ok(()) };
    waker.input.write_all(line.as_bytes()).map_err(|e| Error::io("/bin/sh", e))
}
