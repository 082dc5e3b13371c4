//! Which systemd unit a process belongs to, told from its cgroup's path alone, as `sd_pid_get_unit(3)` and
//! `sd_pid_get_user_unit(3)` do. No bus is asked.

use crate::error::Result;
use crate::proc::ProcFs;

/// The manager that a unit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// The system's (process 1).
    System,
    /// That of the user with this number (`user@UID.service`).
    User(u32),
}

/// Where systemd has put a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemdUnit {
    /// Whose unit it is.
    pub manager: Manager,
    /// Full name, such as `hermes-gateway.service`.
    pub unit: String,
    /// The slices of this manager that the unit is in, outermost first.
    pub slices: Vec<String>,
    /// The login session (`session-N.scope`) that it is in.
    pub session: Option<String>,
}

impl SystemdUnit {
    /// Reads a path such as `/user.slice/user-1000.slice/user@1000.service/app.slice/NAME.service/below`.
    /// Cgroups that no manager made (a container's, above) are passed over; `None` where no unit is in it.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let names: Vec<&str> = path.split('/').map(|name| name.strip_prefix('_').unwrap_or(name)).collect();
        let user = names.iter().enumerate().rev().find_map(|(index, name)| Some((index, user_of_manager(name)?)));
        // With nothing below it, `user@UID.service` is itself a unit of the system's manager.
        let (manager, below) = match user {
            Some((index, uid)) if names.iter().skip(index + 1).any(|name| is_unit(name)) => {
                (Manager::User(uid), names.get(index + 1..)?)
            }
            _ => (Manager::System, names.as_slice()),
        };
        let at = below.iter().position(|name| is_unit(name))?;
        let unit = (*below.get(at)?).to_owned();
        let slices = below.get(..at)?.iter().filter(|name| is_slice(name)).map(|name| (*name).to_owned()).collect();
        let session = unit.strip_prefix("session-").and_then(|rest| rest.strip_suffix(".scope")).map(str::to_owned);
        Some(Self { manager, unit, slices, session })
    }
}

impl ProcFs {
    /// The unit of a process; `None` when it is gone, or in none. Where v1 and v2 are mounted beside each other
    /// systemd keeps its names in both; v1's own line (`name=systemd`) is there even if v2 is not.
    pub fn systemd_unit(&self, pid: i32) -> Result<Option<SystemdUnit>> {
        let Some(text) = self.read(pid, "cgroup")? else { return Ok(None) };
        let path_after = |start: &str| {
            text.lines().find_map(|line| line.split_once(':')?.1.strip_prefix(start)).and_then(SystemdUnit::of_path)
        };
        Ok(path_after(":").or_else(|| path_after("name=systemd:")))
    }
}

/// `user@1000.service`.
fn user_of_manager(name: &str) -> Option<u32> {
    name.strip_prefix("user@")?.strip_suffix(".service")?.parse().ok()
}

fn is_slice(name: &str) -> bool {
    has_stem(name, ".slice")
}

/// Unit types that hold processes; see systemd.unit(5).
fn is_unit(name: &str) -> bool {
    [".service", ".scope", ".socket", ".mount", ".swap"].iter().any(|kind| has_stem(name, kind))
}

fn has_stem(name: &str, kind: &str) -> bool {
    name.strip_suffix(kind).is_some_and(|stem| !stem.is_empty())
}
