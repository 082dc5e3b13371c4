//! Keeping the cap of jobs whose starter is gone, where only headroom itself enforces it. A kernel limit
//! needs nobody.

use std::sync::Arc;

use rustix::fs::OFlags;

use crate::boxing::Mode;
use crate::error::{Error, Result};
use crate::job::guard_orphan;
use crate::journal::RuntimeDir;
use crate::journal::record::{self, ENDING};
use crate::proc::ProcFs;

const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// How often a process that stays looks for new orphans.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// Takes over orphans now, and goes on doing so on a thread for as long as this process lives. Answers how
/// many were taken over now.
pub fn keep_adopting(runtime: &Arc<RuntimeDir>) -> Result<usize> {
    let proc = ProcFs::system()?;
    let adopted = adopt(&proc, runtime)?;
    let runtime = Arc::clone(runtime);
    let look = move || {
        loop {
            std::thread::sleep(LOOK_EVERY);
            let _tried_again_in_a_second = adopt(&proc, &runtime);
        }
    };
    let started = std::thread::Builder::new().name("headroom-adopt".to_owned()).spawn(look);
    started.map(|_| adopted).map_err(|e| Error::call("thread", e))
}

/// Takes over `userspace` jobs that nobody looks after, each with a thread that enforces its cap until
/// the job or this process ends. Answers how many were taken over.
pub fn adopt(proc: &ProcFs, runtime: &Arc<RuntimeDir>) -> Result<usize> {
    let mut adopted = 0;
    for name in runtime.files_ending_in(ENDING)? {
        let Ok(mut file) = runtime.open_file(&name, OFlags::RDWR) else { continue };
        if !lock(&file) || !runtime.is_current(&name, &file) {
            continue;
        }
        let Some((id, facts)) = record::read(&mut file) else { continue };
        if facts.mode != Mode::Userspace || facts.boot_id != record::boot_id(proc) {
            continue;
        }
        let runtime = Arc::clone(runtime);
        let guard = move || {
            guard_orphan(id, facts.root, &facts.sessions, facts.memory_bytes, facts.swap_bytes);
            let _swept_later_if_it_fails = runtime.unlink(&name);
            // The lock goes with the file: until here it tells others that the job is looked after.
            drop(file);
        };
        let started = std::thread::Builder::new().name("headroom-adopt".to_owned()).spawn(guard);
        started.map_err(|e| Error::call("thread", e))?;
        adopted += 1;
    }
    Ok(adopted)
}

/// Somebody who only looks holds the lock for a moment; who looks after a job keeps it.
fn lock(file: &std::fs::File) -> bool {
    (0..LOCK_TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(LOCK_PAUSE);
        }
        file.try_lock().is_ok()
    })
}
