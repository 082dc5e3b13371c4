//! A thread that must react at once among many busy ones.

/// The shortest slice that the scheduler accepts, nanoseconds.
const SHORTEST_SLICE_NS: u64 = 100_000;

/// Lets the calling thread run as soon as it wakes. Its priority is raised where that is allowed (root). Its slice is
/// shortened where the kernel knows such (6.12 and later): who asks for less at a time is let in before others have
/// used up theirs, whatever the priority. Nothing here fails; without it the thread waits its turn.
pub(crate) fn react_at_once(niceness: i32) {
    // In Linux this is the calling thread's own priority.
    let _best_effort = rustix::process::setpriority_process(None, niceness);
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    let attributes = SchedulingAttributes {
        size: u32::try_from(size_of::<SchedulingAttributes>()).unwrap_or_default(),
        policy: 0,
        flags: 0,
        nice,
        priority: 0,
        runtime_ns: SHORTEST_SLICE_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the structure is valid, of the size that it tells, and only read; 0 is the calling thread.
    let _best_effort = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// `struct sched_attr` in its first version, 48 bytes. See `sched_setattr(2)`.
#[repr(C)]
struct SchedulingAttributes {
    size: u32,
    /// 0 is `SCHED_OTHER`.
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_priority_or_gets_a_better_one() {
        let after = std::thread::spawn(|| {
            let before = rustix::process::getpriority_process(None).unwrap();
            react_at_once(-3);
            (before, rustix::process::getpriority_process(None).unwrap())
        });
        let (before, after) = after.join().unwrap();
        assert!(after == -3 || after == before, "{before} {after}");
        assert_eq!(size_of::<SchedulingAttributes>(), 48);
    }
}
