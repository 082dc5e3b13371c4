//! The lines that others draw.

use std::time::Duration;

/// When to act, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Available memory below this is danger; below half of it there is no time to be polite.
    pub critical_bytes: u64,
    /// With so much available there is no lack of memory, whatever the machine's pressure says.
    pub reserve_bytes: u64,
    /// The agent waits for memory in this part of a second, percent.
    pub stalled_percent: u32,
    /// Without pressure information: so many pages a second that had been there before were read again.
    pub refaults_per_s: u64,
    /// How long a job may stand still, over all its pauses.
    pub pause_limit: Duration,
    /// Say what would be done, and do nothing.
    pub observe: bool,
    /// The agent, when it is in another cgroup than this process.
    pub agent_pid: Option<i32>,
}
