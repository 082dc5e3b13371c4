//! A process that keeps a pool alive while somebody needs it. systemd removes a scope, and with it the
//! counters of its jobs, the moment its last process ends; a job's account could not be closed.

use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::{Error, Result};

/// Waits for the end of its input, which comes when its maker drops it or dies.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

impl Guard {
    pub(crate) fn start() -> Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "read -r _", "headroom-guard"])
            .env_clear()
            // Ctrl-C goes to the terminal's foreground group; the guard must outlast the job that it ends.
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| Error::io("/bin/sh", e))?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ends_by_itself = self.child.wait();
    }
}
