//! How much memory a process holds: the cheap answer (statm, about 3 µs) and the exact one
//! (`smaps_rollup`, which walks the page tables: milliseconds for a large process).

use crate::error::{Error, Result};
use crate::proc::ProcFs;
use crate::proc::status::kib_as_bytes;

/// /proc/PID/statm in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statm {
    /// Resident memory, shared pages counted in full.
    pub resident_bytes: u64,
    /// The file-backed and shared-memory part of it.
    pub shared_bytes: u64,
}

/// `/proc/PID/smaps_rollup` in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rollup {
    /// Resident set size: a shared page counts whole.
    pub rss_bytes: u64,
    /// Proportional set size: a page shared by n processes counts 1/n.
    pub pss_bytes: u64,
    /// Proportional part of what is swapped out.
    pub swap_pss_bytes: u64,
    /// Memory that only this process has and that differs from its file.
    pub private_dirty_bytes: u64,
}

impl ProcFs {
    /// Reads a process's statm; `None` when it is gone.
    pub fn statm(&self, pid: i32) -> Result<Option<Statm>> {
        let Some(text) = self.read(pid, "statm")? else { return Ok(None) };
        let pages = |index| text.split_ascii_whitespace().nth(index).and_then(|word| word.parse::<u64>().ok());
        match (pages(1), pages(2)) {
            (Some(resident), Some(shared)) => {
                let page_bytes = page_bytes();
                Ok(Some(Statm {
                    resident_bytes: resident.saturating_mul(page_bytes),
                    shared_bytes: shared.saturating_mul(page_bytes),
                }))
            }
            _ => Err(Error::parse(self.file(pid, "statm"), &text, "seven page counts")),
        }
    }

    /// Reads a process's `smaps_rollup`; `None` when it is gone or has no memory of its own (a kernel
    /// thread, a zombie).
    pub fn rollup(&self, pid: i32) -> Result<Option<Rollup>> {
        let Some(text) = self.read_lossy(pid, "smaps_rollup")? else { return Ok(None) };
        let mut rollup = Rollup::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let field = match key {
                "Rss" => &mut rollup.rss_bytes,
                "Pss" => &mut rollup.pss_bytes,
                "SwapPss" => &mut rollup.swap_pss_bytes,
                "Private_Dirty" => &mut rollup.private_dirty_bytes,
                _ => continue,
            };
            *field = kib_as_bytes(value)
                .ok_or_else(|| Error::parse(self.file(pid, "smaps_rollup"), line, "a size such as `12 kB`"))?;
        }
        Ok(Some(rollup))
    }
}

/// Size of a page, bytes.
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}
