//! Where a process runs: its systemd unit, and the machine around it.

use headroom_core::proc::{Manager, ProcFs};
use headroom_core::process::oom_score_adj;
use headroom_core::surroundings::Surroundings;
use napi_derive::napi;

use crate::error::thrown;

/// The systemd unit of a process, told from its cgroup alone.
#[napi(object, object_from_js = false)]
pub struct UnitView {
    /// `system` or `user`.
    pub manager: String,
    /// The number of the user whose manager it is; `null` for the system's.
    pub manager_uid: Option<u32>,
    /// Full name, such as `hermes-gateway.service`.
    pub unit: String,
    /// The slices of this manager that it is in, outermost first.
    pub slices: Vec<String>,
    /// The login session that it is in.
    pub session: Option<String>,
}

/// A process as the kernel and systemd know it.
#[napi(object, object_from_js = false)]
pub struct Standing {
    /// Real user id.
    pub uid: u32,
    /// −1000 to 1000: how much the kernel prefers to kill it.
    pub oom_score_adj: i32,
    /// Its unit; `null` where it is in none.
    pub unit: Option<UnitView>,
}

/// Tells whose a process is, its unit, and its `oom_score_adj`; `null` when it is gone.
#[napi(catch_unwind)]
pub fn unit_of(pid: i32) -> napi::Result<Option<Standing>> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    let unit = proc.systemd_unit(pid).map_err(|e| thrown(&e))?;
    let status = proc.status(pid).map_err(|e| thrown(&e))?;
    let score = oom_score_adj(&proc, pid).map_err(|e| thrown(&e))?;
    let (Some(status), Some(oom_score_adj)) = (status, score) else { return Ok(None) };
    let unit = unit.map(|unit| {
        let (manager, manager_uid) = match unit.manager {
            Manager::System => ("system", None),
            Manager::User(uid) => ("user", Some(uid)),
        };
        let manager = manager.to_owned();
        UnitView { manager, manager_uid, unit: unit.unit, slices: unit.slices, session: unit.session }
    });
    Ok(Some(Standing { uid: status.uid, oom_score_adj, unit }))
}

/// The machine around this process.
#[napi(object, object_from_js = false)]
pub struct SurroundingsView {
    /// The kind of container: `docker`, `podman`, `lxc`, …; `null` where this is none.
    pub container: Option<String>,
    /// The board's name, as its firmware tells it.
    pub board: Option<String>,
    /// systemd is the first process.
    pub is_systemd: bool,
    /// A swap device is compressed memory.
    pub has_zram: bool,
}

/// Looks at the machine: container, board, systemd, zram.
#[napi(catch_unwind)]
pub fn surroundings() -> napi::Result<SurroundingsView> {
    let found = Surroundings::read("/").map_err(|e| thrown(&e))?;
    let Surroundings { container, board, is_systemd, has_zram } = found;
    Ok(SurroundingsView { container, board, is_systemd, has_zram })
}
