//! Who holds a slot and who waits, for status.

use std::fs::File;

use crate::error::Result;
use crate::journal::RuntimeDir;
use crate::journal::locked::held;
use crate::proc::{ProcFs, ProcessKey};
use crate::slots::inscription::Inscription;
use crate::slots::names::{self, Numbers};
use crate::slots::{DIRECTORY, directory};

/// Somebody who holds a slot or waits for one. That they do is certain, the lock says so; who they are is
/// known as far as it could be written and read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// The slot's number, or that of the place in the line.
    pub number: u64,
    /// Who it is.
    pub process: Option<ProcessKey>,
    /// Whether exactly this process runs. Where not, the lock is kept by a child that it forked, or it runs
    /// in another pid namespace.
    pub is_alive: bool,
    /// Whether it is stopped (SIGSTOP, a debugger): it does nothing until it is told to go on.
    pub is_stopped: bool,
    /// What it says of itself, as it was given.
    pub description: Option<String>,
}

/// Everybody at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Holders, by the number of their slot.
    pub holders: Vec<Occupant>,
    /// Waiters, first come first.
    pub waiting: Vec<Occupant>,
}

/// Lists who holds a slot and who waits. Changes nothing, and keeps nobody from their turn for longer than a
/// look.
pub fn list(proc: &ProcFs, runtime: &RuntimeDir) -> Result<Listing> {
    // A directory that nobody needed yet is not made for looking.
    if !runtime.names()?.iter().any(|name| name == DIRECTORY) {
        return Ok(Listing::default());
    }
    let dir = directory(runtime)?;
    let numbers = Numbers::read(&dir)?;
    let slots = numbers.slots.iter().map(|number| (u64::from(*number), names::slot(*number)));
    let tickets = numbers.tickets.iter().map(|number| (*number, names::ticket(*number)));
    let occupant = |(number, name): (u64, String)| Some(occupant(proc, number, &held(&dir, &name)?));
    Ok(Listing { holders: slots.filter_map(occupant).collect(), waiting: tickets.filter_map(occupant).collect() })
}

fn occupant(proc: &ProcFs, number: u64, file: &File) -> Occupant {
    let (process, description) = match Inscription::read(file) {
        Some(inscription) => (Some(inscription.process), inscription.description),
        None => (None, None),
    };
    let stat = process.and_then(|key| proc.stat(key.pid).ok().flatten().filter(|stat| stat.key() == key));
    Occupant {
        number,
        process,
        is_alive: stat.as_ref().is_some_and(|stat| !stat.is_zombie()),
        is_stopped: stat.is_some_and(|stat| matches!(stat.state, 'T' | 't')),
        description,
    }
}
