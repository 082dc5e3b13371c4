//! Linux memory boxes for heavy jobs.
//!
//! Pure Rust, without JavaScript and without policy: this crate says what is and does what it is told.
//! Readers of kernel files work over any root, so tests use folders of real files.

pub mod boxing;
pub mod cgroup;
pub mod dir;
pub mod job;
pub mod journal;
pub mod memory;
pub mod proc;
pub mod process;
pub mod slots;
pub mod systemd;
pub mod tracker;
pub mod watchdog;

mod error;

pub use error::{Error, Result};
