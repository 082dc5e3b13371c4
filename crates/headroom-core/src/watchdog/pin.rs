//! Keeps the watchdog's code and stack in memory: it is needed most when the kernel is throwing out everything
//! that can be read again from a file. See `mlock2(2)`.
//!
//! The code is locked as it is used (`MLOCK_ONFAULT`), so that what the watchdog never runs costs nothing.
//! Limits of a user (`RLIMIT_MEMLOCK`, 64 KiB before Linux 5.16) may forbid it; the watchdog then runs unlocked.

use std::ffi::c_void;

use crate::proc::ProcFs;

/// Around the present depth of the stack.
const STACK_BYTES: usize = 64 << 10;
/// Code above this is another program's business, and not ours to lock.
const MOST_CODE_BYTES: usize = 4 << 20;

/// Locked until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Pinned {
    ranges: Vec<(usize, usize)>,
}

impl Pinned {
    /// Locks what can be locked of the calling thread's stack and of this library's code.
    pub(super) fn new(proc: &ProcFs) -> Self {
        let here = 0_u8;
        let stack_address = std::ptr::from_ref(&here).addr();
        let code_address = (Self::new as fn(&ProcFs) -> Self) as usize;
        let text = proc.dir().read_bytes("self/maps").unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut pinned = Self::default();
        if let Some((start, end)) = mapping_around(&text, stack_address) {
            let from = start.max(stack_address.saturating_sub(STACK_BYTES * 3 / 4) & !0xfff);
            let to = end.min((stack_address + STACK_BYTES / 4) & !0xfff);
            pinned.lock(from, to, 0);
        }
        if let Some((start, end)) = mapping_around(&text, code_address)
            && end - start <= MOST_CODE_BYTES
        {
            pinned.lock(start, end, libc::MLOCK_ONFAULT);
        }
        pinned
    }

    fn lock(&mut self, from: usize, to: usize, flags: libc::c_uint) {
        let length = to.saturating_sub(from);
        // SAFETY: the range lies within one mapping of this process; locking changes nothing that can be seen.
        let answer = unsafe { libc::mlock2(from as *const c_void, length, flags) };
        if answer == 0 {
            self.ranges.push((from, length));
        }
    }

    /// Whether both could be locked.
    pub(super) fn is_whole(&self) -> bool {
        self.ranges.len() == 2
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        for (from, length) in &self.ranges {
            // SAFETY: the range was locked by us and is still mapped: it is this library, or this thread's stack.
            unsafe { libc::munlock(*from as *const c_void, *length) };
        }
    }
}

/// Start and end of the mapping that an address lies in, from `/proc/self/maps`.
fn mapping_around(maps: &str, address: usize) -> Option<(usize, usize)> {
    maps.lines().find_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        (start..end).contains(&address).then_some((start, end))
    })
}

#[cfg(test)]
mod tests {
    use super::{Pinned, mapping_around};
    use crate::proc::ProcFs;

    #[test]
    fn the_mapping_is_the_one_around_the_address() {
        let maps = "1000-3000 r-xp 0 0 0 /a\n3000-4000 rw-p 0 0 0\nnonsense\n";
        assert_eq!(mapping_around(maps, 0x2fff), Some((0x1000, 0x3000)));
        assert_eq!(mapping_around(maps, 0x3000), Some((0x3000, 0x4000)));
        assert_eq!(mapping_around(maps, 0x4000), None);
    }

    #[test]
    fn what_is_locked_is_little_and_is_let_go() {
        // In a thread of its own, whose stack is not another test's.
        std::thread::spawn(|| {
            let proc = ProcFs::system().unwrap();
            let locked_kib = || {
                let text = proc.dir().read("self/smaps_rollup").unwrap();
                let line = text.lines().find(|line| line.starts_with("Locked:")).unwrap().to_owned();
                line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
            };
            let pinned = Pinned::new(&proc);
            if pinned.is_whole() {
                assert!((1..=4096).contains(&locked_kib()), "{} kB", locked_kib());
            }
            drop(pinned);
            assert_eq!(locked_kib(), 0);
        })
        .join()
        .unwrap();
    }
}
