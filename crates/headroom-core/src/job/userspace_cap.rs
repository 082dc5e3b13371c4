//! The cap where the kernel has none: sample the job, faster the nearer it comes to the cap, and kill
//! its biggest process there, so that the shell around it lives and sees 137 as with a kernel kill.
//!
//! Each sample adds up resident memory (a few µs a process). That counts shared pages more than once,
//! so near the cap the exact proportional size is taken, which costs milliseconds for a large process.

use std::time::{Duration, Instant};

use crate::job::Victim;
use crate::job::watched::Watched;
use crate::proc::{ProcFs, ProcessKey};
use crate::process::PidFd;

/// The fastest a job is assumed to grow. A C program filled 2.7 GiB/s where this was measured.
const GROWTH_BYTES_PER_MS: u64 = 4 << 20;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How often all processes of the machine are looked at, for orphans.
const FULL_LOOK_EVERY: Duration = Duration::from_millis(100);
/// Exact measurements may take this part of the time at most (1/20), except at the cap.
const EXACT_SHARE: u32 = 20;
/// How long a killed process may take to give its memory back before the next one is chosen.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);

/// One job's cap.
#[derive(Debug)]
pub struct UserspaceCap {
    memory_bytes: u64,
    /// `None`: swapped-out memory does not count.
    swap_bytes: Option<u64>,
    next_full_look: Instant,
    next_exact: Instant,
    /// How much the sum of resident memory overstates, at the last exact measurement.
    overstated_bytes: u64,
    peak_bytes: u64,
}

/// One process with its exact size.
struct Measured {
    key: ProcessKey,
    memory_bytes: u64,
    swap_bytes: u64,
}

impl UserspaceCap {
    /// A cap of so many bytes, and so many more of swap (`None`: unlimited).
    #[must_use]
    pub fn new(memory_bytes: u64, swap_bytes: Option<u64>) -> Self {
        let now = Instant::now();
        Self { memory_bytes, swap_bytes, next_full_look: now, next_exact: now, overstated_bytes: 0, peak_bytes: 0 }
    }

    /// The largest use that was seen, bytes.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Looks once. Answers who was killed, if anybody, and how long to pause.
    pub(crate) fn tick(&mut self, proc: &ProcFs, watched: &mut Watched) -> (Option<Victim>, Duration) {
        let now = Instant::now();
        if now >= self.next_full_look {
            watched.look_at_all(proc);
            self.next_full_look = now + FULL_LOOK_EVERY;
        } else {
            watched.look_at_children(proc);
        }
        let resident = |key: ProcessKey| proc.statm(key.pid).ok().flatten().unwrap_or_default().resident_bytes;
        let summed: u64 = watched.members().map(resident).sum();
        let estimate = summed.saturating_sub(self.overstated_bytes);
        if estimate < self.memory_bytes && now < self.next_exact {
            return (None, self.pause(estimate));
        }
        let measured: Vec<Measured> = watched.members().filter_map(|key| measure(proc, key)).collect();
        self.next_exact = Instant::now() + now.elapsed().max(SHORTEST_PAUSE) * EXACT_SHARE;
        let memory: u64 = measured.iter().map(|process| process.memory_bytes).sum();
        let swap: u64 = measured.iter().map(|process| process.swap_bytes).sum();
        self.overstated_bytes = summed.saturating_sub(memory);
        self.peak_bytes = self.peak_bytes.max(memory);
        // The kernel would swap out what is above the memory cap; here both are one budget.
        let swap_over = self.swap_bytes.map_or(0, |allowed| swap.saturating_sub(allowed));
        if memory.saturating_add(swap_over) < self.memory_bytes {
            return (None, self.pause(memory));
        }
        (kill_biggest(proc, &measured), SHORTEST_PAUSE)
    }

    /// Even the fastest job cannot grow past the cap in the pause, but for the shortest one.
    fn pause(&self, used_bytes: u64) -> Duration {
        let room = self.memory_bytes.saturating_sub(used_bytes);
        Duration::from_millis(room / GROWTH_BYTES_PER_MS).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }
}

/// Exact where this user may look into the process, else its resident memory.
fn measure(proc: &ProcFs, key: ProcessKey) -> Option<Measured> {
    if let Ok(Some(rollup)) = proc.rollup(key.pid) {
        return Some(Measured { key, memory_bytes: rollup.pss_bytes, swap_bytes: rollup.swap_pss_bytes });
    }
    let status = proc.status(key.pid).ok()??;
    Some(Measured { key, memory_bytes: status.rss_bytes, swap_bytes: status.swap_bytes })
}

fn kill_biggest(proc: &ProcFs, measured: &[Measured]) -> Option<Victim> {
    let biggest = measured.iter().max_by_key(|process| process.memory_bytes + process.swap_bytes)?;
    let name = proc.stat(biggest.key.pid).ok()??.name;
    let process = PidFd::open_exactly(proc, biggest.key).ok()?;
    process.signal(libc::SIGKILL).ok()?;
    let _slow_exit_is_seen_at_the_next_look = process.wait(EXIT_PATIENCE);
    Some(Victim { pid: biggest.key.pid, name, rss_bytes: biggest.memory_bytes })
}
