//! The watchdog as an object.

use std::os::fd::IntoRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use headroom_core::journal::RuntimeDir;
use headroom_core::watchdog::{Rules, Running, start, wake_forgotten as core_wake_forgotten};
use napi_derive::napi;

use crate::error::{bad_argument, bytes, thrown};

/// When the watchdog acts.
#[napi(object, object_to_js = false, use_nullable = true)]
pub struct WatchdogRules {
    /// Available memory below this is danger.
    pub critical_bytes: f64,
    /// With so much available there is no lack of memory, whatever the machine's pressure says.
    pub reserve_bytes: f64,
    /// The agent waits for memory in this part of a second, percent.
    pub stalled_percent: u32,
    /// Without pressure information: pages a second that had to be read again.
    pub refaults_per_s: f64,
    /// How long a job may be paused, over all its pauses.
    pub pause_limit_ms: f64,
    /// Say what would be done, and do nothing.
    pub observe: bool,
    /// The agent, when it is in another cgroup than this process.
    pub agent_pid: Option<i32>,
}

/// A watchdog over the jobs on record in a runtime directory, on a thread of its own. One of a user acts at a
/// time; the others stand by. `stop` ends it, and so does the end of this process: keep the object.
#[napi]
pub struct Watchdog {
    running: Option<Running>,
    events_fd: i32,
}

#[napi]
impl Watchdog {
    /// Starts the thread.
    #[napi(factory, catch_unwind)]
    pub fn start(runtime_dir: String, rules: WatchdogRules) -> napi::Result<Self> {
        let rules = Rules {
            critical_bytes: bytes(rules.critical_bytes)?,
            reserve_bytes: bytes(rules.reserve_bytes)?,
            stalled_percent: rules.stalled_percent,
            refaults_per_s: bytes(rules.refaults_per_s)?,
            pause_limit: Duration::try_from_secs_f64(rules.pause_limit_ms / 1000.0).map_err(bad_argument)?,
            observe: rules.observe,
            agent_pid: rules.agent_pid,
        };
        let started = RuntimeDir::at(Path::new(&runtime_dir)).and_then(|runtime| start(Arc::new(runtime), rules));
        let (running, events) = started.map_err(|e| thrown(&e))?;
        Ok(Self { running: Some(running), events_fd: events.into_raw_fd() })
    }

    /// A descriptor with one JSON line an event, the caller's to close.
    #[napi(getter, catch_unwind)]
    #[must_use]
    pub fn events_fd(&self) -> i32 {
        self.events_fd
    }

    /// Ends the thread and waits for it; a job that it had paused goes on. Stopping twice is fine.
    #[napi(catch_unwind)]
    pub fn stop(&mut self) {
        self.running = None;
    }
}

/// Lets jobs go on that were paused by a watchdog that is gone, where no other one has taken over. Answers how
/// many.
#[napi(catch_unwind)]
pub fn wake_forgotten(runtime_dir: String) -> napi::Result<u32> {
    let woken = RuntimeDir::at(Path::new(&runtime_dir)).and_then(|runtime| core_wake_forgotten(&runtime));
    woken.map(|count| u32::try_from(count).unwrap_or(u32::MAX)).map_err(|e| thrown(&e))
}
