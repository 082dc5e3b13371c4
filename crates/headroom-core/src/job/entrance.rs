//! How a job gets its box: one that is there, or one in systemd's pool, which is made while the child waits.

use std::sync::Arc;

use crate::boxing::{BoxId, JobBox, Limits};
use crate::error::Result;
use crate::job::spawn::{Command, SpawnError, Spawned, spawn, spawn_admitted};
use crate::journal::{Record, RuntimeDir};
use crate::proc::ProcFs;
use crate::systemd::Pool;

/// The way in.
#[derive(Debug)]
pub enum Entrance {
    /// A box that is there.
    Box(JobBox),
    /// A new box in a pool of systemd's.
    Pool {
        /// The pool, made when it is not there.
        pool: Pool,
        /// The job's identity.
        id: BoxId,
        /// The box's limits.
        limits: Limits,
    },
}

impl From<JobBox> for Entrance {
    fn from(job_box: JobBox) -> Self {
        Self::Box(job_box)
    }
}

/// What goes on record about a job.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Where.
    pub runtime: Arc<RuntimeDir>,
    /// The command, for people to read, secrets masked.
    pub command: String,
    /// The kind of work.
    pub kind: String,
    /// Where it runs.
    pub cwd: String,
}

impl Registration {
    fn register(&self, proc: &ProcFs, job_box: &JobBox) -> Result<Record> {
        Record::new(Arc::clone(&self.runtime), proc, job_box, &self.command, &self.kind, &self.cwd)
    }
}

/// A process in its box, on record where that was asked for.
pub(crate) struct Entered {
    pub(crate) spawned: Spawned,
    pub(crate) job_box: JobBox,
    pub(crate) record: Option<Result<Record>>,
}

impl Entrance {
    pub(crate) fn id(&self) -> BoxId {
        match self {
            Self::Box(job_box) => job_box.id(),
            Self::Pool { id, .. } => *id,
        }
    }

    /// Makes the box, and puts the job on record, for a command that somebody else is going to start.
    pub(crate) fn prepare(
        self,
        proc: &ProcFs,
        registration: Option<&Registration>,
    ) -> Result<(JobBox, Option<Result<Record>>)> {
        let job_box = match self {
            Self::Box(job_box) => job_box,
            Self::Pool { pool, id, limits } => pool.prepare(proc, id, limits)?,
        };
        let mut record = registration.map(|registration| registration.register(proc, &job_box));
        if let Some(Ok(record)) = &mut record {
            record.set_awaited(true);
        }
        Ok((job_box, record))
    }

    /// Starts the command inside. It goes on record before it runs, so that whatever happens to its
    /// starter from then on, somebody finds it.
    pub(crate) fn spawn(
        self,
        proc: &ProcFs,
        command: &Command,
        registration: Option<&Registration>,
    ) -> Result<Entered, SpawnError> {
        match self {
            Self::Box(job_box) => {
                let record = registration.map(|registration| registration.register(proc, &job_box));
                match spawn(command, &job_box) {
                    Ok(spawned) => Ok(Entered { spawned, job_box, record }),
                    Err(error) => {
                        let _nothing_is_inside = job_box.remove();
                        erase(record);
                        Err(error)
                    }
                }
            }
            Self::Pool { pool, id, limits } => {
                let mut record = None;
                let admitted = spawn_admitted(command, |pid| {
                    let job_box = pool.admit(proc, pid, id, limits)?;
                    record = registration.map(|registration| registration.register(proc, &job_box));
                    Ok(job_box)
                });
                match admitted {
                    Ok((spawned, job_box)) => Ok(Entered { spawned, job_box, record }),
                    Err(error) => {
                        erase(record);
                        Err(error)
                    }
                }
            }
        }
    }
}

fn erase(record: Option<Result<Record>>) {
    if let Some(Ok(record)) = record {
        record.erase();
    }
}
