//! The cap where the kernel has none: sample the job, faster the nearer it comes to the cap, and kill
//! its biggest processes there, so that the shell around them lives and sees 137 as with a kernel kill.
//!
//! Each sample adds up resident memory (a few µs a process). That counts shared pages more than once, so
//! at the cap the job is stopped for a moment, measured exactly (proportional size, milliseconds for a
//! large process), and the biggest of its processes are killed until the rest fits. Without the stop many
//! processes would go on growing while they are measured one by one.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::job::Victim;
use crate::job::watched::Watched;
use crate::proc::{ProcFs, ProcessKey};
use crate::process::PidFd;

/// The fastest that one processor is assumed to fill memory. A C program filled 2.7 GiB/s where this was
/// measured.
const GROWTH_BYTES_PER_MS: u64 = 4 << 20;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How often all processes of the machine are looked at, for orphans.
const FULL_LOOK_EVERY: Duration = Duration::from_millis(100);
/// Exact measurements may take this part of the time at most (1/20), except at the cap.
const EXACT_SHARE: u32 = 20;
/// How long a killed process may take to give its memory back before the next one is chosen.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);
/// How often members are listed while they are stopped.
const STOP_ROUNDS: u32 = 5;

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
    growth_bytes_per_ms: u64,
}

/// One process with its exact size.
struct Measured {
    key: ProcessKey,
    memory_bytes: u64,
    swap_bytes: u64,
    /// How much more its resident memory is.
    overstated_bytes: u64,
}

impl UserspaceCap {
    /// A cap of so many bytes, and so many more of swap (`None`: unlimited).
    #[must_use]
    pub fn new(memory_bytes: u64, swap_bytes: Option<u64>) -> Self {
        let now = Instant::now();
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
        Self {
            memory_bytes,
            swap_bytes,
            next_full_look: now,
            next_exact: now,
            overstated_bytes: 0,
            peak_bytes: 0,
            growth_bytes_per_ms: GROWTH_BYTES_PER_MS * processors,
        }
    }

    /// The largest use that was seen, bytes.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Looks once. Answers who was killed, and how long to pause.
    pub(crate) fn tick(&mut self, proc: &ProcFs, watched: &mut Watched) -> (Vec<Victim>, Duration) {
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
        if estimate < self.memory_bytes {
            if now >= self.next_exact {
                self.measure_all(proc, watched);
            }
            return (Vec::new(), self.pause(estimate));
        }
        let stopped = Stopped::stop(proc, watched);
        let measured = self.measure_all(proc, watched);
        let victims = self.kill_what_does_not_fit(proc, measured);
        drop(stopped);
        let used = summed.saturating_sub(self.overstated_bytes);
        let pause = if victims.is_empty() { self.pause(used) } else { SHORTEST_PAUSE };
        (victims, pause)
    }

    /// Takes exact sizes, and learns from them how much the cheap sum overstates. Both sizes of a process are
    /// of one moment, so that one that ends or grows between two looks distorts nothing.
    fn measure_all(&mut self, proc: &ProcFs, watched: &Watched) -> Vec<Measured> {
        let began = Instant::now();
        let measured: Vec<Measured> = watched.members().filter_map(|key| measure(proc, key)).collect();
        self.next_exact = Instant::now() + began.elapsed().max(SHORTEST_PAUSE) * EXACT_SHARE;
        let memory: u64 = measured.iter().map(|process| process.memory_bytes).sum();
        self.overstated_bytes = measured.iter().map(|process| process.overstated_bytes).sum();
        self.peak_bytes = self.peak_bytes.max(memory);
        measured
    }

    /// Kills the biggest processes, as many as it takes, all at once; then waits for their memory.
    fn kill_what_does_not_fit(&self, proc: &ProcFs, mut measured: Vec<Measured>) -> Vec<Victim> {
        let swap: u64 = measured.iter().map(|process| process.swap_bytes).sum();
        // The kernel would swap out what is above the memory cap; here both are one budget.
        let swap_over = self.swap_bytes.map_or(0, |allowed| swap.saturating_sub(allowed));
        let mut used: u64 = measured.iter().map(|process| process.memory_bytes).sum::<u64>() + swap_over;
        measured.sort_unstable_by_key(|process| std::cmp::Reverse(process.memory_bytes + process.swap_bytes));
        let mut killed = Vec::new();
        for process in measured {
            if used < self.memory_bytes {
                break;
            }
            if let Some(victim) = kill(proc, &process) {
                used = used.saturating_sub(process.memory_bytes + process.swap_bytes);
                killed.push(victim);
            }
        }
        let deadline = Instant::now() + EXIT_PATIENCE;
        for (handle, _) in &killed {
            let _slow_exit_is_seen_at_the_next_look = handle.wait(deadline.saturating_duration_since(Instant::now()));
        }
        killed.into_iter().map(|(_, victim)| victim).collect()
    }

    /// Even the fastest job cannot grow past the cap in the pause, but for the shortest one.
    fn pause(&self, used_bytes: u64) -> Duration {
        let room = self.memory_bytes.saturating_sub(used_bytes);
        Duration::from_millis(room / self.growth_bytes_per_ms).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }
}

/// Exact where this user may look into the process, else its resident memory.
fn measure(proc: &ProcFs, key: ProcessKey) -> Option<Measured> {
    if let Ok(Some(rollup)) = proc.rollup(key.pid) {
        return Some(Measured {
            key,
            memory_bytes: rollup.pss_bytes,
            swap_bytes: rollup.swap_pss_bytes,
            overstated_bytes: rollup.rss_bytes.saturating_sub(rollup.pss_bytes),
        });
    }
    let status = proc.status(key.pid).ok()??;
    Some(Measured { key, memory_bytes: status.rss_bytes, swap_bytes: status.swap_bytes, overstated_bytes: 0 })
}

fn kill(proc: &ProcFs, process: &Measured) -> Option<(PidFd, Victim)> {
    let name = proc.stat(process.key.pid).ok()??.name;
    let handle = PidFd::open_exactly(proc, process.key).ok()?;
    handle.signal(libc::SIGKILL).ok()?;
    Some((handle, Victim { pid: process.key.pid, name, rss_bytes: process.memory_bytes }))
}

/// A job that stands still until this is dropped. Processes that were stopped before stay stopped.
struct Stopped {
    handles: Vec<PidFd>,
}

impl Stopped {
    /// Stops every member, and those that members start meanwhile, until a look finds nobody new.
    fn stop(proc: &ProcFs, watched: &mut Watched) -> Self {
        let mut seen = HashSet::new();
        let mut handles = Vec::new();
        for _ in 0..STOP_ROUNDS {
            let new: Vec<ProcessKey> = watched.members().filter(|key| seen.insert(*key)).collect();
            if new.is_empty() {
                break;
            }
            for key in new {
                let runs =
                    proc.stat(key.pid).is_ok_and(|stat| stat.is_some_and(|stat| !matches!(stat.state, 'T' | 't')));
                if let (true, Ok(handle)) = (runs, PidFd::open_exactly(proc, key))
                    && handle.signal(libc::SIGSTOP).is_ok()
                {
                    handles.push(handle);
                }
            }
            watched.look_at_children(proc);
        }
        Self { handles }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for handle in &self.handles {
            let _gone_is_fine = handle.signal(libc::SIGCONT);
        }
    }
}
