//! What a supervised job reports, as JSON lines through a socket. No callback crosses into a host's
//! thread, so nothing is left to be torn down when the host ends.

use std::io::Write;
use std::os::unix::net::UnixStream;

use crate::job::{Ended, Victim};

/// One line.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A command that somebody else started was found, and is in its box.
    Entered {
        /// Its process.
        pid: i32,
        /// It is in a unit of its own, made by who started it, and was left there: the box is not used.
        scoped: bool,
        /// Processes that were moved in.
        moved: u64,
    },
    /// A command that somebody else was to start did not get into its box.
    NotEntered {
        /// Its process, which runs on without a box; `None` when it was never seen.
        pid: Option<i32>,
        /// Why.
        reason: String,
    },
    /// headroom killed a process because the job reached its cap (`userspace` mode).
    CapKill(Victim),
    /// The kernel has killed so many processes in the box.
    OomKill {
        /// The sum since the job began.
        count: u64,
    },
    /// The watchdog lets the job stand still, or go on.
    Paused {
        /// It stands still.
        paused: bool,
    },
    /// The command ended. The last line.
    Ended(Ended),
}

/// The writing end. A reader that is gone or slow never stops the writer.
#[derive(Debug)]
pub(crate) struct EventSink {
    socket: UnixStream,
}

impl EventSink {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self { socket }
    }

    /// Drops the line when the reader has no room for it.
    pub(crate) fn send(&mut self, event: &impl serde::Serialize) {
        self.write(event, rustix::net::SendFlags::DONTWAIT);
    }

    /// The last line waits for its reader; nothing else does.
    pub(crate) fn send_last(&mut self, event: &impl serde::Serialize) {
        self.write(event, rustix::net::SendFlags::empty());
    }

    fn write(&mut self, event: &impl serde::Serialize, flags: rustix::net::SendFlags) {
        if let Ok(mut line) = serde_json::to_vec(event) {
            line.push(b'\n');
            // The host process may have ended its reading end; SIGPIPE must not end the host.
            let _reader_may_be_gone = send_all(&mut self.socket, &line, flags | rustix::net::SendFlags::NOSIGNAL);
        }
    }
}

fn send_all(socket: &mut UnixStream, mut bytes: &[u8], flags: rustix::net::SendFlags) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let sent = rustix::net::send(&*socket, bytes, flags)?;
        bytes = bytes.get(sent..).unwrap_or_default();
    }
    socket.flush()
}
