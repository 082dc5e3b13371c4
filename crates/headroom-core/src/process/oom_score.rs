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
    parse(proc, "self", &text)
}

/// A process's value; `None` when it is gone.
pub fn oom_score_adj(proc: &ProcFs, pid: i32) -> Result<Option<i32>> {
    let text = proc.dir().read_if_present(format!("{pid}/oom_score_adj"))?;
    text.map(|text| parse(proc, &pid.to_string(), &text)).transpose()
}

fn parse(proc: &ProcFs, process: &str, text: &str) -> Result<i32> {
    let file = || proc.dir().path().join(process).join("oom_score_adj");
    text.trim().parse().map_err(|_| Error::parse(file(), text, "-1000 to 1000"))
}
