//! A unit that somebody else put a job into. It is read, never written: its limits are not ours.

use crate::cgroup::{Cgroup, Hierarchies, Peak, PeakSource, Place};
use crate::proc::{Membership, ProcFs, ProcessKey};

/// What was read of a unit. Its cgroup, counters included, is gone the moment its last process ends, so
/// the last numbers seen are what is told.
#[derive(Debug)]
pub(crate) struct ForeignUnit {
    root: ProcessKey,
    /// Where the job was before; its unit is elsewhere.
    before: Membership,
    cgroup: Option<Cgroup>,
    peak: Option<Peak>,
    oom_kills: u64,
    limit_was_hit: bool,
}

impl ForeignUnit {
    /// The unit that this process is in, or is going to be in: another cgroup than `before`.
    pub(crate) fn of(root: ProcessKey, before: Membership) -> Self {
        Self { root, before, cgroup: None, peak: None, oom_kills: 0, limit_was_hit: false }
    }

    pub(crate) fn sample(&mut self, proc: &ProcFs) {
        if self.cgroup.is_none() {
            self.cgroup = self.find(proc);
        }
        let Some(cgroup) = &self.cgroup else { return };
        let usage = || cgroup.usage_bytes().ok().flatten().map(|bytes| Peak { bytes, source: PeakSource::Sampled });
        if let Some(now) = cgroup.peak().ok().flatten().or_else(usage) {
            self.peak = self.peak.filter(|known| known.bytes > now.bytes).or(Some(now));
        }
        self.oom_kills = self.oom_kills.max(cgroup.oom_kills().unwrap_or(0));
        self.limit_was_hit |= cgroup.limit_was_hit().unwrap_or(false);
    }

    fn find(&self, proc: &ProcFs) -> Option<Cgroup> {
        let now = proc.membership(self.root.pid).ok()??;
        if now == self.before || !proc.is_alive(self.root) {
            return None;
        }
        let places = Hierarchies::of(proc, now).ok()?;
        let open = |place: Place| Cgroup::open(place.own, place.version).ok();
        let counts = |cgroup: &Cgroup| cgroup.usage_bytes().is_ok_and(|usage| usage.is_some());
        [places.v2, places.v1_memory].into_iter().flatten().filter_map(open).find(counts)
    }

    pub(crate) fn peak(&self) -> Option<Peak> {
        self.peak
    }

    pub(crate) fn oom_kills(&self) -> u64 {
        self.oom_kills
    }

    pub(crate) fn limit_was_hit(&self) -> bool {
        self.limit_was_hit
    }
}
