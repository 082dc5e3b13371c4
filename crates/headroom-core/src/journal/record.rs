//! One job's file. Written whole under another name, locked, then renamed: a reader sees a finished file
//! of a locked job or none.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::boxing::{BoxId, JobBox, Mode};
use crate::error::{Error, Result};
use crate::journal::{Mark, RuntimeDir};
use crate::proc::{ProcFs, ProcessKey, boot_ms};

/// What is on record about a job.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Facts {
    /// Identity, as in the cgroup's name.
    pub id: String,
    /// How it is held.
    pub mode: Mode,
    /// The cgroup that carries its limits.
    pub cgroup: Option<PathBuf>,
    /// Memory cap, bytes.
    pub memory_bytes: u64,
    /// Swap beyond it, bytes; `None` is unlimited.
    pub swap_bytes: Option<u64>,
    /// What runs, for people to read; secrets are masked by whoever gives it.
    pub command: String,
    /// What kind of work it is.
    pub kind: String,
    /// Where it runs.
    pub cwd: String,
    /// Who started it.
    pub owner: ProcessKey,
    /// The command's own process, once it runs.
    pub root: Option<ProcessKey>,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Start by a clock that nobody sets, milliseconds since boot: for the order of jobs.
    #[serde(default)]
    pub started_boot_ms: u64,
    /// Which boot of the machine: process numbers of another one mean nothing.
    pub boot_id: String,
    /// The command has ended and processes of it still run.
    pub left: bool,
    /// Somebody else is to start the command, and it has not been seen yet.
    #[serde(default)]
    pub is_awaited: bool,
    /// Sessions that are the job's, by their leaders, where its processes do not carry its mark.
    #[serde(default)]
    pub sessions: Vec<ProcessKey>,
}

/// A job's file, locked as long as this lives.
#[derive(Debug)]
pub struct Record {
    runtime: Arc<RuntimeDir>,
    facts: Facts,
    /// Keeps the lock; the newest file written.
    file: Option<File>,
}

pub(crate) const ENDING: &str = ".job.json";

pub(crate) fn boot_id(proc: &ProcFs) -> String {
    let text = proc.dir().read_if_present("sys/kernel/random/boot_id").ok().flatten();
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

impl Record {
    /// Puts a job on record.
    pub fn new(
        runtime: Arc<RuntimeDir>,
        proc: &ProcFs,
        job_box: &JobBox,
        command: &str,
        kind: &str,
        cwd: &str,
    ) -> Result<Self> {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let facts = Facts {
            id: job_box.id().to_string(),
            mode: job_box.mode(),
            cgroup: job_box.cgroup_path(),
            memory_bytes: job_box.limits().memory_bytes,
            swap_bytes: job_box.limits().swap.as_bytes(),
            command: command.to_owned(),
            kind: kind.to_owned(),
            cwd: cwd.to_owned(),
            owner: job_box.id().owner,
            root: None,
            started_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            started_boot_ms: boot_ms(),
            boot_id: boot_id(proc),
            left: false,
            is_awaited: false,
            sessions: Vec::new(),
        };
        let mut record = Self { runtime, facts, file: None };
        record.write()?;
        Ok(record)
    }

    /// Notes the command's process. A job whose record cannot be written runs on all the same.
    pub fn set_root(&mut self, root: ProcessKey) {
        self.facts.root = Some(root);
        let _the_first_record_stays = self.write();
    }

    /// The command's process as noted.
    #[must_use]
    pub fn root(&self) -> Option<ProcessKey> {
        self.facts.root
    }

    /// Notes whether the command is still to be seen. Somebody else starts it.
    pub fn set_awaited(&mut self, is_awaited: bool) {
        self.facts.is_awaited = is_awaited;
        let _the_first_record_stays = self.write();
    }

    /// Notes a command that somebody else started, and the sessions of its processes.
    pub fn set_found(&mut self, root: ProcessKey, sessions: Vec<ProcessKey>) {
        if self.facts.root != Some(root) || self.facts.sessions != sessions {
            self.facts.root = Some(root);
            self.facts.sessions = sessions;
            self.facts.is_awaited = false;
            let _the_first_record_stays = self.write();
        }
    }

    /// What the watchdog did with this job, if anything.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        Mark::read(&self.runtime, BoxId::parse(&self.facts.id)?)
    }

    /// The job is over and its box removed.
    pub fn erase(self) {
        if let Some(id) = BoxId::parse(&self.facts.id) {
            Mark::erase(&self.runtime, id);
        }
        let _swept_later_if_it_fails = self.runtime.unlink(&self.name());
    }

    /// The command is over, processes of it are not.
    pub fn keep_as_left(mut self) {
        self.facts.left = true;
        let _the_first_record_stays = self.write();
    }

    fn name(&self) -> String {
        format!("{}{ENDING}", self.facts.id)
    }

    fn write(&mut self) -> Result<()> {
        let temporary = format!("{}.new", self.facts.id);
        let path = self.runtime.path().join(&temporary);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = self.runtime.open_file(&temporary, flags)?;
        let written = file
            .lock()
            .and_then(|()| serde_json::to_vec(&self.facts).map_err(std::io::Error::from))
            .and_then(|bytes| file.write_all(&bytes));
        if let Err(error) = written {
            let _nothing_else_to_do = self.runtime.unlink(&temporary);
            return Err(Error::io(path, error));
        }
        self.runtime.rename(&temporary, &self.name())?;
        self.file = Some(file);
        Ok(())
    }
}

/// Reads one record; `None` when it is not one (cut short by a full disk, or of another release).
pub(crate) fn read(file: &mut File) -> Option<(BoxId, Facts)> {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::Read::take(file, 1 << 16), &mut text).ok()?;
    let facts: Facts = serde_json::from_str(&text).ok()?;
    Some((BoxId::parse(&facts.id)?, facts))
}
