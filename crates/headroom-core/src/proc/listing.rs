//! All processes at one moment, and who descends from whom.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::proc::{ProcFs, Stat};

/// One pass over /proc. Processes that ended during the pass are left out.
#[derive(Debug, Clone, Default)]
pub struct ProcessTree {
    processes: HashMap<i32, Stat>,
}

impl ProcessTree {
    /// The process with this number.
    #[must_use]
    pub fn get(&self, pid: i32) -> Option<&Stat> {
        self.processes.get(&pid)
    }

    /// Every process.
    pub fn iter(&self) -> impl Iterator<Item = &Stat> {
        self.processes.values()
    }

    /// The parents of a process, nearest first.
    pub fn ancestors(&self, pid: i32) -> impl Iterator<Item = &Stat> {
        let mut seen = HashSet::from([pid]);
        let mut next = self.get(pid).map(|stat| stat.ppid);
        std::iter::from_fn(move || {
            // A tree read while it changes can hold a circle.
            let parent = self.get(next.filter(|parent| seen.insert(*parent))?)?;
            next = Some(parent.ppid);
            Some(parent)
        })
    }
}

impl FromIterator<Stat> for ProcessTree {
    fn from_iter<I: IntoIterator<Item = Stat>>(stats: I) -> Self {
        Self { processes: stats.into_iter().map(|stat| (stat.pid, stat)).collect() }
    }
}

/// The roots that exist and everything below them, zombies included.
#[must_use]
pub fn descendants_of<S: std::hash::BuildHasher>(tree: &ProcessTree, roots: &HashSet<i32, S>) -> Vec<Stat> {
    let is_below =
        |stat: &&Stat| roots.contains(&stat.pid) || tree.ancestors(stat.pid).any(|up| roots.contains(&up.pid));
    let mut found: Vec<Stat> = tree.iter().filter(is_below).cloned().collect();
    found.sort_unstable_by_key(|stat| stat.pid);
    found
}

impl ProcFs {
    /// Reads every process once (about 8 µs each).
    pub fn tree(&self) -> Result<ProcessTree> {
        let mut stats = Vec::new();
        for pid in self.pids()? {
            stats.extend(self.stat(pid)?);
        }
        Ok(stats.into_iter().collect())
    }

    /// The children that a process's threads have now; `None` where the kernel has no such file
    /// (`CONFIG_PROC_CHILDREN`) or the process is gone.
    pub fn children(&self, pid: i32) -> Result<Option<Vec<i32>>> {
        let Ok(tasks) = self.dir.open_dir(format!("{pid}/task")) else { return Ok(None) };
        let mut children = Vec::new();
        let mut read_one = false;
        for task in tasks.dirs().unwrap_or_default() {
            let Some(text) = tasks.read_if_present(std::path::Path::new(&task).join("children"))? else { continue };
            read_one = true;
            children.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
        }
        Ok(read_one.then_some(children))
    }
}
