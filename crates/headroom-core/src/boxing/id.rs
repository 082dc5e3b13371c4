//! Names of boxes. A name holds the number and start time of the process that made it, so that any
//! later process can tell from the name alone whether the maker still lives.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Result;
use crate::proc::{ProcFs, ProcessKey};

/// Every job cgroup's name starts with this.
pub const BOX_PREFIX: &str = "headroom-job-";

static NEXT: AtomicU32 = AtomicU32::new(1);

/// The identity of one job: who made it, and a running number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BoxId {
    /// The process that made the box.
    pub owner: ProcessKey,
    /// Distinguishes the boxes of one owner.
    pub sequence: u32,
}

impl BoxId {
    /// A new identity, owned by this process.
    pub fn new(proc: &ProcFs) -> Result<Self> {
        Ok(Self { owner: proc.own_key()?, sequence: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    /// The cgroup's name, `headroom-job-PID-STARTTICKS-N`.
    #[must_use]
    pub fn cgroup_name(&self) -> String {
        format!("{BOX_PREFIX}{self}")
    }

    /// Reads a cgroup's name; `None` when it is not one of ours.
    #[must_use]
    pub fn from_cgroup_name(name: &str) -> Option<Self> {
        Self::parse(name.strip_prefix(BOX_PREFIX)?)
    }

    /// Reads the form that `Display` writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (pid, start_ticks, sequence) = (parts.next()?, parts.next()?, parts.next()?);
        let id = Self {
            owner: ProcessKey { pid: pid.parse().ok()?, start_ticks: start_ticks.parse().ok()? },
            sequence: sequence.parse().ok()?,
        };
        (parts.next().is_none() && id.owner.pid > 0 && id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for BoxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.owner.pid, self.owner.start_ticks, self.sequence)
    }
}
