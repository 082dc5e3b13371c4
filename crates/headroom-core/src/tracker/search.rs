//! Which new child of the agent is the call's command.
//!
//! A child counts once it has become another program: between fork and exec it shows the agent's own command line,
//! and stopping it there would stop the thread that waits for it (vfork). Its command line then contains the text
//! of the call, whatever quotes a shell in between has put around it.
//!
//! Where no line fits (an agent that hands the text over in a file, a rewritten text) a guess is made, and only
//! while no other call of this agent is being looked for: the first child that leads a session, has run for
//! [`GUESS_AFTER`] and is not the one that takes the snapshot of the login shell. Agents start their commands in
//! sessions of their own, so that they can end them whole. Without any text (a script in a file) the program of
//! the call is no shell, so others are taken at once and shells late. A guess holds until a line that fits is seen.
//!
//! A shell may start something and be gone before it is seen, on a busy machine. Then its remainder is looked for: a
//! new process without a parent whose command line is a part of the text, or contains it.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::boxing::BOX_PREFIX;
use crate::proc::{ProcFs, ProcessKey, Stat};
use crate::tracker::call::{CommandLine, is_of};
use crate::tracker::newcomers::Newcomers;
use crate::tracker::registry::Entry;
use crate::tracker::relatives::Surroundings;

/// How long a child may run before it is taken for the command without a line that fits.
pub(super) const GUESS_AFTER: Duration = Duration::from_millis(300);
/// How long a child may take to become another program; one that does not is the agent's own worker.
const EXEC_PATIENCE: Duration = Duration::from_secs(1);

/// The command's own process.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) stat: Stat,
    /// It is put into a unit of its own by who starts it.
    pub(super) is_scoped: bool,
    /// Nothing but circumstances speak for it.
    pub(super) is_guess: bool,
    /// It is what is left of a command that has ended.
    pub(super) is_remainder: bool,
}

/// What was found out about one new process.
#[derive(Debug)]
struct Judged {
    key: ProcessKey,
    since: Instant,
    verdict: Verdict,
}

#[derive(Debug, PartialEq)]
enum Verdict {
    /// Not to be looked at again.
    Stranger,
    /// A child of the agent that has not become another program yet.
    Unborn,
    /// A child of the agent that leads a session; its line does not fit.
    Possible { is_shell: bool },
    /// It fits a call that was announced earlier; that one takes it.
    Fitting,
}

/// The search for one call's command.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) newcomers: Newcomers,
    around: Surroundings,
    /// Squashed.
    pub(super) texts: Vec<Vec<u8>>,
    judged: HashMap<i32, Judged>,
}

impl Search {
    pub(super) fn new(newcomers: Newcomers, around: Surroundings, texts: Vec<Vec<u8>>) -> Self {
        Self { newcomers, around, texts, judged: HashMap::new() }
    }

    /// Looks once. `is_wide` looks at new processes everywhere; `agent_is_gone` lets orphans fit.
    pub(super) fn look(
        &mut self,
        proc: &ProcFs,
        entry: &mut Entry,
        is_wide: bool,
        agent_is_gone: bool,
    ) -> Option<Found> {
        let new = if is_wide { self.newcomers.everywhere(proc) } else { self.newcomers.near(proc) };
        for &pid in &new {
            if self.is_settled(pid) {
                continue;
            }
            let Ok(Some(stat)) = proc.stat(pid) else { continue };
            let key = stat.key();
            let since = self.judged.get(&pid).filter(|judged| judged.key == key).map(|judged| judged.since);
            let since = since.unwrap_or_else(Instant::now);
            match self.judge(proc, entry, &stat, since, agent_is_gone) {
                Ok(found) => return Some(found),
                Err(verdict) => self.judged.insert(pid, Judged { key, since, verdict }),
            };
        }
        if is_wide {
            self.judged.retain(|pid, _| new.binary_search(pid).is_ok());
        }
        None
    }

    /// Processes that were there before the command was found, and are none of its.
    pub(super) fn strangers(&self) -> HashSet<ProcessKey> {
        let strangers = self.judged.values().filter(|judged| judged.verdict == Verdict::Stranger);
        strangers.map(|judged| judged.key).collect()
    }

    fn is_settled(&self, pid: i32) -> bool {
        self.judged.get(&pid).is_some_and(|judged| !matches!(judged.verdict, Verdict::Unborn | Verdict::Fitting))
    }

    /// The command, or what else the process is.
    fn judge(
        &self,
        proc: &ProcFs,
        entry: &mut Entry,
        stat: &Stat,
        since: Instant,
        agent_is_gone: bool,
    ) -> Result<Found, Verdict> {
        if stat.is_zombie() || stat.is_exiting {
            return Err(Verdict::Stranger);
        }
        if stat.ppid != self.around.agent && !agent_is_gone {
            return self.judge_remainder(proc, entry, stat);
        }
        let line = proc.dir().read_bytes(format!("{}/cmdline", stat.pid)).unwrap_or_default();
        let agents_line = proc.dir().read_bytes(format!("{}/cmdline", self.around.agent)).unwrap_or_default();
        if line.is_empty() || line == agents_line {
            return Err(if since.elapsed() < EXEC_PATIENCE { Verdict::Unborn } else { Verdict::Stranger });
        }
        let line = CommandLine(&line);
        if entry.take_fitting(stat.key(), &line.squashed()) {
            return Ok(self.found(proc, stat, line, false));
        }
        if !self.texts.is_empty() && entry.is_fitting_another(&line.squashed()) {
            return Err(Verdict::Fitting);
        }
        if stat.session != stat.pid || line.is_login_snapshot() || self.is_boxed(proc, stat.pid) {
            return Err(Verdict::Stranger);
        }
        Err(Verdict::Possible { is_shell: line.is_shell() })
    }

    fn judge_remainder(&self, proc: &ProcFs, entry: &mut Entry, stat: &Stat) -> Result<Found, Verdict> {
        if !self.around.may_have_lost(proc, stat) || !entry.is_only_searcher() {
            return Err(Verdict::Stranger);
        }
        let line = proc.dir().read_bytes(format!("{}/cmdline", stat.pid)).unwrap_or_default();
        if is_of(&CommandLine(&line).squashed(), &self.texts) && entry.take_guessed(stat.key()) {
            return Ok(Found { stat: stat.clone(), is_scoped: false, is_guess: false, is_remainder: true });
        }
        Err(Verdict::Stranger)
    }

    /// The child that is most likely the command where no line fits, if it has run long enough.
    pub(super) fn guess(&mut self, proc: &ProcFs, entry: &mut Entry) -> Option<Found> {
        let is_due = |judged: &&Judged| match judged.verdict {
            Verdict::Possible { is_shell } => {
                (self.texts.is_empty() && !is_shell) || judged.since.elapsed() >= GUESS_AFTER
            }
            _ => false,
        };
        let first = self.judged.values().filter(is_due).map(|judged| judged.key).min_by_key(|key| key.start_ticks)?;
        let stat = proc.stat(first.pid).ok()??;
        if stat.key() != first || stat.is_zombie() || stat.ppid != self.around.agent || !entry.take_guessed(first) {
            return None;
        }
        self.judged.remove(&first.pid);
        let line = proc.dir().read_bytes(format!("{}/cmdline", first.pid)).unwrap_or_default();
        Some(self.found(proc, &stat, CommandLine(&line), true))
    }

    fn found(&self, proc: &ProcFs, stat: &Stat, line: CommandLine<'_>, is_guess: bool) -> Found {
        let is_scoped = line.is_systemd_run() || self.is_in_a_unit_of_its_own(proc, stat.pid);
        Found { stat: stat.clone(), is_scoped, is_guess, is_remainder: false }
    }

    fn is_in_a_unit_of_its_own(&self, proc: &ProcFs, pid: i32) -> bool {
        let is_scope = |path: &Option<String>| path.as_ref().is_some_and(|path| path.strip_suffix(".scope").is_some());
        let found = proc.membership(pid).ok().flatten();
        found.is_some_and(|found| found != self.around.is_in && (is_scope(&found.v2) || is_scope(&found.v1_memory)))
    }

    /// Whether it is in a box that the agent is not in: another process's job.
    fn is_boxed(&self, proc: &ProcFs, pid: i32) -> bool {
        let is_box = |path: &Option<String>| path.as_ref().is_some_and(|path| path.contains(BOX_PREFIX));
        let found = proc.membership(pid).ok().flatten();
        found.is_some_and(|found| found != self.around.is_in && (is_box(&found.v2) || is_box(&found.v1_memory)))
    }
}
