//! Pushes a job that stands still out to swap, so that its pause frees memory at once.
//!
//! `memory.reclaim` of its cgroup where there is one (Linux 5.19), else `process_madvise(2)` with
//! `MADV_PAGEOUT` (Linux 5.10, `CAP_SYS_NICE`) for each of its processes.

use crate::cgroup::Cgroup;
use crate::proc::ProcFs;
use crate::process::PidFd;

/// Ranges of one call; the kernel takes at most 1024.
const RANGES_A_CALL: usize = 512;

/// Blocks until it is done, which with slow swap takes seconds. Answers how many bytes left memory.
pub(super) fn push_out(proc: &ProcFs, cgroup: Option<&Cgroup>, processes: &[PidFd]) -> u64 {
    if let Some(cgroup) = cgroup {
        let used = || cgroup.usage_bytes().ok().flatten().unwrap_or(0);
        let before = used();
        // EAGAIN: less than that could be reclaimed. What was counts.
        let written = cgroup.dir().write("memory.reclaim", &before.to_string());
        if written.is_ok() || written.is_err_and(|error| error.errno() == Some(libc::EAGAIN)) {
            return before.saturating_sub(used());
        }
    }
    processes.iter().map(|process| advise(proc, process)).sum()
}

fn advise(proc: &ProcFs, process: &PidFd) -> u64 {
    let resident = || proc.statm(process.pid()).ok().flatten().unwrap_or_default().resident_bytes;
    let before = resident();
    for ranges in private_memory(proc, process.pid()).chunks(RANGES_A_CALL) {
        process.page_out(ranges);
    }
    before.saturating_sub(resident())
}

/// Start and length of what is a process's own and would go to swap.
fn private_memory(proc: &ProcFs, pid: i32) -> Vec<(usize, usize)> {
    let text = proc.dir().read_bytes(format!("{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(private_range).collect()
}

/// One line of `/proc/PID/maps`, see proc(5).
fn private_range(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, permissions) = (words.next()?, words.next()?);
    let is_private = permissions.starts_with("rw") && permissions.ends_with('p');
    let (start, end) = range.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    (is_private && end > start).then(|| (start, end - start))
}

#[cfg(test)]
mod tests {
    use super::private_range;

    #[test]
    fn only_what_would_go_to_swap_is_pushed_out() {
        let heap = "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(private_range(heap), Some((0x55d0_c8a0_0000, 0x21000)));
        for other in [
            "7f00-8f00 r-xp 00000000 08:01 42 /usr/lib/libc.so.6",
            "7f00-8f00 rw-s 00000000 00:01 42 /dev/shm/x",
            "8f00-7f00 rw-p 0 0 0",
            "zz",
            "",
        ] {
            assert_eq!(private_range(other), None, "{other}");
        }
    }
}
