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
}

/// A job's file, locked as long as this lives.
#[derive(Debug)]
pub struct Record {
    runtime: Arc<RuntimeDir>,
    facts: Facts,
    /// Keeps the lock; the newest file written.
    file: Option<File>,
}

const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

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
        };
        let mut record = Self { runtime, facts, file: None };
        record.write()?;
        Ok(record)
    }

    /// Takes over the record of a job whose starter is gone; `None` when it has none, or somebody looks after it.
    pub fn take_over(runtime: Arc<RuntimeDir>, proc: &ProcFs, id: BoxId) -> Result<Option<Self>> {
        let name = format!("{id}{ENDING}");
        let Some(mut file) = crate::dir::absent_as_none(runtime.open_file(&name, OFlags::RDWR))? else {
            return Ok(None);
        };
        if !lock_patiently(&file) || !runtime.is_current(&name, &file) {
            return Ok(None);
        }
        let facts = read(&mut file).map(|(_, facts)| facts).filter(|facts| facts.boot_id == boot_id(proc));
        Ok(facts.map(|facts| Self { runtime, facts, file: Some(file) }))
    }

    /// What is on record.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Notes the command's process. A job whose record cannot be written runs on all the same.
    pub fn set_root(&mut self, root: ProcessKey) {
        self.facts.root = Some(root);
        let _the_first_record_stays = self.write();
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

/// Somebody who only looks holds the lock for a moment; who looks after a job keeps it.
pub(crate) fn lock_patiently(file: &File) -> bool {
    (0..LOCK_TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(LOCK_PAUSE);
        }
        file.try_lock().is_ok()
    })
}

/// Reads one record; `None` when it is not one (cut short by a full disk, or of another release).
pub(crate) fn read(file: &mut File) -> Option<(BoxId, Facts)> {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::Read::take(file, 1 << 16), &mut text).ok()?;
    let facts: Facts = serde_json::from_str(&text).ok()?;
    Some((BoxId::parse(&facts.id)?, facts))
}
