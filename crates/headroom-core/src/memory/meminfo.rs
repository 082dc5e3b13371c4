//! /proc/meminfo.

use crate::error::{Error, Result};
use crate::proc::ProcFs;

/// The machine's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// `MemTotal`.
    pub total_bytes: u64,
    /// `MemAvailable`: what can be had without swapping.
    pub available_bytes: u64,
    /// `SwapTotal`.
    pub swap_total_bytes: u64,
    /// `SwapFree`.
    pub swap_free_bytes: u64,
}

impl ProcFs {
    /// Reads /proc/meminfo.
    pub fn meminfo(&self) -> Result<MemInfo> {
        let text = self.dir().read("meminfo")?;
        let path = || self.dir().path().join("meminfo");
        let field = |name: &'static str| -> Result<Option<u64>> {
            let Some(line) = text.lines().find(|line| line.split(':').next() == Some(name)) else { return Ok(None) };
            let number = line.split_ascii_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
            number.map(|kib| Some(kib.saturating_mul(1024))).ok_or_else(|| Error::parse(path(), line, "a size in kB"))
        };
        let required = |name| field(name)?.ok_or_else(|| Error::parse(path(), name, "this line to be present"));
        Ok(MemInfo {
            total_bytes: required("MemTotal")?,
            available_bytes: required("MemAvailable")?,
            swap_total_bytes: field("SwapTotal")?.unwrap_or(0),
            swap_free_bytes: field("SwapFree")?.unwrap_or(0),
        })
    }
}
