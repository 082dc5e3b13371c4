//! What the tracked jobs of this process must know of each other: who searches, which processes are taken, how a
//! job is told that its call has returned.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::EventfdFlags;

use crate::boxing::BoxId;
use crate::error::{Error, Result};
use crate::proc::ProcessKey;
use crate::tracker::call::longest_match;

/// One that looks for its command.
#[derive(Debug)]
struct Searcher {
    id: BoxId,
    agent: i32,
    /// Squashed.
    texts: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Registry {
    /// In the order of their announcement.
    searchers: Vec<Searcher>,
    taken: HashSet<ProcessKey>,
    returned: HashMap<BoxId, Arc<OwnedFd>>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with<T>(action: impl FnOnce(&mut Registry) -> T) -> T {
    let mut guard: MutexGuard<'_, Option<Registry>> = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    action(guard.get_or_insert_default())
}

/// Tells a tracked job of this process that its call has returned. `false` when it is not known, or over.
#[must_use]
pub fn finish(id: BoxId) -> bool {
    let returned = with(|registry| registry.returned.get(&id).map(Arc::clone));
    returned.is_some_and(|eventfd| rustix::io::write(&eventfd, &1_u64.to_ne_bytes()).is_ok())
}

/// A tracked job's entry, gone with this.
#[derive(Debug)]
pub(super) struct Entry {
    id: BoxId,
    agent: i32,
    returned: Arc<OwnedFd>,
    mine: Vec<ProcessKey>,
}

impl Entry {
    pub(super) fn new(id: BoxId, agent: i32, texts: Vec<Vec<u8>>) -> Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let returned = Arc::new(rustix::event::eventfd(0, flags).map_err(|e| Error::call("eventfd", e))?);
        with(|registry| {
            registry.searchers.push(Searcher { id, agent, texts });
            registry.returned.insert(id, Arc::clone(&returned));
        });
        Ok(Self { id, agent, returned, mine: Vec::new() })
    }

    /// Readable once the call has returned.
    pub(super) fn returned(&self) -> &OwnedFd {
        &self.returned
    }

    /// Takes a process whose command line (squashed) fits. Where it fits others of this agent as well it belongs to
    /// the one with the longest text, among equal ones to the first.
    pub(super) fn take_fitting(&mut self, key: ProcessKey, line: &[u8]) -> bool {
        let (id, agent) = (self.id, self.agent);
        self.take(key, |registry| {
            let fits = |searcher: &Searcher| Some((longest_match(line, &searcher.texts)?, searcher.id));
            let of_agent = registry.searchers.iter().filter(|searcher| searcher.agent == agent);
            // Of equal ones `max_by_key` answers the last.
            of_agent.rev().filter_map(fits).max_by_key(|(length, _)| *length).is_some_and(|(_, best)| best == id)
        })
    }

    /// Whether a line fits a call of this agent that is being looked for.
    pub(super) fn is_fitting_another(&self, line: &[u8]) -> bool {
        with(|registry| {
            let mut of_agent = registry.searchers.iter().filter(|searcher| searcher.agent == self.agent);
            of_agent.any(|searcher| searcher.id != self.id && longest_match(line, &searcher.texts).is_some())
        })
    }

    /// Takes a process of which nothing is known, if nobody else could mean it.
    pub(super) fn take_guessed(&mut self, key: ProcessKey) -> bool {
        let (id, agent) = (self.id, self.agent);
        self.take(key, |registry| {
            registry.searchers.iter().filter(|searcher| searcher.agent == agent).all(|searcher| searcher.id == id)
        })
    }

    fn take(&mut self, key: ProcessKey, may: impl FnOnce(&Registry) -> bool) -> bool {
        let taken = with(|registry| may(registry) && registry.taken.insert(key));
        if taken {
            self.mine.push(key);
        }
        taken
    }

    /// Takes a process of the job's tree. `false` when it is another job's.
    pub(super) fn take_relative(&mut self, key: ProcessKey) -> bool {
        self.mine.contains(&key) || self.take(key, |_| true)
    }

    /// Whether no other command is being looked for, whoever starts it.
    pub(super) fn is_only_searcher(&self) -> bool {
        with(|registry| registry.searchers.iter().all(|searcher| searcher.id == self.id))
    }

    /// It looks for its command no more.
    pub(super) fn end_search(&self) {
        with(|registry| registry.searchers.retain(|searcher| searcher.id != self.id));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        with(|registry| {
            registry.searchers.retain(|searcher| searcher.id != self.id);
            registry.returned.remove(&self.id);
            for key in &self.mine {
                registry.taken.remove(key);
            }
        });
    }
}
