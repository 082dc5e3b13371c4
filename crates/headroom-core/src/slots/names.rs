//! Which files there are. Only names that are written exactly as ours are taken for ours.

use crate::error::Result;
use crate::journal::RuntimeDir;

/// Slots that there can be: a higher limit is as good as this one.
pub const MOST_SLOTS: u32 = 64;

/// The name of a place in the line; padded, so that `ls` shows the line in its order.
pub(super) fn ticket(number: u64) -> String {
    format!("ticket-{number:020}")
}

/// The name of a slot.
pub(super) fn slot(number: u32) -> String {
    format!("slot-{number}")
}

/// Numbers of the files at one moment, ascending; whether somebody holds them is another question.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) tickets: Vec<u64>,
    pub(super) slots: Vec<u32>,
}

impl Numbers {
    pub(super) fn read(dir: &RuntimeDir) -> Result<Self> {
        let mut numbers = Self::default();
        for name in dir.names()? {
            let ticket_number = name.strip_prefix("ticket-").and_then(|digits| digits.parse().ok());
            let slot_number = name.strip_prefix("slot-").and_then(|digits| digits.parse().ok());
            numbers.tickets.extend(ticket_number.filter(|number| ticket(*number) == name));
            numbers.slots.extend(slot_number.filter(|number| slot(*number) == name));
        }
        numbers.tickets.sort_unstable();
        numbers.slots.sort_unstable();
        Ok(numbers)
    }
}
