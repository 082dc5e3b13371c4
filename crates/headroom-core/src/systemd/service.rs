//! A transient service: a process of ours that lives outside of the unit of whoever asked for it.

use std::path::PathBuf;

use zbus::Variant;

use crate::error::Result;
use crate::systemd::{Bus, Manager};

/// What to start.
#[derive(Debug, Clone)]
pub struct Service {
    /// The unit's name, with `.service`.
    pub unit: String,
    /// For people.
    pub description: String,
    /// The program, an absolute path, and its words.
    pub argv: Vec<String>,
    /// `NAME=value`, beside what the manager gives every service.
    pub environment: Vec<String>,
}

/// systemd starts it again when it fails, this long after.
const RESTART_AFTER_US: u64 = 500_000;

/// Starts a service under the user's own manager, for root else under the system's. An error says that there is
/// no manager to ask, or that it refused: a unit of this name runs already, say.
pub fn start_service(service: &Service) -> Result<()> {
    let user = Manager::of(Bus::User);
    let is_root = rustix::process::getuid().is_root();
    let manager = if user.is_err() && is_root { Manager::of(Bus::System) } else { user };
    manager?.start_service(service)
}

impl Manager {
    /// Asks for the unit and waits until it is started.
    fn start_service(&self, service: &Service) -> Result<()> {
        let Service { unit, description, argv, environment } = service.clone();
        let program = PathBuf::from(argv.first().map_or("", String::as_str)).display().to_string();
        let properties: Vec<(&'static str, Variant<'static>)> = vec![
            ("Description", Variant::from(description)),
            ("Type", Variant::from("exec")),
            ("ExecStart", Variant::from(vec![(program, argv, false)])),
            ("Environment", Variant::from(environment)),
            ("WorkingDirectory", Variant::from("/")),
            ("UMask", Variant::from(0o077_u32)),
            ("Restart", Variant::from("on-failure")),
            ("RestartUSec", Variant::from(RESTART_AFTER_US)),
            // A job's kill is no reason to stop what looks after it.
            ("OOMPolicy", Variant::from("continue")),
            ("CollectMode", Variant::from("inactive-or-failed")),
        ];
        self.start_unit(&unit, properties)
    }
}
