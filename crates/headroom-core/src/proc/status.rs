//! /proc/PID/status: the memory of one process as the kernel counts it.

use crate::error::{Error, Result};
use crate::proc::ProcFs;

/// The fields of /proc/PID/status that this crate uses. Kernel threads have no memory fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Real user id.
    pub uid: u32,
    /// Resident memory, bytes (`VmRSS`).
    pub rss_bytes: u64,
    /// Largest resident memory so far, bytes (`VmHWM`).
    pub peak_rss_bytes: u64,
    /// Anonymous part of the resident memory, bytes (`RssAnon`).
    pub anon_bytes: u64,
    /// Swapped-out memory, bytes (`VmSwap`).
    pub swap_bytes: u64,
}

impl ProcFs {
    /// Reads a process's status file; `None` when it is gone.
    pub fn status(&self, pid: i32) -> Result<Option<Status>> {
        let Some(text) = self.read_lossy(pid, "status")? else { return Ok(None) };
        let mut status = Status::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let field = match key {
                "Uid" => {
                    let uid = value.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
                    status.uid = uid.ok_or_else(|| Error::parse(self.file(pid, "status"), line, "user ids"))?;
                    continue;
                }
                "VmRSS" => &mut status.rss_bytes,
                "VmHWM" => &mut status.peak_rss_bytes,
                "RssAnon" => &mut status.anon_bytes,
                "VmSwap" => &mut status.swap_bytes,
                _ => continue,
            };
            *field = kib_as_bytes(value)
                .ok_or_else(|| Error::parse(self.file(pid, "status"), line, "a size such as `12 kB`"))?;
        }
        Ok(Some(status))
    }
}

/// Reads ` 123 kB` (the form of /proc's size fields) as bytes.
pub(crate) fn kib_as_bytes(value: &str) -> Option<u64> {
    let mut words = value.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    (words.next() == Some("kB")).then(|| number.saturating_mul(1024))
}
