//! A slot: a file whose lock the holder keeps.

use rustix::fs::OFlags;

use crate::error::Result;
use crate::journal::RuntimeDir;
use crate::journal::locked::{Attempt, Locked};
use crate::proc::ProcessKey;
use crate::slots::inscription::Inscription;
use crate::slots::names;

/// How often a slot's file may be deleted under our hands before the caller has to ask again.
const TRIES: u32 = 3;

/// A slot that is ours, given back when this is dropped.
#[derive(Debug)]
pub struct Slot {
    number: u32,
    process: ProcessKey,
    locked: Locked,
}

impl Slot {
    /// Its number, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Replaces what status shows of the holder. Whether it could be written; the slot is held all the same.
    #[must_use]
    pub fn describe(&self, description: &str) -> bool {
        Inscription::write(&self.locked.file, self.process, description).is_ok()
    }

    /// How many slots are held, over all slot files, so that somebody with a higher limit counts as well.
    ///
    /// Each name is tried instead of reading the directory: what is read while others make and remove tickets
    /// may leave a name out.
    pub(super) fn held(dir: &RuntimeDir) -> Result<usize> {
        let mut held = 0;
        for number in 0..names::MOST_SLOTS {
            if let Attempt::Held = Locked::attempt(dir, &names::slot(number), OFlags::RDWR)? {
                held += 1;
            }
        }
        Ok(held)
    }

    /// The first of `limit` slots that nobody holds. A name that is no lockable file does not count as one of
    /// them, so that it costs no slot.
    pub(super) fn first_free(dir: &RuntimeDir, limit: u32, process: ProcessKey) -> Result<Option<Self>> {
        let mut slots = 0;
        for number in 0..names::MOST_SLOTS {
            if slots == limit {
                break;
            }
            match attempt(dir, number)? {
                Attempt::Had(locked) => return Ok(Some(Self { number, process, locked })),
                Attempt::Held | Attempt::Gone => slots += 1,
                Attempt::Foreign => {}
            }
        }
        Ok(None)
    }
}

fn attempt(dir: &RuntimeDir, number: u32) -> Result<Attempt> {
    let name = names::slot(number);
    for _ in 1..TRIES {
        match Locked::attempt(dir, &name, OFlags::RDWR | OFlags::CREATE)? {
            Attempt::Gone => {}
            found => return Ok(found),
        }
    }
    Locked::attempt(dir, &name, OFlags::RDWR | OFlags::CREATE)
}
