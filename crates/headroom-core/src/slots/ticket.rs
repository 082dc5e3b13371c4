//! A place in the line: a file with a number, locked by who waits. Whoever meets one that nobody holds any
//! more removes it.
//!
//! Only the holder of a file's lock removes its name, so a name is never taken from the living.

use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::journal::locked::{Attempt, Locked, busy};
use crate::journal::{RuntimeDir, Stamp};
use crate::slots::names::{self, Numbers};

/// Numbers from here on come from nobody who counted: they are not counted on from, lest they run out.
const FAR: u64 = 1 << 63;

/// How often a new ticket may be taken for a dead one, between its making and its locking.
const MAKING_TRIES: u32 = 100;

/// Most tickets that one call looks into; a line of so many is told by its names.
const MAX_LOOKS: usize = 256;

/// A place in the line, given up when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    dir: Arc<RuntimeDir>,
    number: u64,
    locked: Locked,
}

impl Ticket {
    /// The place behind everybody who waits now.
    ///
    /// No lock is needed: of two who come at once the second finds the name taken. So nobody who was stopped
    /// at a bad moment keeps others from joining.
    pub(super) fn last(dir: &Arc<RuntimeDir>) -> Result<Self> {
        for _ in 0..MAKING_TRIES {
            let first_free = first_free(dir)?;
            if let Some(made) = Self::from_number(dir, first_free)? {
                return Ok(made);
            }
        }
        Err(busy(dir, &names::ticket(0)))
    }

    /// The same place anew, for a ticket whose file was deleted; else the next one that can be had.
    pub(super) fn restored(&self) -> Result<Self> {
        match Self::from_number(&self.dir, self.number)? {
            Some(made) => Ok(made),
            None => Self::last(&self.dir),
        }
    }

    /// Whether the place is still there for others to see.
    pub(super) fn is_current(&self) -> bool {
        self.dir.is_current(&names::ticket(self.number), &self.locked.file)
    }

    /// The file, to write into.
    pub(super) fn file(&self) -> &std::fs::File {
        &self.locked.file
    }

    /// Tells those behind that we still ask.
    pub(super) fn beat(&self) {
        self.locked.beat();
    }

    /// Who waits before this one. Nobody only if every ticket before it was looked into; in a line longer than
    /// `MAX_LOOKS` some of the uncounted may be dead.
    pub(super) fn before(&self) -> Result<Before> {
        let numbers = Numbers::read(&self.dir)?;
        let before = numbers.tickets.partition_point(|number| *number < self.number);
        let (mut found, mut looks) = (Before::default(), 0);
        for (index, number) in numbers.tickets.iter().take(before).enumerate() {
            if looks == MAX_LOOKS {
                found.uncounted = before - index;
                break;
            }
            match look(&self.dir, *number)? {
                Look::Living(stamp) => found.living.push((*number, stamp)),
                Look::Removed => {}
                // Stays as it is, so it must not use up the looks of every call.
                Look::NoTicket => continue,
            }
            looks += 1;
        }
        Ok(found)
    }

    /// The first number from this one on that nobody has; `None` when the file was gone before it was ours.
    fn from_number(dir: &Arc<RuntimeDir>, first: u64) -> Result<Option<Self>> {
        let mut number = first;
        loop {
            let name = names::ticket(number);
            match Locked::attempt(dir, &name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
                Ok(Attempt::Had(locked)) => return Ok(Some(Self { dir: Arc::clone(dir), number, locked })),
                // Somebody looked at it before it was locked, and took it for a dead one.
                Ok(Attempt::Held | Attempt::Gone | Attempt::Foreign) => return Ok(None),
                Err(error) if error.errno() == Some(libc::EEXIST) => {}
                Err(error) => return Err(error),
            }
            number = number.checked_add(1).ok_or_else(|| used_up(dir))?;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_current() {
            let _removed_by_who_meets_it = self.dir.unlink(&names::ticket(self.number));
        }
    }
}

fn first_free(dir: &Arc<RuntimeDir>) -> Result<u64> {
    let numbers = Numbers::read(dir)?;
    for number in numbers.tickets.iter().rev() {
        if *number < FAR || matches!(look(dir, *number)?, Look::Living(_)) {
            return number.checked_add(1).ok_or_else(|| used_up(dir));
        }
    }
    Ok(0)
}

/// Those before a ticket.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Their numbers, and the stamps that they left when they asked last.
    pub(super) living: Vec<(u64, Stamp)>,
    /// How many more there are.
    pub(super) uncounted: usize,
}

/// What a ticket turned out to be.
enum Look {
    /// Somebody has it; when they asked last.
    Living(Stamp),
    /// Nobody did any more; its file is gone.
    Removed,
    /// No file that could be a ticket.
    NoTicket,
}

fn look(dir: &RuntimeDir, number: u64) -> Result<Look> {
    let name = names::ticket(number);
    Ok(match Locked::attempt(dir, &name, OFlags::RDWR)? {
        Attempt::Had(_until_it_is_removed) => {
            let _met_again = dir.unlink(&name);
            Look::Removed
        }
        Attempt::Held => dir.stamp(&name).map_or(Look::Removed, Look::Living),
        Attempt::Gone => Look::Removed,
        Attempt::Foreign => Look::NoTicket,
    })
}

fn used_up(dir: &RuntimeDir) -> Error {
    Error::Unsafe { path: dir.path().join(names::ticket(u64::MAX)), why: "is in use, no higher ticket can be made" }
}
