//! `oom_score_adj`: which process the kernel prefers to kill when the whole machine is out of memory.
//! Only ever raised: lowering needs a privilege, and would protect a job against its agent.

use crate::error::{Error, Result};
use crate::proc::ProcFs;

/// An `oom_score_adj` value, −1000 to 1000, ready to be written by a child between fork and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OomScore {
    text: [u8; 5],
    length: usize,
}

impl OomScore {
    /// The value to raise a child to; `None` when that would lower it.
    #[must_use]
    pub fn raise(own: i32, wanted: i32) -> Option<Self> {
        let wanted = wanted.clamp(-1000, 1000);
        if wanted <= own {
            return None;
        }
        let mut text = [0; 5];
        let digits = wanted.to_string();
        let length = digits.len().min(text.len());
        text.get_mut(..length)?.copy_from_slice(digits.as_bytes().get(..length)?);
        Some(Self { text, length })
    }

    /// The digits as the kernel reads them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

/// This process's own value.
pub fn own_oom_score_adj(proc: &ProcFs) -> Result<i32> {
    let text = proc.dir().read("self/oom_score_adj")?;
    text.trim().parse().map_err(|_| Error::parse(proc.dir().path().join("self/oom_score_adj"), &text, "-1000 to 1000"))
}

/// Raises the value of a running process; one that is as high already stays. Best effort: a job with a low score is
/// still held by its box.
pub(crate) fn raise_oom_score_adj(proc: &ProcFs, pid: i32, wanted: i32) {
    let file = format!("{pid}/oom_score_adj");
    let Ok(text) = proc.dir().read(&file) else { return };
    let raised = text.trim().parse().ok().and_then(|own| OomScore::raise(own, wanted));
    if let Some(score) = raised.as_ref().and_then(|score| std::str::from_utf8(score.as_bytes()).ok()) {
        let _best_effort = proc.dir().write(&file, score);
    }
}
