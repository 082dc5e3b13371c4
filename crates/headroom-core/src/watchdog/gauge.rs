//! What is measured, some times a second.

use std::time::{Duration, Instant};

use crate::cgroup::{Cgroup, Hierarchies, Version};
use crate::dir::Dir;
use crate::error::Result;
use crate::memory::{Ceilings, Pressure};
use crate::proc::ProcFs;

/// How often limits above this process are looked for anew.
const CEILINGS_EVERY: Duration = Duration::from_secs(10);
const AGENT_PRESSURE: &str = "memory.pressure";
const SYSTEM_PRESSURE: &str = "pressure/memory";

/// How much somebody has waited for memory, as totals that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stalls {
    /// The agent's own cgroup, microseconds in which all of it waited.
    Agent {
        /// Microseconds.
        total_us: u64,
    },
    /// The whole machine, jobs in their boxes included.
    System {
        /// Microseconds.
        total_us: u64,
    },
    /// No pressure information: pages read again that had been dropped or swapped out.
    Refaults {
        /// Pages.
        total: u64,
    },
    /// Nothing of it can be read.
    Unknown,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// When.
    pub at: Instant,
    /// Memory that could be had, limits above this process counted in, bytes.
    pub available_bytes: u64,
    /// Swap that is free, bytes.
    pub swap_free_bytes: u64,
    /// Waiting.
    pub stalls: Stalls,
}

/// What stays open between measurements.
#[derive(Debug)]
pub struct Gauge {
    proc: ProcFs,
    ceilings: Ceilings,
    ceilings_at: Instant,
    enough_bytes: u64,
    agent: Option<Cgroup>,
    /// The agent's path in the v2 hierarchy.
    agent_path: Option<String>,
}

impl Gauge {
    /// Finds what there is to read. With `enough_bytes` available it need not be known more exactly. `agent_pid`:
    /// the agent, where it is not this process.
    pub fn new(proc: ProcFs, enough_bytes: u64, agent_pid: Option<i32>) -> Result<Self> {
        let ceilings = Ceilings::find(&proc)?;
        let membership = match agent_pid {
            Some(pid) => proc.membership(pid)?.unwrap_or_default(),
            None => proc.own_membership()?,
        };
        let agent_path = membership.v2.clone();
        let place = Hierarchies::of(&proc, membership)?.v2;
        let agent = place.and_then(|place| Cgroup::open(place.own, Version::V2).ok());
        Ok(Self { proc, ceilings, ceilings_at: Instant::now(), enough_bytes, agent, agent_path })
    }

    /// Measures once.
    pub fn read(&mut self) -> Result<Reading> {
        let at = Instant::now();
        if at.duration_since(self.ceilings_at) > CEILINGS_EVERY {
            self.ceilings = Ceilings::find(&self.proc)?;
            self.ceilings_at = at;
        }
        let machine = self.proc.meminfo()?;
        let left = self.ceilings.left_bytes(self.enough_bytes).unwrap_or(u64::MAX);
        let available_bytes = machine.available_bytes.min(left);
        Ok(Reading { at, available_bytes, swap_free_bytes: machine.swap_free_bytes, stalls: self.stalls() })
    }

    /// Whether a process is in the agent's cgroup or below it, so that its waiting is part of the agent's.
    #[must_use]
    pub fn is_with_agent(&self, pid: i32) -> bool {
        let path = self.proc.membership(pid).ok().flatten().and_then(|membership| membership.v2);
        path.zip(self.agent_path.as_ref()).is_some_and(|(path, agent)| {
            path.strip_prefix(agent.as_str())
                .is_some_and(|below| below.is_empty() || below.starts_with('/') || agent == "/")
        })
    }

    fn stalls(&self) -> Stalls {
        let full = |dir: &Dir, file| Pressure::read(dir, file).ok().flatten().map(|pressure| pressure.full.total_us);
        if let Some(total_us) = self.agent.as_ref().and_then(|agent| full(agent.dir(), AGENT_PRESSURE)) {
            return Stalls::Agent { total_us };
        }
        if let Some(total_us) = full(self.proc.dir(), SYSTEM_PRESSURE) {
            return Stalls::System { total_us };
        }
        let of_agent = self.agent.as_ref().and_then(|agent| refaults(agent.dir(), "memory.stat"));
        let total = of_agent.or_else(|| refaults(self.proc.dir(), "vmstat"));
        total.map_or(Stalls::Unknown, |total| Stalls::Refaults { total })
    }
}

/// Pages that came back: of files, and (where a kernel counts them) from swap. `workingset_refault` without an
/// ending is the name before Linux 5.9.
fn refaults(dir: &Dir, file: &str) -> Option<u64> {
    const NAMES: [&str; 4] = ["workingset_refault", "workingset_refault_file", "workingset_refault_anon", "pswpin"];
    let text = dir.read_if_present(file).ok()??;
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        NAMES.contains(&name).then(|| value.trim().parse::<u64>().ok())?
    });
    values.reduce(u64::saturating_add)
}
