//! What the watchdog did with a job, in a file beside the job's record: the job's starter may be another
//! process, and the next watchdog must find what the last one left paused.

use std::io::{Read, Write};

use rustix::fs::OFlags;

use crate::boxing::BoxId;
use crate::error::{Error, Result};
use crate::journal::RuntimeDir;

/// Ending of a mark's name.
pub(crate) const MARK_ENDING: &str = ".watchdog.json";
const LONGEST_BYTES: u64 = 4096;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// Its processes stand still.
    Paused,
    /// It was told to end, or killed.
    Stopped,
}

/// Why something has to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Available memory is below the critical line.
    Available,
    /// The agent waits for memory, in so many percent of the last second.
    Stalled(u32),
    /// So many pages a second are read again (a kernel without pressure information).
    Refaults(u64),
}

/// What was done with one job, and why.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Mark {
    /// What.
    pub handling: Handling,
    /// Why.
    pub cause: Cause,
    /// Memory that was available then, bytes.
    pub available_bytes: u64,
    /// The line it should stay above, bytes.
    pub critical_bytes: u64,
    /// When, milliseconds since boot.
    pub boot_ms: u64,
    /// How long the job has stood still before, milliseconds.
    pub paused_before_ms: u64,
}

impl Mark {
    /// Puts the mark beside the job's record, in the place of an older one.
    pub fn write(&self, runtime: &RuntimeDir, id: BoxId) -> Result<()> {
        let (name, temporary) = (name_of(id), format!("{id}{MARK_ENDING}.new"));
        let mut file = runtime.open_file(&temporary, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        let written = serde_json::to_vec(self).map_err(std::io::Error::from).and_then(|text| file.write_all(&text));
        if let Err(error) = written {
            let _nothing_else_to_do = runtime.unlink(&temporary);
            return Err(Error::io(runtime.path().join(name), error));
        }
        runtime.rename(&temporary, &name)
    }

    /// The mark of a job; `None` when there is none, or none that can be read.
    #[must_use]
    pub fn read(runtime: &RuntimeDir, id: BoxId) -> Option<Self> {
        let file = runtime.open_file(&name_of(id), OFlags::RDONLY).ok()?;
        let mut text = Vec::new();
        file.take(LONGEST_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Removes a job's mark, if there is one.
    pub fn erase(runtime: &RuntimeDir, id: BoxId) {
        let _swept_later_if_it_fails = runtime.unlink(&name_of(id));
    }
}

fn name_of(id: BoxId) -> String {
    format!("{id}{MARK_ENDING}")
}
