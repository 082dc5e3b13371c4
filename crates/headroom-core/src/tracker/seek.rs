//! The thread of a tracked call: looks for its shell, moves it, and then stays with it as with any job.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::boxing::{BoxId, JobBox, Limits};
use crate::cgroup::{Cgroup, Hierarchies, Limit, Version};
use crate::error::{Error, Result};
use crate::job::{Entrance, Event, EventSink, KernelLog, Registration, Root, Supervision, Watch, Watched};
use crate::journal::Record;
use crate::proc::{ProcFs, ProcessKey, Stat};
use crate::process::PidFd;
use crate::tracker::board::Posted;
use crate::tracker::call::TrackedCall;
use crate::tracker::entering::{enter, move_outsiders};
use crate::tracker::newcomers::Newcomers;
use crate::tracker::strays::{OrphanRule, Shell, gather};

/// How long after the announcement the search is fast: most shells come within some milliseconds.
const FAST_FOR: Duration = Duration::from_millis(250);
const FAST_PAUSE: Duration = Duration::from_micros(500);
/// After that: a person may still be asked for approval.
const SLOW_PAUSE: Duration = Duration::from_millis(5);
/// A child that is between fork and exec for longer is none that will become a shell.
const FORK_PATIENCE_MS: u64 = 2000;
/// How long after the entering those are looked for that got away before it.
const STRAYS_FOR: Duration = Duration::from_secs(1);
const NICENESS: i32 = -15;
/// How long a wrapper may take to put itself into a unit of its own.
const SCOPE_PATIENCE: Duration = Duration::from_secs(3);

/// A box that waits for its shell.
#[derive(Debug)]
pub struct Tracked {
    /// The job's identity.
    pub id: BoxId,
    /// The cgroup that carries its limits.
    pub cgroup: Option<PathBuf>,
    /// Why it is not on record, when it should be.
    pub record_problem: Option<Error>,
    /// The reading end of the event lines; closed by the thread after the last one.
    pub events: OwnedFd,
}

/// Makes the box and begins to look. The agent may start its command when this has returned.
pub fn track(call: TrackedCall, entrance: Entrance, registration: Option<&Registration>) -> Result<Tracked> {
    let proc = ProcFs::system()?;
    let agent = proc.living(call.agent_pid)?.ok_or(Error::Gone { pid: call.agent_pid })?;
    let (reader, writer) = UnixStream::pair().map_err(|e| Error::call("socketpair", e))?;
    let (job_box, record) = entrance.open(&proc, registration)?;
    let (record, record_problem) = match record {
        Some(Ok(record)) => (Some(record), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let (id, cgroup) = (job_box.id(), job_box.cgroup_path());
    let seek = Seek {
        posted: Posted::new(id, agent, &call.texts),
        newcomers: Newcomers::from_now(&proc),
        orphans: OrphanRule::new(&proc, agent.pid),
        kernel_log: KernelLog::from_now(),
        announced: Instant::now(),
        events: EventSink::new(writer),
        unknown: Vec::new(),
        proc,
        agent,
        call,
        job_box,
        record,
    };
    std::thread::Builder::new()
        .name("headroom-track".to_owned())
        .spawn(move || seek.run())
        .map_err(|e| Error::call("thread", e))?;
    Ok(Tracked { id, cgroup, record_problem, events: reader.into() })
}

struct Seek {
    proc: ProcFs,
    agent: ProcessKey,
    call: TrackedCall,
    posted: Posted,
    newcomers: Newcomers,
    /// New processes that belong to nobody, as far as it is known.
    unknown: Vec<Stat>,
    orphans: OrphanRule,
    job_box: JobBox,
    record: Option<Record>,
    kernel_log: Option<KernelLog>,
    announced: Instant,
    events: EventSink,
}

/// What a new child of the agent is.
enum Verdict {
    Shell {
        is_scoped: bool,
    },
    Other,
    /// It has not become what it is going to be.
    Unfinished,
}

impl Seek {
    fn run(mut self) {
        // Who waits for its turn on a busy machine comes too late. Only root may; in Linux this is the calling
        // thread's own priority.
        let _best_effort = rustix::process::setpriority_process(None, NICENESS);
        let found = self.search();
        let shell = found.map(|(shell, _)| shell);
        // Before it can end: an ended process has no environment.
        let origin = shell.map(|shell| Shell::new(&self.proc, shell));
        let mut watched = Watched::new(self.job_box.id(), shell);
        if let Some(shell) = shell {
            watched.include_session(shell);
            if let Some(record) = &mut self.record {
                record.set_root(shell);
            }
        }
        if shell.is_none() {
            self.find_remains(&mut watched);
        }
        let scope = match found {
            Some((shell, true)) => self.scope_of(shell),
            _ => None,
        };
        if let Some((unit, scope)) = scope {
            let _nobody_was_inside = self.job_box.remove();
            self.job_box = scope;
            let pid = shell.map_or(0, |shell| shell.pid);
            self.events.send(&Event::Entered { pid, moved: 0, scoped: Some(unit), problem: None });
        } else {
            self.move_in(&mut watched, origin.as_ref());
        }
        // It may have ended by now: a command can be that short.
        let process = shell.and_then(|shell| PidFd::open_exactly(&self.proc, shell).ok());
        self.stay(process.map_or(Root::Gone, |process| Root::Foreign { process }), watched, origin);
    }

    fn move_in(&mut self, watched: &mut Watched, shell: Option<&Shell>) {
        let Self { proc, job_box, newcomers, unknown, call, .. } = self;
        gather(proc, watched, newcomers, unknown);
        if let Some(shell) = shell.filter(|_| self.posted.is_alone()) {
            self.orphans.adopt(proc, watched, shell, unknown);
        }
        if watched.members().next().is_none() {
            return;
        }
        let moved = enter(proc, job_box, watched, (newcomers, unknown), call);
        let problem = moved.problem.map(|error| error.to_string());
        let pid = shell.map_or(0, |shell| shell.key.pid);
        self.events.send(&Event::Entered { pid, moved: moved.count, scoped: None, problem });
    }

    /// Until the shell is there, or will not come.
    fn search(&mut self) -> Option<(ProcessKey, bool)> {
        let own_words = self.proc.cmdline(self.agent.pid).ok().flatten().unwrap_or_default();
        let mut pending: Vec<ProcessKey> = Vec::new();
        loop {
            // Before the look: what was started before the call was over is still found.
            let is_over = self.posted.is_finished() || !self.proc.is_alive(self.agent);
            for stat in self.newcomers.look(&self.proc) {
                if stat.ppid == self.agent.pid {
                    pending.push(stat.key());
                } else {
                    self.unknown.push(stat);
                }
            }
            let mut found = None;
            pending.retain(|child| match self.judge(*child, &own_words) {
                _ if found.is_some() => true,
                Verdict::Shell { is_scoped } => {
                    found = Some((*child, is_scoped));
                    false
                }
                Verdict::Other => false,
                Verdict::Unfinished => true,
            });
            if found.is_some() || is_over {
                return found;
            }
            std::thread::sleep(self.pause());
        }
    }

    fn pause(&self) -> Duration {
        if self.announced.elapsed() < FAST_FOR { FAST_PAUSE } else { SLOW_PAUSE }
    }

    /// What a shell has left that came and went unseen: its subshells still have its command line.
    fn find_remains(&self, watched: &mut Watched) {
        let agents_session = self.proc.stat(self.agent.pid).ok().flatten().map(|stat| stat.session);
        for before in &self.unknown {
            let Ok(Some(now)) = self.proc.stat(before.pid) else { continue };
            let words = self.proc.cmdline(now.pid).ok().flatten().unwrap_or_default();
            let is_leaderless = matches!(self.proc.stat(now.session), Ok(None)) && Some(now.session) != agents_session;
            if is_leaderless && now.key() == before.key() && self.posted.claim(&self.proc, now.key(), &words) {
                watched.add(now.key());
                // Its leader's number is not given anew while somebody is in the session. See setsid(2).
                watched.include_session(ProcessKey { pid: now.session, start_ticks: 0 });
            }
        }
    }

    fn judge(&self, child: ProcessKey, agents_words: &[String]) -> Verdict {
        let Ok(Some(stat)) = self.proc.stat(child.pid) else { return Verdict::Other };
        if stat.key() != child || stat.is_zombie() {
            return Verdict::Other;
        }
        let words = self.proc.cmdline(child.pid).ok().flatten().unwrap_or_default();
        // Agents give each shell a session of its own; between fork and exec it still has the agent's words.
        if stat.session != child.pid || words.is_empty() || words == agents_words {
            let is_young = child.age_ms() < FORK_PATIENCE_MS;
            return if is_young { Verdict::Unfinished } else { Verdict::Other };
        }
        if !self.posted.claim(&self.proc, child, &words) {
            return Verdict::Other;
        }
        let program = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
        Verdict::Shell { is_scoped: program == "systemd-run" }
    }

    /// The unit that a wrapper has put its command into, as the job's box.
    fn scope_of(&self, shell: ProcessKey) -> Option<(String, JobBox)> {
        let before = self.proc.membership(self.agent.pid).ok()??;
        let deadline = Instant::now() + SCOPE_PATIENCE;
        while Instant::now() < deadline && self.proc.is_alive(shell) {
            let now = self.proc.membership(shell.pid).ok()??;
            if now != before
                && let Some(path) = &now.v2
                && let Some(unit) = path.rsplit('/').next().filter(|name| name.strip_suffix(".scope").is_some())
            {
                let mount = Hierarchies::of_self(&self.proc).ok()?.v2?.mount_point;
                let cgroup = Cgroup::open(mount.join(path.trim_start_matches('/')), Version::V2).ok()?;
                let memory_bytes = cgroup.memory_limit().ok()??.as_bytes()?;
                let limits = Limits { memory_bytes, swap: Limit::Max };
                let job_box = JobBox::of_unit(self.job_box.mode(), self.job_box.id(), limits, cgroup).ok()?;
                return Some((unit.to_owned(), job_box));
            }
            std::thread::sleep(SLOW_PAUSE);
        }
        None
    }

    /// With the shell to its end, or with nobody.
    fn stay(self, root: Root, watched: Watched, origin: Option<Shell>) {
        let Self {
            proc,
            job_box,
            record,
            kernel_log,
            events,
            announced,
            call,
            posted,
            newcomers,
            unknown,
            orphans,
            ..
        } = self;
        let until = Instant::now() + STRAYS_FOR;
        let strays = origin.map(|shell| Strays { call, posted, newcomers, unknown, orphans, shell, until, announced });
        let supervision = Supervision { record, ..Supervision::default() };
        let companion = strays.filter(|_| matches!(root, Root::Foreign { .. })).map(Strays::into_companion);
        Watch::begin(proc, root, job_box, watched, supervision, kernel_log, events, announced).with(companion).stay();
    }
}

/// The looks for those that got away, for a while after the entering.
struct Strays {
    call: TrackedCall,
    posted: Posted,
    newcomers: Newcomers,
    unknown: Vec<Stat>,
    orphans: OrphanRule,
    shell: Shell,
    until: Instant,
    announced: Instant,
}

impl Strays {
    /// Answers when it wants to look again; `None` for never.
    fn into_companion(mut self) -> crate::job::Companion {
        Box::new(move |proc, job_box, watched| {
            gather(proc, watched, &mut self.newcomers, &mut self.unknown);
            if self.posted.is_alone() {
                self.orphans.adopt(proc, watched, &self.shell, &self.unknown);
            }
            let _counted_as_escaped = move_outsiders(proc, job_box, watched, &self.call);
            if Instant::now() >= self.until || self.posted.is_finished() {
                self.posted.has_started();
                return None;
            }
            Some(if self.announced.elapsed() < FAST_FOR { FAST_PAUSE } else { SLOW_PAUSE })
        })
    }
}
