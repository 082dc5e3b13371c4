//! Lets a job stand still for the moment in which it is moved.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::proc::{ProcFs, ProcessKey, Stat};
use crate::process::PidFd;
use crate::tracker::stop_guard;

/// How long a job may be on its way to a standstill before it is moved as it is.
const PATIENCE: Duration = Duration::from_millis(100);
/// So many looks must find nobody new.
const QUIET_LOOKS: u32 = 2;
/// How long after a stop somebody may stop for it.
const ECHO_PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_micros(100);

/// Stopped processes, until this is dropped. Those that somebody else had stopped stay stopped.
#[derive(Debug, Default)]
pub(super) struct Halt {
    seen: HashSet<ProcessKey>,
    stopped: Vec<PidFd>,
}

impl Halt {
    /// Stops what `family` lists, and those that they start meanwhile, until nobody new is found and all stand
    /// still. Answers the family as it was then.
    pub(super) fn bring_to_rest(&mut self, proc: &ProcFs, mut family: impl FnMut() -> Vec<Stat>) -> Vec<Stat> {
        let deadline = Instant::now() + PATIENCE;
        let mut quiet_looks = 0;
        loop {
            let found = family();
            let mut is_quiet = found.iter().all(stands_still);
            for stat in &found {
                is_quiet &= !self.stop(proc, stat);
            }
            quiet_looks = if is_quiet { quiet_looks + 1 } else { 0 };
            if quiet_looks == QUIET_LOOKS || Instant::now() > deadline {
                return found;
            }
            if !is_quiet {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Stops a process that was not seen before. Whether it was new.
    pub(super) fn stop(&mut self, proc: &ProcFs, stat: &Stat) -> bool {
        let is_new = self.seen.insert(stat.key());
        if is_new
            && !matches!(stat.state, 'T' | 't')
            && let Ok(handle) = PidFd::open_exactly(proc, stat.key())
            && stop_guard::remember(stat.pid)
        {
            if handle.signal(libc::SIGSTOP).is_ok() {
                self.stopped.push(handle);
            } else {
                stop_guard::forget(stat.pid);
            }
        }
        is_new
    }
}

/// A process in `D` starts nobody; one that waits for a vfork to end stays so while its child is stopped.
fn stands_still(stat: &Stat) -> bool {
    matches!(stat.state, 'T' | 't' | 'D' | 'Z' | 'X') || stat.is_exiting
}

impl Halt {
    /// Lets all go on.
    pub(super) fn release(mut self) -> Released {
        self.go_on();
        Released { processes: std::mem::take(&mut self.stopped), until: Some(Instant::now() + ECHO_PATIENCE) }
    }

    fn go_on(&self) {
        // Children first: a shell with job control must not learn that they were stopped.
        for handle in self.stopped.iter().rev() {
            let _gone_is_fine = handle.signal(libc::SIGCONT);
            stop_guard::forget(handle.pid());
        }
    }
}

impl Drop for Halt {
    fn drop(&mut self) {
        self.go_on();
    }
}

/// Processes that go on. One that looks after another's terminal (script, sudo) may have been told of the other's
/// stop, and stops itself for it as soon as it runs.
#[derive(Debug, Default)]
pub(super) struct Released {
    processes: Vec<PidFd>,
    until: Option<Instant>,
}

impl Released {
    /// Lets those that hold a terminal and stand still again go on again, unless `is_meant`.
    pub(super) fn look_again(&mut self, proc: &ProcFs, is_meant: impl Fn() -> bool) {
        if self.until.is_none_or(|until| Instant::now() > until) {
            self.processes.clear();
        }
        for process in &self.processes {
            let stands_still = proc.stat(process.pid()).is_ok_and(|stat| stat.is_some_and(|stat| stat.state == 'T'));
            if stands_still && holds_terminal(proc, process.pid()) && !is_meant() {
                let _gone_is_fine = process.signal(libc::SIGCONT);
            }
        }
    }
}

/// Whether a process has the other end of a terminal. See pty(7).
fn holds_terminal(proc: &ProcFs, pid: i32) -> bool {
    let fds = std::fs::read_dir(proc.dir().path().join(format!("{pid}/fd")));
    let mut files = fds.into_iter().flatten().filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    files.any(|file| file.file_name().is_some_and(|name| name == "ptmx"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    const VARIABLE: &str = "HEADROOM_TEST_TO_STOP";
    const TEST_PATIENCE: Duration = Duration::from_mins(1);

    struct Kid(Child);

    impl Drop for Kid {
        fn drop(&mut self) {
            let _ended_already = self.0.kill();
            let _collected_already = self.0.wait();
        }
    }

    fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + TEST_PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    #[ignore = "not a test: the process that is killed in the next one"]
    fn stops_and_waits() {
        let Ok(pid) = std::env::var(VARIABLE) else { return };
        let (pid, proc) = (pid.parse().unwrap(), ProcFs::system().unwrap());
        stop_guard::ensure().unwrap();
        let mut halt = Halt::default();
        halt.bring_to_rest(&proc, || proc.stat(pid).unwrap().into_iter().collect());
        let mut nothing = [0];
        let _killed_here = std::io::stdin().read(&mut nothing);
        std::mem::forget(halt);
    }

    #[test]
    fn who_is_killed_while_a_job_stands_still_leaves_it_running() {
        let proc = ProcFs::system().unwrap();
        let cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut cat = Kid(cat);
        let pid = cat.0.id().cast_signed();
        let stopper = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "tracker::halt::tests::stops_and_waits", "--nocapture"])
            .env(VARIABLE, pid.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut stopper = Kid(stopper.unwrap());
        let state = |pid: i32| proc.stat(pid).unwrap().map(|stat| stat.state);
        wait_until("it stands still", || state(pid) == Some('T'));
        let guards = proc.children(stopper.0.id().cast_signed()).unwrap().unwrap();
        assert_eq!(guards.len(), 1, "one guard");
        stopper.0.kill().unwrap();
        wait_until("it goes on", || state(pid) != Some('T'));
        cat.0.stdin.take().unwrap().write_all(b"alive").unwrap();
        let mut answer = String::new();
        cat.0.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "alive");
        wait_until("the guard is gone", || !matches!(proc.living(guards[0]), Ok(Some(_))));
    }

    #[test]
    fn a_halt_ends_with_its_value() {
        let proc = ProcFs::system().unwrap();
        let kid = Kid(Command::new("cat").stdin(Stdio::piped()).spawn().unwrap());
        let pid = kid.0.id().cast_signed();
        let state = || proc.stat(pid).unwrap().unwrap().state;
        stop_guard::ensure().unwrap();
        let mut halt = Halt::default();
        halt.bring_to_rest(&proc, || proc.stat(pid).unwrap().into_iter().collect());
        assert_eq!(state(), 'T');
        drop(halt);
        wait_until("it goes on", || state() != 'T');
    }
}
