//! How much memory there really is: the machine, every limit above this process, and pressure.

mod available;
mod meminfo;
mod pressure;

pub use available::{Available, Ceiling, Ceilings};
pub use meminfo::MemInfo;
pub use pressure::{Pressure, Stall};
