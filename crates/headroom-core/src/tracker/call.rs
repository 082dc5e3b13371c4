//! What is known about a shell before it exists.

use crate::process::OomScore;

/// A command that the agent is about to start.
#[derive(Debug, Clone)]
pub struct TrackedCall {
    /// The process that will start it.
    pub agent_pid: i32,
    /// What its command line will contain, the surest first; empty where nothing is known but that it is a Python
    /// program.
    pub texts: Vec<String>,
    /// Value to raise the job's `oom_score_adj` to.
    pub oom_score_adj: i32,
}

impl TrackedCall {
    /// The score to raise a process with this one to; `None` when that would lower it.
    pub(super) fn score_for(&self, present: i32) -> Option<OomScore> {
        OomScore::raise(present, self.oom_score_adj)
    }
}

/// A text without what quoting adds or takes away: quotes, backslashes, white space. An agent puts a command inside
/// of other quotes, in a way that changes from release to release.
#[must_use]
pub fn squash(text: &str) -> String {
    text.chars().filter(|character| !matches!(character, '\'' | '"' | '\\') && !character.is_whitespace()).collect()
}
