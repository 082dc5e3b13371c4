//! Waiting in the line, and taking a slot when it is one's turn.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::OFlags;

use crate::error::Result;
use crate::journal::locked::{Attempt, Locked};
use crate::journal::{RuntimeDir, Stamp};
use crate::proc::{ProcFs, ProcessKey};
use crate::slots::directory;
use crate::slots::inscription::Inscription;
use crate::slots::silence::Seen;
use crate::slots::slot::Slot;
use crate::slots::ticket::{Before, Ticket};

/// Between counting the holders and becoming one nobody else may do the same.
const TAKING: &str = "line";

/// What came of asking for a slot.
#[derive(Debug)]
pub enum Turn {
    /// It is ours.
    Taken(Slot),
    /// Not yet.
    Ahead {
        /// How many wait before us, those left out that are passed over; 0 when it is our turn and every slot
        /// is held.
        waiting: usize,
    },
}

/// Somebody in the line; dropping this leaves it.
#[derive(Debug)]
pub struct Waiter {
    dir: Arc<RuntimeDir>,
    limit: NonZeroU32,
    process: ProcessKey,
    description: String,
    /// `None` once a slot was taken.
    ticket: Option<Ticket>,
    /// Those before us, as they were when we asked last.
    before: HashMap<u64, Seen<Stamp>>,
    /// The lock of who takes a slot, when somebody had it.
    taking: Option<Seen<Stamp>>,
}

impl Waiter {
    /// Joins the line at its end, to take a slot when fewer than `limit` are held. The description is any
    /// text that status should show, secrets masked; this process's number and start time are added.
    ///
    /// Fails where the directory cannot be used: it is a link, belongs to another user, can be reached by
    /// others, is read-only or has no room for one more file. There is no taking turns then.
    pub fn join(proc: &ProcFs, runtime: &RuntimeDir, limit: NonZeroU32, description: &str) -> Result<Self> {
        let (dir, process) = (Arc::new(directory(runtime)?), proc.own_key()?);
        let mut waiter = Self {
            dir,
            limit,
            process,
            description: description.to_owned(),
            ticket: None,
            before: HashMap::new(),
            taking: None,
        };
        waiter.ticket = Some(waiter.inscribed(Ticket::last(&waiter.dir)?));
        Ok(waiter)
    }

    /// Takes a slot if it is our turn. Never waits: ask again after a while, and go on asking: who does not ask
    /// for 5 s is passed over by those behind, and keeps its place for when it goes on.
    ///
    /// The turn is ours when nobody who came before still waits, whatever limit they have, and fewer than our
    /// own limit hold a slot. With the slot the place in the line is given up; asking again joins anew.
    pub fn try_take(&mut self) -> Result<Turn> {
        self.try_take_at(Instant::now())
    }

    /// As `try_take`, for a caller with a clock of its own.
    pub fn try_take_at(&mut self, now: Instant) -> Result<Turn> {
        let ticket = self.present_ticket()?;
        ticket.beat();
        let before = ticket.before()?;
        let waiting = self.waited_for(before, now);
        if waiting > 0 {
            return Ok(Turn::Ahead { waiting });
        }
        // Hardly anybody comes here at once, so whoever has this lock is about to let go of it.
        let Attempt::Had(taking) = Locked::attempt(&self.dir, TAKING, OFlags::RDWR | OFlags::CREATE)? else {
            self.break_open(now);
            return Ok(Turn::Ahead { waiting });
        };
        taking.beat();
        self.taking = None;
        let limit = self.limit.get();
        // Only now: what was held before the lock was ours says nothing.
        if Slot::held(&self.dir)? >= limit as usize {
            return Ok(Turn::Ahead { waiting });
        }
        let slot = Slot::first_free(&self.dir, limit, self.process)?;
        // Whoever deleted the lock's file let another one in here at the same time.
        let Some(slot) = slot.filter(|_| self.dir.is_current(TAKING, &taking.file)) else {
            return Ok(Turn::Ahead { waiting });
        };
        let _held_all_the_same = slot.describe(&self.description);
        self.ticket = None;
        Ok(Turn::Taken(slot))
    }

    /// Replaces what status shows of the waiter, and will show of the holder. Whether it could be written;
    /// the place in the line is held all the same.
    #[must_use]
    pub fn describe(&mut self, description: &str) -> bool {
        description.clone_into(&mut self.description);
        self.ticket.as_ref().is_some_and(|ticket| self.inscribe(ticket))
    }

    /// How many of those before us go on asking.
    fn waited_for(&mut self, before: Before, now: Instant) -> usize {
        let mut seen = std::mem::take(&mut self.before);
        let mut waiting = before.uncounted;
        for (number, stamp) in before.living {
            let mut known = seen.remove(&number).unwrap_or_else(|| Seen::first(stamp, now));
            waiting += usize::from(!known.is_stale(stamp, now));
            self.before.insert(number, known);
        }
        waiting
    }

    /// Removes the lock's file when the same one has been locked for too long: its holder was stopped while it
    /// took a slot. When it goes on it finds that out before it counts the slot as its own.
    fn break_open(&mut self, now: Instant) {
        let Some(stamp) = self.dir.stamp(TAKING) else { return };
        let known = self.taking.get_or_insert_with(|| Seen::first(stamp, now));
        if known.is_stale(stamp, now) {
            self.taking = None;
            let _tried_again = self.dir.unlink(TAKING);
        }
    }

    /// Our ticket, or a new one in its place if its file was deleted: nobody would wait for us.
    fn present_ticket(&mut self) -> Result<&Ticket> {
        let present = match self.ticket.take() {
            Some(ticket) if ticket.is_current() => ticket,
            Some(ticket) => self.inscribed(ticket.restored()?),
            None => self.inscribed(Ticket::last(&self.dir)?),
        };
        Ok(self.ticket.insert(present))
    }

    fn inscribed(&self, ticket: Ticket) -> Ticket {
        let _waits_all_the_same = self.inscribe(&ticket);
        ticket
    }

    fn inscribe(&self, ticket: &Ticket) -> bool {
        Inscription::write(ticket.file(), self.process, &self.description).is_ok()
    }
}
