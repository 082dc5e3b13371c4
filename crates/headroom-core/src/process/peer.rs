//! Who is at the other end of a Unix socket.

use std::os::fd::AsFd;

use crate::error::{Error, Result};

/// The user id of the process that connected, or listened, at the other end. See unix(7), `SO_PEERCRED`.
pub fn peer_uid(socket: impl AsFd) -> Result<u32> {
    let peer = rustix::net::sockopt::socket_peercred(socket).map_err(|e| Error::call("SO_PEERCRED", e))?;
    Ok(peer.uid.as_raw())
}
