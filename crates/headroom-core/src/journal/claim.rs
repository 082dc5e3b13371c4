//! A role that one process of a user has at a time.

use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::journal::RuntimeDir;
use crate::journal::locked::{Attempt, Locked};
use crate::proc::ProcFs;

/// A role that is ours until this is dropped, or this process ends, however it ends.
#[derive(Debug)]
pub struct Claim {
    _locked: Locked,
}

impl Claim {
    /// Takes the role whose lock file has this name; `None` when somebody else has it.
    pub fn attempt(proc: &ProcFs, runtime: &RuntimeDir, name: &str) -> Result<Option<Self>> {
        match Locked::attempt(runtime, name, OFlags::RDWR | OFlags::CREATE)? {
            Attempt::Had(locked) => {
                locked.sign(proc);
                Ok(Some(Self { _locked: locked }))
            }
            Attempt::Held | Attempt::Gone => Ok(None),
            Attempt::Foreign => {
                Err(Error::Unsafe { path: runtime.path().join(name), why: "is not a regular file: remove it" })
            }
        }
    }
}
