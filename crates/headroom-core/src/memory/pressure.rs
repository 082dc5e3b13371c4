//! Pressure stall information. `total` is fresh at every read; `avg10` is recomputed every 2 s and
//! lags a burst by seconds, so decisions use differences of `total`. See the kernel's
//! Documentation/accounting/psi.rst.

use std::path::Path;

use crate::dir::Dir;
use crate::error::{Error, Result};

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stall {
    /// Share of the last 10 s that was stalled, percent.
    pub avg10_percent: f64,
    /// Stalled time since boot (or since the cgroup was made), microseconds.
    pub total_us: u64,
}

/// A memory pressure file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// At least one task waited for memory.
    pub some: Stall,
    /// Every task that could run waited for memory.
    pub full: Stall,
}

impl Pressure {
    /// Reads a pressure file: `pressure/memory` of /proc or `memory.pressure` of a v2 cgroup. `None`
    /// where the kernel has no PSI or it is switched off.
    pub fn read(dir: &Dir, file: &str) -> Result<Option<Self>> {
        let Some(text) = dir.read_if_present(file)? else { return Ok(None) };
        let mut pressure = Self::default();
        for line in text.lines() {
            let stall =
                parse_line(line).ok_or_else(|| Error::parse(dir.path().join(Path::new(file)), line, "a PSI line"))?;
            match line.split(' ').next() {
                Some("some") => pressure.some = stall,
                Some("full") => pressure.full = stall,
                _ => {}
            }
        }
        Ok(Some(pressure))
    }
}

fn parse_line(line: &str) -> Option<Stall> {
    let value = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    Some(Stall { avg10_percent: value("avg10")?.parse().ok()?, total_us: value("total")?.parse().ok()? })
}
