//! Taking turns.

use std::num::NonZeroU32;
use std::path::Path;

use headroom_core::journal::RuntimeDir;
use headroom_core::proc::ProcFs;
use headroom_core::slots::{MOST_SLOTS, Occupant, Slot, Turn, Waiter, list};
use napi_derive::napi;

use crate::error::{bad_argument, number, of_directory};

/// Whether a slot is ours, and who comes first.
#[napi(object, object_from_js = false)]
pub struct SlotTurn {
    /// It is ours.
    pub taken: bool,
    /// How many wait before us; 0 when we are the first and every slot is held.
    pub ahead: u32,
}

enum Place {
    Waiting(Waiter),
    Holding(Slot),
    Left,
}

/// A place in the line for a slot, then the slot. Given up by `leave`, at the end of this process however it
/// comes, and when this object is collected: keep it.
#[napi]
pub struct SlotQueue {
    place: Place,
}

#[napi]
impl SlotQueue {
    /// Joins the line in a runtime directory (from `runtimeDirectory`), to take a slot when fewer than `limit`
    /// (1 to 64) are held. `description` is what `listSlots` gives of it, secrets masked, below 64 KiB as a JSON string.
    /// Throws where the directory does not allow for taking turns.
    #[napi(factory, catch_unwind)]
    pub fn join(runtime_dir: String, limit: u32, description: String) -> napi::Result<Self> {
        let allowed = NonZeroU32::new(limit).filter(|limit| limit.get() <= MOST_SLOTS);
        let limit = allowed.ok_or_else(|| bad_argument(format!("{limit} slots, 1 to {MOST_SLOTS} can be had")))?;
        let joined = ProcFs::system().and_then(|proc| {
            let runtime = RuntimeDir::at(Path::new(&runtime_dir))?;
            Waiter::join(&proc, &runtime, limit, &description)
        });
        joined.map(|waiter| Self { place: Place::Waiting(waiter) }).map_err(|e| of_directory(&e))
    }

    /// Takes a slot if it is our turn. Never waits: ask again after a while; who does not ask for 5 s is passed
    /// over. A slot once taken stays taken.
    #[napi(catch_unwind)]
    pub fn try_take(&mut self) -> napi::Result<SlotTurn> {
        let turn = match &mut self.place {
            Place::Waiting(waiter) => waiter.try_take().map_err(|e| of_directory(&e))?,
            Place::Holding(_) => return Ok(SlotTurn { taken: true, ahead: 0 }),
            Place::Left => return Err(bad_argument("the line was left")),
        };
        Ok(match turn {
            Turn::Taken(slot) => {
                self.place = Place::Holding(slot);
                SlotTurn { taken: true, ahead: 0 }
            }
            Turn::Ahead { waiting } => SlotTurn { taken: false, ahead: u32::try_from(waiting).unwrap_or(u32::MAX) },
        })
    }

    /// Replaces the description. `false` when it could not be written (a full disk, or the line was left);
    /// the place is held all the same.
    #[napi(catch_unwind)]
    pub fn describe(&mut self, description: String) -> bool {
        match &mut self.place {
            Place::Waiting(waiter) => waiter.describe(&description),
            Place::Holding(slot) => slot.describe(&description),
            Place::Left => false,
        }
    }

    /// Gives the slot back, or leaves the line. Leaving twice is fine.
    #[napi(catch_unwind)]
    pub fn leave(&mut self) {
        self.place = Place::Left;
    }
}

/// Somebody who holds a slot or waits for one: the kernel says so.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct SlotUser {
    /// The slot's number, or that of the place in the line.
    pub number: f64,
    /// Its process; `null` when it could not be written down.
    pub pid: Option<i32>,
    /// Whether that very process runs, not another one with its number.
    pub alive: bool,
    /// Whether it is stopped, and does nothing until it is told to go on.
    pub stopped: bool,
    /// The description as it was given; `null` when it could not be written down.
    pub description: Option<String>,
}

/// Everybody who takes turns at one moment.
#[napi(object, object_from_js = false)]
pub struct SlotList {
    /// Who holds a slot, by its number.
    pub holders: Vec<SlotUser>,
    /// Who waits, first come first.
    pub waiting: Vec<SlotUser>,
}

impl From<Occupant> for SlotUser {
    fn from(occupant: Occupant) -> Self {
        Self {
            number: number(occupant.number),
            pid: occupant.process.map(|process| process.pid),
            alive: occupant.is_alive,
            stopped: occupant.is_stopped,
            description: occupant.description,
        }
    }
}

/// Lists who holds a slot and who waits for one, over all processes of this user. Changes nothing.
#[napi(catch_unwind)]
pub fn list_slots(runtime_dir: String) -> napi::Result<SlotList> {
    let listed = ProcFs::system().and_then(|proc| list(&proc, &RuntimeDir::at(Path::new(&runtime_dir))?));
    let listing = listed.map_err(|e| of_directory(&e))?;
    Ok(SlotList {
        holders: listing.holders.into_iter().map(SlotUser::from).collect(),
        waiting: listing.waiting.into_iter().map(SlotUser::from).collect(),
    })
}
