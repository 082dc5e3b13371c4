//! Memory, pressure and processes of the machine.

use headroom_core::cgroup::{Cgroup, Hierarchies};
use headroom_core::memory::{Available, Pressure as CorePressure, Stall as CoreStall};
use headroom_core::proc::ProcFs;
use napi_derive::napi;

use crate::error::{number, thrown};

/// A memory limit above this process.
#[napi(object, object_from_js = false)]
pub struct Ceiling {
    /// The cgroup's directory.
    pub cgroup: String,
    /// Its limit.
    pub limit_bytes: f64,
    /// What is left below the limit.
    pub left_bytes: f64,
}

/// The machine's memory, bounded by every limit above this process.
#[napi(object, object_from_js = false)]
pub struct Memory {
    /// The smaller of the machine's memory and the lowest limit above.
    pub total_bytes: f64,
    /// What could be had now, swap not counted.
    pub available_bytes: f64,
    /// The machine's memory.
    pub machine_total_bytes: f64,
    /// What the machine has available.
    pub machine_available_bytes: f64,
    /// Swap in all.
    pub swap_total_bytes: f64,
    /// Swap that is free.
    pub swap_free_bytes: f64,
    /// Limits above this process, nearest first.
    pub ceilings: Vec<Ceiling>,
}

/// Measures the memory that this process could get.
#[napi(catch_unwind)]
pub fn measure_memory() -> napi::Result<Memory> {
    let measured = ProcFs::system().and_then(|proc| Available::measure(&proc)).map_err(|e| thrown(&e))?;
    Ok(Memory {
        total_bytes: number(measured.total_bytes),
        available_bytes: number(measured.available_bytes),
        machine_total_bytes: number(measured.machine.total_bytes),
        machine_available_bytes: number(measured.machine.available_bytes),
        swap_total_bytes: number(measured.machine.swap_total_bytes),
        swap_free_bytes: number(measured.machine.swap_free_bytes),
        ceilings: measured
            .ceilings
            .into_iter()
            .map(|ceiling| Ceiling {
                cgroup: ceiling.cgroup.display().to_string(),
                limit_bytes: number(ceiling.limit_bytes),
                left_bytes: number(ceiling.left_bytes),
            })
            .collect(),
    })
}

/// One line of a pressure file.
#[napi(object, object_from_js = false)]
pub struct Stall {
    /// Share of the last 10 s that was stalled, percent. Lags a burst by seconds.
    pub avg10_percent: f64,
    /// Stalled time since boot, microseconds. Fresh at every read.
    pub total_us: f64,
}

/// Memory pressure of the whole machine.
#[napi(object, object_from_js = false)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Stall,
    /// Every task waited.
    pub full: Stall,
}

/// Reads /proc/pressure/memory; `null` where the kernel has no PSI or it is switched off.
#[napi(catch_unwind)]
pub fn memory_pressure() -> napi::Result<Option<Pressure>> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    let pressure = CorePressure::read(proc.dir(), "pressure/memory").map_err(|e| thrown(&e))?;
    let stall = |stall: CoreStall| Stall { avg10_percent: stall.avg10_percent, total_us: number(stall.total_us) };
    Ok(pressure.map(|pressure| Pressure { some: stall(pressure.some), full: stall(pressure.full) }))
}

/// How many processes of this process's own cgroup (not of cgroups below it) the kernel has killed for
/// lack of memory; `null` where no memory controller counts that.
#[napi(catch_unwind)]
pub fn own_oom_kills() -> napi::Result<Option<f64>> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    let places = Hierarchies::of_self(&proc).map_err(|e| thrown(&e))?;
    let count =
        |place: headroom_core::cgroup::Place| Cgroup::open(&place.own, place.version).ok()?.own_oom_kills().ok();
    Ok(places.v1_memory.and_then(count).or_else(|| places.v2.and_then(count)).map(number))
}

/// One process of the machine.
#[napi(object, object_from_js = false)]
pub struct ProcessView {
    /// Its number.
    pub pid: i32,
    /// Its parent.
    pub ppid: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Its command line.
    pub argv: Vec<String>,
    /// Its resident memory.
    pub rss_bytes: f64,
}

/// Every process with memory of its own, in the order of their numbers. Kernel threads are left out.
#[napi(catch_unwind)]
pub fn list_processes() -> napi::Result<Vec<ProcessView>> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    let tree = proc.tree().map_err(|e| thrown(&e))?;
    let mut views: Vec<ProcessView> = tree
        .iter()
        .filter(|stat| stat.rss_pages > 0)
        .map(|stat| ProcessView {
            pid: stat.pid,
            ppid: stat.ppid,
            name: stat.name.clone(),
            argv: proc.cmdline(stat.pid).ok().flatten().unwrap_or_default(),
            rss_bytes: number(proc.statm(stat.pid).ok().flatten().unwrap_or_default().resident_bytes),
        })
        .collect();
    views.sort_unstable_by_key(|view| view.pid);
    Ok(views)
}
