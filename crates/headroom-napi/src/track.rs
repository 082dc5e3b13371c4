//! Jobs whose shells another process starts, and jobs whose starter is gone.

use std::os::fd::IntoRawFd;
use std::path::Path;
use std::sync::Arc;

use headroom_core::boxing::BoxId;
use headroom_core::job::{Registration, resume};
use headroom_core::journal::RuntimeDir;
use headroom_core::proc::ProcFs;
use headroom_core::tracker::{TrackedCall as CoreCall, finish, track};
use napi_derive::napi;

use crate::error::{bad_argument, thrown};
use crate::job::{JobPlace, entrance};

/// A command that another process, the agent, is about to start.
#[napi(object, object_to_js = false)]
pub struct TrackedCall {
    /// The agent.
    pub agent_pid: i32,
    /// What the shell's command line will contain, the surest first; empty where nothing is known but that it is a
    /// Python program.
    pub texts: Vec<String>,
    /// Where it runs, for the record.
    pub cwd: String,
    /// Value to raise the job's `oom_score_adj` to.
    pub oom_score_adj: i32,
    /// A runtime directory (from `runtimeDirectory`) in which the job goes on record.
    pub runtime_dir: String,
    /// The command as it stands on record, secrets masked.
    pub command_text: String,
    /// The kind of work, as it stands on record.
    pub kind: String,
}

/// A box that waits for its shell, or why there is none.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct TrackedStart {
    /// The job's identity; `null` when no box could be made.
    pub id: Option<String>,
    /// A descriptor with one JSON line an event, now the caller's to close.
    pub events_fd: Option<i32>,
    /// Why there is no box.
    pub message: Option<String>,
    /// The job is not on record: why.
    pub record_problem: Option<String>,
}

/// Makes a box, and a thread that looks for the shell which belongs in it, moves it in and stays with it. The agent
/// may start its command when this has returned.
#[napi(catch_unwind)]
pub fn track_job(place: JobPlace, call: TrackedCall) -> napi::Result<TrackedStart> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    let (runtime, runtime_problem) = match RuntimeDir::at(Path::new(&call.runtime_dir)) {
        Ok(runtime) => (Some(Arc::new(runtime)), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let entrance = entrance(&proc, place, runtime.as_ref())?;
    let registration =
        runtime.map(|runtime| Registration { runtime, command: call.command_text, kind: call.kind, cwd: call.cwd });
    let core_call = CoreCall { agent_pid: call.agent_pid, texts: call.texts, oom_score_adj: call.oom_score_adj };
    Ok(match entrance.and_then(|entrance| track(core_call, entrance, registration.as_ref())) {
        Ok(tracked) => TrackedStart {
            id: Some(tracked.id.to_string()),
            events_fd: Some(tracked.events.into_raw_fd()),
            message: None,
            record_problem: runtime_problem.or_else(|| tracked.record_problem.map(|error| error.with_advice())),
        },
        Err(error) => TrackedStart {
            id: None,
            events_fd: None,
            message: Some(error.to_string()),
            record_problem: runtime_problem,
        },
    })
}

/// The agent's call is over: its shell is looked for no more. A job whose shell was found goes on.
#[napi(catch_unwind)]
pub fn finish_tracking(id: String) -> napi::Result<()> {
    finish(job_id(&id)?);
    Ok(())
}

/// Takes over a job whose starter is gone. Answers a descriptor with its event lines, the caller's to close; `null`
/// when there is no such job, or somebody looks after it.
#[napi(catch_unwind)]
pub fn resume_job(runtime_dir: String, id: String) -> napi::Result<Option<i32>> {
    let id = job_id(&id)?;
    let resumed = RuntimeDir::at(Path::new(&runtime_dir)).and_then(|runtime| resume(&Arc::new(runtime), id));
    resumed.map(|events| events.map(IntoRawFd::into_raw_fd)).map_err(|e| thrown(&e))
}

fn job_id(text: &str) -> napi::Result<BoxId> {
    BoxId::parse(text).ok_or_else(|| bad_argument(format!("{text:?} is no job")))
}
