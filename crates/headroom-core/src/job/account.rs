//! The end of a job: its account is closed, and only then is its box removed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::cgroup::{Peak, PeakSource};
use crate::job::watch::{Measure, Watch};
use crate::job::watched::describe;
use crate::job::{Ended, Event, LeftProcess, Victim};
use crate::journal::{Handling, Record};
use crate::process::{Ending, SignalForwarder};

/// How long the last processes of a job (the rest of a pipeline) may take to end after its command.
const SETTLE_PATIENCE: Duration = Duration::from_millis(100);
const SETTLE_PAUSE: Duration = Duration::from_millis(2);

/// A process that held less than this part of the cap is nobody the kernel would have chosen.
const LARGE_PART: u64 = 8;

impl Watch {
    /// Closes the account, removes the box or leaves it with who is in it, and tells the last line.
    pub(crate) fn close(mut self, ending: Option<Ending>) {
        let ended = self.close_account(ending);
        self.leave(&ended);
        self.events.send_last(&Event::Ended(ended));
    }

    fn close_account(&mut self, ending: Option<Ending>) -> Ended {
        let took_ms = self.began.elapsed().as_secs_f64() * 1000.0;
        self.look_for_escapes();
        let left_running = self.settle();
        self.count_escapes();
        // A cgroup that was removed under us has no counters any more; what was seen before counts.
        let (oom_kills, limit_was_hit) = match &self.measure {
            Measure::Unit(unit) => (unit.oom_kills(), unit.limit_was_hit()),
            _ => (
                self.job_box.oom_kills().unwrap_or(0).max(self.oom_kills_told),
                self.cap_hit || self.job_box.limit_was_hit().unwrap_or(false),
            ),
        };
        Ended {
            ending,
            peak: self.peak(),
            cap_hit: !self.cap_victims.is_empty() || limit_was_hit,
            oom_kills,
            cap_kills: self.cap_victims.len() as u64,
            victims: self.victims(oom_kills),
            left_running,
            escaped: self.escaped,
            watchdog: self
                .supervision
                .record
                .as_ref()
                .and_then(Record::mark)
                .filter(|mark| mark.handling == Handling::Stopped),
            pool_stopped: self.job_box.pool_was_stopped(),
            ended_by_signal: self.supervision.forwarder.as_ref().and_then(SignalForwarder::last_ending_signal),
            took_ms,
        }
    }

    /// Who is left once the rest of a pipeline has had a moment to end: in the box, or known to be the job's
    /// and outside of it. Somebody in the middle of a double fork is seen only at a second look.
    fn settle(&mut self) -> Vec<LeftProcess> {
        let deadline = Instant::now() + SETTLE_PATIENCE;
        let mut quiet_looks = 0;
        loop {
            self.watched.look_at_all(&self.proc);
            let mut left = self.watched.left_running(&self.proc);
            let known: HashSet<i32> = left.iter().map(|process| process.pid).collect();
            let inside = self.job_box.pids().unwrap_or_default().into_iter().filter(|pid| !known.contains(pid));
            left.extend(describe(&self.proc, inside));
            self.collect_orphans();
            quiet_looks = if left.is_empty() { quiet_looks + 1 } else { 0 };
            if quiet_looks > 1 || Instant::now() > deadline {
                return left;
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    fn peak(&self) -> Option<Peak> {
        let sampled = |bytes| Some(Peak { bytes, source: PeakSource::Sampled });
        match &self.measure {
            Measure::Cap(cap) => sampled(cap.peak_bytes()),
            Measure::Unit(unit) => unit.peak(),
            Measure::Box if self.job_box.cgroup().is_some() => {
                self.job_box.peak().ok().flatten().or_else(|| sampled(self.sampled_peak_bytes))
            }
            Measure::Box | Measure::Nothing => None,
        }
    }

    fn victims(&mut self, oom_kills: u64) -> Vec<Victim> {
        if !self.cap_victims.is_empty() {
            return std::mem::take(&mut self.cap_victims);
        }
        if oom_kills == 0 {
            return Vec::new();
        }
        let logged = self.kernel_log.as_mut().map(|log| log.victims_in(self.job_box.name(), &self.seen_inside));
        if let Some(victims) = logged.filter(|victims| !victims.is_empty()) {
            return victims;
        }
        // The kernel takes the largest: of those that were large and are gone, so many as it killed. One
        // that grew and died between two samples stays unknown, rather than somebody else be blamed.
        let large_bytes = self.job_box.limits().memory_bytes / LARGE_PART;
        let is_gone = |pid| !matches!(self.proc.living(pid), Ok(Some(_)));
        let mut gone: Vec<&LeftProcess> = self
            .seen_large
            .values()
            .filter(|process| process.rss_bytes >= large_bytes && is_gone(process.pid))
            .collect();
        gone.sort_by_key(|process| std::cmp::Reverse(process.rss_bytes));
        gone.truncate(usize::try_from(oom_kills).unwrap_or(usize::MAX));
        gone.into_iter().map(|p| Victim { pid: p.pid, name: p.name.clone(), rss_bytes: p.rss_bytes }).collect()
    }

    /// Removes the box, or leaves it on record with the processes that keep it.
    fn leave(&mut self, ended: &Ended) {
        let is_empty = ended.left_running.is_empty() || self.job_box.pids().is_ok_and(|pids| pids.is_empty());
        let has_cgroup = self.job_box.cgroup().is_some();
        // Who runs on elsewhere is none of this box's: nobody is to hold it to a cap that it never had.
        let is_elsewhere = matches!(self.measure, Measure::Unit(_) | Measure::Nothing);
        let removed = is_empty
            && (has_cgroup || is_elsewhere || ended.left_running.is_empty())
            && self.job_box.remove().unwrap_or(false);
        if let Some(record) = self.supervision.record.take() {
            if removed {
                record.erase();
            } else {
                record.keep_as_left();
            }
        }
        self.job_box.let_pool_go();
    }
}
