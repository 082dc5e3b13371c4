//! What the daemon needs: to be the only one, to know who calls, to be started outside of the agent's unit.

use std::os::fd::BorrowedFd;
use std::path::Path;

use headroom_core::journal::{Claim, RuntimeDir};
use headroom_core::proc::ProcFs;
use headroom_core::process::{oom_score_adj as core_score_of, peer_uid as core_peer_uid};
use headroom_core::systemd::{Service, start_service as core_start_service};
use napi_derive::napi;

use crate::error::{bad_argument, of_directory, thrown};

/// A role that one process of a user has at a time. Given up by `leave`, at the end of this process however it
/// comes, and when this object is collected: keep it.
#[napi]
pub struct RoleClaim {
    claim: Option<Claim>,
}

#[napi]
impl RoleClaim {
    /// Takes the role whose lock file has this name; `null` when somebody else has it.
    #[napi(catch_unwind)]
    pub fn attempt(runtime_dir: String, name: String) -> napi::Result<Option<Self>> {
        let claimed = ProcFs::system()
            .and_then(|proc| Claim::attempt(&proc, &RuntimeDir::at(Path::new(&runtime_dir))?, &name))
            .map_err(|e| of_directory(&e))?;
        Ok(claimed.map(|claim| Self { claim: Some(claim) }))
    }

    /// Gives the role up. Twice is fine.
    #[napi(catch_unwind)]
    pub fn leave(&mut self) {
        self.claim = None;
    }
}

/// The user id at the other end of a connected Unix socket.
#[napi(catch_unwind)]
pub fn peer_uid(fd: i32) -> napi::Result<u32> {
    if fd < 0 {
        return Err(bad_argument(format!("{fd} is no descriptor")));
    }
    // SAFETY: borrowed for one system call on an open socket of the caller; a number that is none answers EBADF.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    core_peer_uid(socket).map_err(|e| thrown(&e))
}

/// What to start as a transient service.
#[napi(object, object_to_js = false)]
pub struct TransientService {
    /// The unit's name, with `.service`.
    pub unit: String,
    /// For people.
    pub description: String,
    /// The program, an absolute path, and its words.
    pub argv: Vec<String>,
    /// `NAME=value`, beside what the manager gives every service.
    pub environment: Vec<String>,
}

/// Starts a service under the user's systemd, for root else under the system's. Answers why not, where it could
/// not be started; `null` is success.
#[napi(catch_unwind)]
#[must_use]
pub fn start_service(service: TransientService) -> Option<String> {
    let TransientService { unit, description, argv, environment } = service;
    core_start_service(&Service { unit, description, argv, environment }).err().map(|error| error.to_string())
}

/// The `oom_score_adj` of a process; `null` when it is gone.
#[napi(catch_unwind)]
pub fn oom_score_adj_of(pid: i32) -> napi::Result<Option<i32>> {
    ProcFs::system().and_then(|proc| core_score_of(&proc, pid)).map_err(|e| thrown(&e))
}
