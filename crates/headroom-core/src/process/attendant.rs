//! A small child that outlives us by a moment: it reads what we say, and its input ends when we do.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::error::{Error, Result};

/// Starts a shell script that reads its standard input, in a process group of its own: Ctrl-C goes to the terminal's
/// foreground group, and an attendant must outlast the job that it ends.
pub(crate) fn start_attendant(name: &str, script: &str) -> Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", script, name])
        .env_clear()
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| Error::io("/bin/sh", e))
}
