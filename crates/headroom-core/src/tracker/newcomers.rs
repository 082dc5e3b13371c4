//! Processes that are new since a moment. Listing costs about as many microseconds as the list has tens of
//! processes; nothing is read of one that was there before.
//!
//! The agent's own cgroup names its new children whichever of its threads starts them. /proc/AGENT/task/TID/children
//! would need a file for each thread, and a thread may be new. Where the cgroup cannot be read, or is as large as
//! the machine, all processes are listed instead.

use crate::cgroup::{Hierarchies, Place, Version};
use crate::dir::Dir;
use crate::error::Result;
use crate::proc::ProcFs;

/// A list of numbers, and those that were on it when it began.
#[derive(Debug)]
struct List {
    /// The directory of a cgroup; `None` for all processes.
    cgroup: Option<Dir>,
    /// Ascending.
    known: Vec<i32>,
}

impl List {
    fn new(proc: &ProcFs, cgroup: Option<Dir>) -> Result<Self> {
        let mut list = Self { cgroup, known: Vec::new() };
        list.known = list.read(proc)?;
        Ok(list)
    }

    fn read(&self, proc: &ProcFs) -> Result<Vec<i32>> {
        let Some(dir) = &self.cgroup else { return proc.pids() };
        let bytes = dir.read_bytes("cgroup.procs")?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let mut pids: Vec<i32> = lines.filter_map(|line| std::str::from_utf8(line).ok()?.parse().ok()).collect();
        pids.sort_unstable();
        Ok(pids)
    }

    /// Numbers that are new. One that was known and is gone is forgotten: who gets it next is new.
    fn new_ones(&mut self, proc: &ProcFs) -> Vec<i32> {
        let Ok(now) = self.read(proc) else { return Vec::new() };
        self.known.retain(|pid| now.binary_search(pid).is_ok());
        now.into_iter().filter(|pid| self.known.binary_search(pid).is_err()).collect()
    }
}

/// The processes that are new since this was made.
#[derive(Debug)]
pub(super) struct Newcomers {
    near: List,
    everywhere: Option<List>,
}

impl Newcomers {
    /// Takes note of who is there now.
    pub(super) fn since_now(proc: &ProcFs, agent: i32) -> Result<Self> {
        let everywhere = List::new(proc, None)?;
        let near = own_cgroup(proc, agent).and_then(|dir| List::new(proc, Some(dir)).ok());
        Ok(match near.filter(|near| near.known.len() < everywhere.known.len()) {
            Some(near) => Self { near, everywhere: Some(everywhere) },
            None => Self { near: everywhere, everywhere: None },
        })
    }

    /// New ones near the agent, living or not, ascending.
    pub(super) fn near(&mut self, proc: &ProcFs) -> Vec<i32> {
        self.near.new_ones(proc)
    }

    /// New ones anywhere, as one may have been moved away by whoever started it.
    pub(super) fn everywhere(&mut self, proc: &ProcFs) -> Vec<i32> {
        self.everywhere.as_mut().unwrap_or(&mut self.near).new_ones(proc)
    }
}

/// The agent's cgroup in the hierarchy whose list of it is the shorter one.
fn own_cgroup(proc: &ProcFs, agent: i32) -> Option<Dir> {
    let places = Hierarchies::of(proc, proc.membership(agent).ok()??).ok()?;
    let length = |dir: &Dir| dir.read_bytes("cgroup.procs").map_or(usize::MAX, |bytes| bytes.len());
    let open = |place: Place| Some((place.version, Dir::open(place.own).ok()?));
    let dirs = [places.v2, places.v1_memory].into_iter().flatten().filter_map(open);
    // v1 answers from a list that it keeps for each opened file, so each look opens it anew; v2 costs less.
    dirs.min_by_key(|(version, dir)| (length(dir), *version == Version::V1)).map(|(_, dir)| dir)
}
