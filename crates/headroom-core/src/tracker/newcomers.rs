//! Processes that are new since a moment, cheaply: the kernel says in /proc/loadavg which number it gave last, so
//! only the numbers since then need a look. See `proc_loadavg(5)`.

use std::time::{Duration, Instant};

use crate::proc::{ProcFs, Stat};

/// A gap that wide is read from the list of all processes instead.
const WIDE_GAP: i32 = 4096;

/// So often one look is at all processes: where a container has a file of its own, its number may stand still. Rare,
/// for it takes milliseconds in which a short shell can come and go.
const FULL_LOOK_EVERY: Duration = Duration::from_millis(500);

/// Remembers the last number it has seen.
#[derive(Debug)]
pub struct Newcomers {
    last: Option<i32>,
    next_full_look: Instant,
    /// Start times before this one, in clock ticks, are of older processes.
    since_ticks: u64,
}

impl Newcomers {
    /// Counts from now on.
    #[must_use]
    pub fn from_now(proc: &ProcFs) -> Self {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        let since_ticks = crate::proc::boot_ms().saturating_mul(ticks_per_second) / 1000;
        Self {
            last: last_given(proc),
            next_full_look: Instant::now() + FULL_LOOK_EVERY,
            since_ticks: since_ticks.saturating_sub(1),
        }
    }

    /// The processes (not threads of them) that began since the last look and are there now; at times those that
    /// were told before are among them.
    pub fn look(&mut self, proc: &ProcFs) -> Vec<Stat> {
        let Some(newest) = last_given(proc) else { return self.look_at_all(proc) };
        let before = self.last.replace(newest);
        let now = Instant::now();
        if now >= self.next_full_look {
            self.next_full_look = now + FULL_LOOK_EVERY;
            return self.look_at_all(proc);
        }
        match before {
            Some(before) if before == newest => Vec::new(),
            Some(before) if before < newest && newest - before <= WIDE_GAP => {
                (before + 1..=newest).filter_map(|pid| self.new_process(proc, pid)).collect()
            }
            // The numbers have begun again from below, or too many are new.
            _ => self.look_at_all(proc),
        }
    }

    fn look_at_all(&self, proc: &ProcFs) -> Vec<Stat> {
        let pids = proc.pids().unwrap_or_default();
        pids.into_iter().filter_map(|pid| self.new_process(proc, pid)).collect()
    }

    fn new_process(&self, proc: &ProcFs, pid: i32) -> Option<Stat> {
        let stat = proc.stat(pid).ok()??;
        // A thread has a number too, and a file under it.
        let is_new = !stat.is_zombie() && stat.start_ticks >= self.since_ticks;
        (is_new && proc.is_process(pid)).then_some(stat)
    }
}

/// The last number that was given to a process or thread; `None` where this system's file does not tell (a container
/// with a file of its own there).
fn last_given(proc: &ProcFs) -> Option<i32> {
    let text = proc.dir().read("loadavg").ok()?;
    text.split_ascii_whitespace().nth(4)?.parse().ok().filter(|number| *number > 1)
}
