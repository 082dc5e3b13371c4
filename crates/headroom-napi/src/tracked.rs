//! Boxing commands that another process starts.

use std::os::fd::IntoRawFd;

use headroom_core::boxing::BoxId;
use headroom_core::job::Supervision;
use headroom_core::proc::ProcFs;
use headroom_core::tracker::{TrackError, TrackedCall, finish, track};
use napi_derive::napi;

use crate::error::{bad_argument, thrown};
use crate::job::{JobPlace, JobStart, JobSupervision, OnRecord, entrance, on_record};

/// A command that the agent is about to start.
#[napi(object, object_to_js = false, use_nullable = true)]
pub struct AgentCall {
    /// The process that will start it, of this user.
    pub agent_pid: i32,
    /// What its command line may contain: the text as it was, as it was changed. Empty when that cannot be known.
    pub texts: Vec<String>,
    /// Where it will run, as it stands on record.
    pub cwd: String,
    /// Value to raise the `oom_score_adj` of the job's processes to; never lowered.
    pub oom_score_adj: i32,
}

/// Makes a box and looks for the call's command from then on: have it started after this has returned. Its
/// process is `null` here and comes with the event `entered`. `failure` is `box` (another mode may do) or
/// `failed` (the agent is gone, or another user's).
#[napi(catch_unwind)]
pub fn track_job(place: JobPlace, call: AgentCall, supervision: JobSupervision) -> napi::Result<JobStart> {
    let proc = ProcFs::system().map_err(|e| thrown(&e))?;
    let OnRecord { registration, problem } = on_record(supervision, call.cwd);
    let runtime = registration.as_ref().map(|registration| &registration.runtime);
    let entrance = match entrance(&proc, place, runtime)? {
        Ok(entrance) => entrance,
        Err(error) => return Ok(JobStart::failed("box", error.to_string())),
    };
    let call = TrackedCall { agent: call.agent_pid, texts: call.texts, oom_score_adj: call.oom_score_adj };
    let supervision = Supervision { registration, ..Supervision::default() };
    Ok(match track(call, entrance, supervision) {
        Ok(job) => JobStart {
            pid: None,
            id: Some(job.id.to_string()),
            cgroup: job.cgroup.map(|path| path.display().to_string()),
            events_fd: Some(job.events.into_raw_fd()),
            pipe_fds: Vec::new(),
            failure: None,
            message: None,
            record_problem: problem.or_else(|| job.record_problem.map(|error| error.with_advice())),
        },
        Err(TrackError::Box(error)) => JobStart::failed("box", error.to_string()),
        Err(TrackError::Other(error)) => JobStart::failed("failed", error.to_string()),
    })
}

/// Tells a tracked job of this process that its call has returned: nothing more is started for it. A command that
/// runs on is watched to its end. `false` when the job is not known here, or over.
#[napi(catch_unwind)]
pub fn finish_tracked_job(id: String) -> napi::Result<bool> {
    let id = BoxId::parse(&id).ok_or_else(|| bad_argument(format!("{id:?} is no job")))?;
    Ok(finish(id))
}
