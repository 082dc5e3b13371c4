//! Boxes as objects.

use headroom_core::boxing::{BoxId, JobBox as CoreBox, Limits};
use headroom_core::cgroup::{Limit, Peak as CorePeak};
use headroom_core::proc::ProcFs;
use napi_derive::napi;

use crate::error::{bytes, number, thrown};
use crate::modes::placement;

/// The most memory that was in use.
#[napi(object, object_from_js = false)]
pub struct Peak {
    /// So many bytes.
    pub bytes: f64,
    /// `memory.peak`, `max_usage` or `sampled`.
    pub source: String,
}

impl From<CorePeak> for Peak {
    fn from(peak: CorePeak) -> Self {
        Self { bytes: number(peak.bytes), source: peak.source.as_str().to_owned() }
    }
}

/// A box made by hand, in a mode whose boxes are plain directories. It stays when this object is
/// collected; `remove` ends it.
#[napi]
pub struct JobBox {
    inner: CoreBox,
}

#[napi]
impl JobBox {
    /// Makes a box with its limits set. `swapBytes` `null` is unlimited; `base` is `null` in `userspace`
    /// and `off`.
    #[napi(factory, catch_unwind)]
    pub fn create(
        mode: String,
        base: Option<String>,
        memory_bytes: f64,
        swap_bytes: Option<f64>,
    ) -> napi::Result<Self> {
        let placement = placement(&mode, base)?;
        let swap = swap_bytes.map(bytes).transpose()?.map_or(Limit::Max, Limit::Bytes);
        let limits = Limits { memory_bytes: bytes(memory_bytes)?, swap };
        let result = ProcFs::system().and_then(|proc| placement.make_box(BoxId::new(&proc)?, limits));
        result.map(|inner| Self { inner }).map_err(|e| thrown(&e))
    }

    /// The job's identity.
    #[napi(getter, catch_unwind)]
    #[must_use]
    pub fn id(&self) -> String {
        self.inner.id().to_string()
    }

    /// The directory of the cgroup that carries the limits.
    #[napi(getter, catch_unwind)]
    #[must_use]
    pub fn cgroup(&self) -> Option<String> {
        self.inner.cgroup_path().map(|path| path.display().to_string())
    }

    /// Moves a running process in.
    #[napi(catch_unwind)]
    pub fn enter(&self, pid: i32) -> napi::Result<()> {
        self.inner.enter(pid).map_err(|e| thrown(&e))
    }

    /// Processes inside; empty without a cgroup.
    #[napi(catch_unwind)]
    pub fn pids(&self) -> napi::Result<Vec<i32>> {
        self.inner.pids().map_err(|e| thrown(&e))
    }

    /// The kernel's record of the most memory in use; `null` where it keeps none.
    #[napi(catch_unwind)]
    pub fn peak(&self) -> napi::Result<Option<Peak>> {
        Ok(self.inner.peak().map_err(|e| thrown(&e))?.map(Peak::from))
    }

    /// Processes that the kernel has killed inside.
    #[napi(catch_unwind)]
    pub fn oom_kills(&self) -> napi::Result<f64> {
        self.inner.oom_kills().map(number).map_err(|e| thrown(&e))
    }

    /// Kills everything inside; `false` when something is stuck in the kernel.
    #[napi(catch_unwind)]
    pub fn kill_all(&self) -> napi::Result<bool> {
        self.inner.kill_all().map_err(|e| thrown(&e))
    }

    /// Removes the box; `false` when a process is still inside. Removing it twice is fine.
    #[napi(catch_unwind)]
    pub fn remove(&self) -> napi::Result<bool> {
        self.inner.remove().map_err(|e| thrown(&e))
    }
}
