//! Which modes work here.

use headroom_core::boxing::{Mode, Placement, probe};
use headroom_core::proc::ProcFs;
use napi_derive::napi;

use crate::error::{bad_argument, thrown};

/// What was found out about one mode.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct ModeVerdict {
    /// `systemd-user`, `systemd-system`, `cgroup2`, `cgroup1`, `userspace` or `off`.
    pub mode: String,
    /// Whether a box was really made in this mode.
    pub available: bool,
    /// The cgroup below which boxes are made.
    pub base: Option<String>,
    /// Why not, as a word: `no-bus`, `unsafe-bus`, `no-answer`, `not-root`, `inside-job`, `not-mounted`,
    /// `no-memory-controller`, `read-only`, `not-permitted`, `occupied` or `failed`.
    pub obstacle: Option<String>,
    /// Why not, for people.
    pub detail: Option<String>,
}

/// Tries every mode, best first. Makes and removes a trial box in each.
#[napi(catch_unwind)]
pub fn probe_modes() -> napi::Result<Vec<ModeVerdict>> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    Ok(probe(&proc)
        .into_iter()
        .map(|verdict| match verdict.outcome {
            Ok(placement) => ModeVerdict {
                mode: verdict.mode.to_string(),
                available: true,
                base: placement.base.map(|base| base.display().to_string()),
                obstacle: None,
                detail: None,
            },
            Err((obstacle, detail)) => ModeVerdict {
                mode: verdict.mode.to_string(),
                available: false,
                base: None,
                obstacle: Some(obstacle.as_str().to_owned()),
                detail: Some(detail),
            },
        })
        .collect())
}

/// Removes empty boxes below `base` whose maker is gone; answers their names.
#[napi(catch_unwind)]
pub fn remove_abandoned_boxes(mode: String, base: Option<String>) -> napi::Result<Vec<String>> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    placement(&mode, base)?.remove_abandoned(&proc).map_err(|e| thrown(&e))
}

/// A mode and its place, as JavaScript names them.
pub(crate) fn placement(mode: &str, base: Option<String>) -> napi::Result<Placement> {
    let mode: Mode = mode.parse().map_err(bad_argument)?;
    if mode.is_kernel_limit() != base.is_some() {
        return Err(bad_argument(format!("mode {mode} and base {base:?} do not go together")));
    }
    Ok(Placement { mode, base: base.map(Into::into) })
}
