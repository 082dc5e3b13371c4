//! The calls to a systemd manager that boxes need, blocking and bounded.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use zbus::{Connection, MatchRule, Message, MessageStream, OwnedObjectPath, Variant};

use crate::cgroup::Limit;
use crate::error::{Error, Result};
use crate::systemd::bus::{Bus, find_socket};
use crate::systemd::deadline::within;

const DESTINATION: &str = "org.freedesktop.systemd1";
const PATH: &str = "/org/freedesktop/systemd1";
const INTERFACE: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// One call and its job, together. A healthy manager takes 1 to 20 ms.
const PATIENCE: Duration = Duration::from_millis(2500);

/// Limits of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitLimits {
    /// `MemoryMax`, bytes.
    pub memory_bytes: u64,
    /// `MemorySwapMax`.
    pub swap: Limit,
}

/// A connection to a manager, kept for the life of the process.
#[derive(Debug, Clone)]
pub struct Manager {
    connection: Connection,
}

static CONNECTIONS: Mutex<Option<HashMap<Bus, Manager>>> = Mutex::new(None);

impl Manager {
    /// The connection of this process to a bus; made when there is none, or when it has broken.
    pub fn of(bus: Bus) -> Result<Self> {
        let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = connections.get_or_insert_default();
        if let Some(manager) = known.get(&bus).filter(|manager| !manager.connection.is_closed()) {
            return Ok(manager.clone());
        }
        let socket = find_socket(bus)?;
        let manager = within(PATIENCE, "connecting to the bus", move || Self::connect(&socket))?;
        known.insert(bus, manager.clone());
        Ok(manager)
    }

    /// Forgets a connection after a call on it has timed out.
    pub fn forget(bus: Bus) {
        if let Some(known) = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            known.remove(&bus);
        }
    }

    fn connect(socket: &PathBuf) -> Result<Self> {
        let stream = std::os::unix::net::UnixStream::connect(socket).map_err(|e| Error::io(socket, e))?;
        if !is_served_in_this_pid_namespace(&stream) {
            // A container with the host's bus: our process numbers mean other processes there.
            let source = std::io::Error::new(ErrorKind::Unsupported, "is served from outside of this pid namespace");
            return Err(Error::io(socket, source));
        }
        zbus::block_on(async {
            let connection = zbus::connection::Builder::unix_stream(stream).method_timeout(PATIENCE).build().await?;
            Ok::<_, zbus::Error>(Self { connection })
        })
        .map_err(|e| bus_error("connecting to the bus", &e))
    }

    /// The cgroup of the manager itself, as a path inside the hierarchy; empty for the root.
    pub fn control_group(&self) -> Result<String> {
        let manager = self.clone();
        within(PATIENCE, "asking systemd for its cgroup", move || {
            zbus::block_on(async {
                let body = &(INTERFACE, "ControlGroup");
                let reply =
                    manager.connection.call_method(Some(DESTINATION), PATH, Some(PROPERTIES), "Get", body).await?;
                let body = reply.body();
                let value: Variant<'_> = body.deserialize()?;
                Ok::<_, zbus::Error>(if let Variant::Str(path) = value { path.to_string() } else { String::new() })
            })
            .map_err(|e| bus_error("asking systemd for its cgroup", &e))
        })
    }

    /// Makes a delegated scope with these processes in it, and waits until systemd has done it. A good
    /// answer proves nothing yet: read the processes' cgroups.
    pub fn start_scope(&self, unit: &str, description: &str, limits: UnitLimits, pids: &[i32]) -> Result<()> {
        let (manager, unit, description) = (self.clone(), unit.to_owned(), description.to_owned());
        let pids: Vec<u32> = pids.iter().map(|pid| pid.cast_unsigned()).collect();
        within(PATIENCE, "StartTransientUnit", move || {
            let properties: Vec<(&str, Variant<'_>)> = vec![
                ("Description", Variant::from(description.as_str())),
                ("PIDs", Variant::from(pids)),
                // Delegation is what lets leaves be made below, and it makes systemd (every version tried)
                // leave the rest alone when one process is killed for memory; OOMPolicy= need not be sent.
                ("Delegate", Variant::from(true)),
                ("MemoryMax", Variant::from(limits.memory_bytes)),
                ("MemorySwapMax", Variant::from(limits.swap.as_bytes().unwrap_or(u64::MAX))),
                ("CollectMode", Variant::from("inactive-or-failed")),
                ("TimeoutStopUSec", Variant::from(5_000_000_u64)),
            ];
            manager.make_unit(&unit, properties)
        })
    }

    /// Makes a transient unit, and waits until systemd has done it.
    pub(super) fn start_unit(&self, unit: &str, properties: Vec<(&'static str, Variant<'static>)>) -> Result<()> {
        let (manager, unit) = (self.clone(), unit.to_owned());
        within(PATIENCE, "StartTransientUnit", move || manager.make_unit(&unit, properties))
    }

    fn make_unit(&self, unit: &str, properties: Vec<(&str, Variant<'_>)>) -> Result<()> {
        let none: Vec<(&str, Vec<(&str, Variant<'_>)>)> = Vec::new();
        self.call_and_wait("StartTransientUnit", &(unit, "fail", properties, none))
    }

    /// Moves processes into a cgroup below a delegated unit. `subcgroup` begins with a slash.
    pub fn attach(&self, unit: &str, subcgroup: &str, pids: &[i32]) -> Result<()> {
        let (manager, unit, subcgroup) = (self.clone(), unit.to_owned(), subcgroup.to_owned());
        let pids: Vec<u32> = pids.iter().map(|pid| pid.cast_unsigned()).collect();
        within(PATIENCE, "AttachProcessesToUnit", move || {
            let body = (unit.as_str(), subcgroup.as_str(), pids);
            zbus::block_on(manager.call("AttachProcessesToUnit", &body))
                .map(|_| ())
                .map_err(|e| bus_error("AttachProcessesToUnit", &e))
        })
    }

    /// Changes the limits of a running unit.
    pub fn set_limits(&self, unit: &str, limits: UnitLimits) -> Result<()> {
        let (manager, unit) = (self.clone(), unit.to_owned());
        within(PATIENCE, "SetUnitProperties", move || {
            let properties: Vec<(&str, Variant<'_>)> = vec![
                ("MemoryMax", Variant::from(limits.memory_bytes)),
                ("MemorySwapMax", Variant::from(limits.swap.as_bytes().unwrap_or(u64::MAX))),
            ];
            let body = (unit.as_str(), true, properties);
            zbus::block_on(manager.call("SetUnitProperties", &body))
                .map(|_| ())
                .map_err(|e| bus_error("SetUnitProperties", &e))
        })
    }

    async fn call<B>(&self, method: &str, body: &B) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.connection.call_method(Some(DESTINATION), PATH, Some(INTERFACE), method, body).await
    }

    fn call_and_wait<B>(&self, method: &'static str, body: &B) -> Result<()>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let result = zbus::block_on(async {
            let rule = MatchRule::builder()
                .msg_type(zbus::message::Type::Signal)
                .sender(DESTINATION)
                .interface(INTERFACE)
                .member("JobRemoved")
                .build()?;
            // Listening begins before the call, or the signal could come first.
            let mut jobs = MessageStream::for_match_rule(rule, &self.connection, None).await?;
            let reply = self.call(method, body).await?;
            let job: OwnedObjectPath = reply.body().deserialize()?;
            loop {
                let next = std::future::poll_fn(|context| Pin::new(&mut jobs).poll_next(context)).await;
                let signal = next.ok_or(zbus::Error::InvalidReply)??;
                let body = signal.body();
                let (_, removed, _, result): (u32, OwnedObjectPath, String, String) = body.deserialize()?;
                if removed == job {
                    return Ok::<_, zbus::Error>(result);
                }
            }
        })
        .map_err(|e| bus_error(method, &e))?;
        if result == "done" { Ok(()) } else { Err(Error::call(method, std::io::Error::other(format!("job {result}")))) }
    }
}

/// The manager's own words, as far as it has some.
fn bus_error(call: &'static str, error: &zbus::Error) -> Error {
    match error {
        zbus::Error::InputOutput(source) => Error::call(call, std::io::Error::new(source.kind(), source.to_string())),
        zbus::Error::MethodError(name, message, _) => {
            Error::call(call, std::io::Error::other(format!("{name}: {}", message.as_deref().unwrap_or("refused"))))
        }
        other => Error::call(call, std::io::Error::other(other.to_string())),
    }
}

/// The kernel shows a peer that cannot be seen from here with process number 0. See unix(7), `SO_PEERCRED`.
fn is_served_in_this_pid_namespace(stream: &std::os::unix::net::UnixStream) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the buffer is valid for `length` bytes, and the descriptor is open.
    let answer = unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, (&raw mut peer).cast(), &raw mut length) };
    answer == 0 && peer.pid != 0
}
