//! /proc/PID/stat. The name stands in parentheses and may itself hold parentheses, spaces and line
//! feeds, so the fields are counted after the **last** `)`.

use crate::error::{Error, Result};
use crate::proc::ProcFs;

/// A process that a number cannot be confused with: number and start time together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ProcessKey {
    /// Process number.
    pub pid: i32,
    /// Start time in clock ticks after boot (field 22).
    pub start_ticks: u64,
}

/// Milliseconds since boot, the machine's sleep included.
pub(crate) fn boot_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec.cast_unsigned() * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
}

impl ProcessKey {
    /// How long ago the process started, milliseconds; whether it still lives does not matter. Start times
    /// count from the boot, suspended time included, and so does `CLOCK_BOOTTIME`.
    #[must_use]
    pub fn age_ms(self) -> u64 {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        boot_ms().saturating_sub(self.start_ticks.saturating_mul(1000) / ticks_per_second)
    }
}

/// From the kernel's `sched.h`.
const PF_EXITING: u64 = 0x4;

/// The fields of /proc/PID/stat that this crate uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process number (field 1).
    pub pid: i32,
    /// Name, at most 15 bytes (field 2), bytes that are not UTF-8 replaced.
    pub name: String,
    /// State letter: `R`, `S`, `D`, `T`, `Z` … (field 3).
    pub state: char,
    /// Parent (field 4).
    pub ppid: i32,
    /// Process group (field 5).
    pub pgrp: i32,
    /// Session (field 6).
    pub session: i32,
    /// It is ending (`PF_EXITING` in the flags, field 9). A v1 hierarchy tells of such a process that it is in
    /// the root.
    pub is_exiting: bool,
    /// Start time in clock ticks after boot (field 22).
    pub start_ticks: u64,
    /// Resident pages (field 24); inexact, see proc(5).
    pub rss_pages: u64,
}

impl Stat {
    /// Number and start time.
    #[must_use]
    pub fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.pid, start_ticks: self.start_ticks }
    }

    /// Whether the process has ended and only waits to be reaped.
    #[must_use]
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    fn parse(text: &str) -> Option<Self> {
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let pid = text.get(..open)?.trim().parse().ok()?;
        let name = text.get(open + 1..close)?.to_owned();
        let fields: Vec<&str> = text.get(close + 1..)?.split_ascii_whitespace().collect();
        // `fields[0]` is field 3 of the manual page.
        let number = |field: usize| fields.get(field - 3).copied();
        Some(Self {
            pid,
            name,
            state: number(3)?.chars().next()?,
            ppid: number(4)?.parse().ok()?,
            pgrp: number(5)?.parse().ok()?,
            session: number(6)?.parse().ok()?,
            is_exiting: number(9)?.parse::<u64>().ok()? & PF_EXITING != 0,
            start_ticks: number(22)?.parse().ok()?,
            rss_pages: number(24)?.parse::<i64>().ok()?.max(0).cast_unsigned(),
        })
    }
}

impl ProcFs {
    /// Reads a process's stat file; `None` when it is gone.
    pub fn stat(&self, pid: i32) -> Result<Option<Stat>> {
        let Some(text) = self.read_lossy(pid, "stat")? else { return Ok(None) };
        let stat = Stat::parse(&text).ok_or_else(|| Error::parse(self.file(pid, "stat"), &text, "a stat line"))?;
        Ok(Some(stat))
    }

    /// The key of a living process; `None` when it is gone or a zombie.
    pub fn living(&self, pid: i32) -> Result<Option<ProcessKey>> {
        Ok(self.stat(pid)?.filter(|stat| !stat.is_zombie()).map(|stat| stat.key()))
    }

    /// Whether exactly this process still runs.
    #[must_use]
    pub fn is_alive(&self, key: ProcessKey) -> bool {
        matches!(self.living(key.pid), Ok(Some(found)) if found == key)
    }

    /// The key of this very process.
    pub fn own_key(&self) -> Result<ProcessKey> {
        let pid = std::process::id().cast_signed();
        self.living(pid)?.ok_or(Error::Gone { pid })
    }
}
