//! The facts about a job that has ended. What they mean is for others to say.

use crate::cgroup::Peak;
use crate::journal::Mark;
use crate::process::Ending;

/// A process that was killed for lack of memory.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Victim {
    /// Its number.
    pub pid: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// What it held, bytes.
    pub rss_bytes: u64,
}

/// A process that outlived its job's command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftProcess {
    /// Its number.
    pub pid: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// What it holds now, bytes.
    pub rss_bytes: u64,
}

/// The end of a job's command.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Ended {
    /// How the command itself ended; `None` when somebody else collected it first.
    pub ending: Option<Ending>,
    /// The most memory the job used.
    pub peak: Option<Peak>,
    /// The job came up against its own cap. Kills without it mean that memory ran out above the box.
    pub cap_hit: bool,
    /// Processes that the kernel killed in the box.
    pub oom_kills: u64,
    /// Processes that headroom killed at the cap (`userspace` mode).
    pub cap_kills: u64,
    /// Who was killed, as far as known.
    pub victims: Vec<Victim>,
    /// Who still runs in the box.
    pub left_running: Vec<LeftProcess>,
    /// Processes of the job that were found outside the box, each counted once.
    pub escaped: u64,
    /// The last signal passed on that asks a job to end.
    pub ended_by_signal: Option<i32>,
    /// Somebody stopped systemd's unit that held the job.
    pub pool_stopped: bool,
    /// The watchdog stopped it.
    pub watchdog: Option<Mark>,
    /// How long the command ran, milliseconds.
    pub took_ms: f64,
}
