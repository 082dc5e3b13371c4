//! Waiting in the line, and taking a slot when it is one's turn.

use std::num::NonZeroU32;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::Result;
use crate::journal::RuntimeDir;
use crate::proc::{ProcFs, ProcessKey};
use crate::slots::directory;
use crate::slots::inscription::Inscription;
use crate::slots::locked::{Attempt, Locked};
use crate::slots::slot::Slot;
use crate::slots::ticket::Ticket;

/// Between counting the holders and becoming one nobody else may do the same.
const TAKING: &str = "line";

/// What came of asking for a slot.
#[derive(Debug)]
pub enum Turn {
    /// It is ours.
    Taken(Slot),
    /// Not yet.
    Ahead {
        /// How many wait before us; 0 when we are the first and every slot is held.
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
}

impl Waiter {
    /// Joins the line at its end, to take a slot when fewer than `limit` are held. The description is any
    /// text that status should show, secrets masked; this process's number and start time are added.
    ///
    /// Fails where the directory cannot be used: it is a link, belongs to another user, can be reached by
    /// others, is read-only or has no room for one more file. There is no taking turns then.
    pub fn join(proc: &ProcFs, runtime: &RuntimeDir, limit: NonZeroU32, description: &str) -> Result<Self> {
        let (dir, process) = (Arc::new(directory(runtime)?), proc.own_key()?);
        let mut waiter = Self { dir, limit, process, description: description.to_owned(), ticket: None };
        waiter.ticket = Some(waiter.inscribed(Ticket::last(&waiter.dir)?));
        Ok(waiter)
    }

    /// Takes a slot if it is our turn. Never waits: ask again after a while.
    ///
    /// The turn is ours when nobody who came before still waits, whatever limit they have, and fewer than our
    /// own limit hold a slot. With the slot the place in the line is given up; asking again joins anew.
    pub fn try_take(&mut self) -> Result<Turn> {
        let waiting = self.present_ticket()?.ahead()?;
        if waiting > 0 {
            return Ok(Turn::Ahead { waiting });
        }
        // Only the first in the line comes here, so whoever has this lock is about to let go of it.
        let Attempt::Had(taking) = Locked::attempt(&self.dir, TAKING, OFlags::RDWR | OFlags::CREATE)? else {
            return Ok(Turn::Ahead { waiting });
        };
        let limit = self.limit.get();
        // Only now: what was held before the lock was ours says nothing.
        if Slot::held(&self.dir)? >= limit as usize {
            return Ok(Turn::Ahead { waiting });
        }
        let slot = Slot::first_free(&self.dir, limit, self.process)?;
        // Somebody who deleted the lock's file let another one in here at the same time.
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
