//! Taking turns: how many heavy jobs of this user run at once, over all processes, first come first served.
//!
//! A slot is a file whose lock (flock(2)) its holder keeps, a place in the line is a numbered file whose lock
//! its waiter keeps. The kernel lets go of both with their process, however that ends, so a lock that can be
//! had means that nobody is there; what stands in the file is only for people to read. Descriptors are
//! close-on-exec, so a job never keeps the slot of who started it.
//!
//! Whoever stands in the line without asking for its turn is passed over, and keeps its place.
//!
//! Nothing here waits: whoever wants a slot asks again. The files are `slots/slot-N`, `slots/ticket-N` and
//! `slots/line` in the runtime directory. Who deletes the file of a slot in use gives that slot away once
//! more; nothing can tell the holder.

mod inscription;
mod listing;
mod names;
mod silence;
mod slot;
mod ticket;
mod waiter;

use crate::error::Result;
use crate::journal::RuntimeDir;

pub use listing::{Listing, Occupant, list};
pub use names::MOST_SLOTS;
pub use slot::Slot;
pub use waiter::{Turn, Waiter};

const DIRECTORY: &str = "slots";

fn directory(runtime: &RuntimeDir) -> Result<RuntimeDir> {
    runtime.below(DIRECTORY)
}
