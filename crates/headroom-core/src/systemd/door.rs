//! The way into a unit's cgroup for a process that plain files cannot move: its manager moves it.

use crate::error::{Error, Result};
use crate::systemd::Bus;
use crate::systemd::manager::Manager;

/// A delegated unit.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(super) bus: Bus,
    pub(super) unit: String,
}

impl Door {
    /// Moves processes into the cgroup `seat`, a path below the unit's own. One call.
    pub(crate) fn attach(&self, seat: &str, pids: &[i32]) -> Result<()> {
        on_manager(self.bus, |manager| manager.attach(&self.unit, &format!("/{seat}"), pids))
    }
}

/// Makes a call; a connection on which one has timed out is not used again.
pub(super) fn on_manager<T>(bus: Bus, action: impl FnOnce(&Manager) -> Result<T>) -> Result<T> {
    let result = action(&Manager::of(bus)?);
    if let Err(Error::Call { source, .. }) = &result
        && source.kind() == std::io::ErrorKind::TimedOut
    {
        Manager::forget(bus);
    }
    result
}
