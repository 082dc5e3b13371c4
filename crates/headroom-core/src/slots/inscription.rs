//! What stands in a file: one line of JSON, for people and for status. Nothing is decided by it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use crate::proc::ProcessKey;

/// Longest line that is written or read, bytes.
const MAX_BYTES: u64 = 1 << 16;

/// Who is in a place.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Inscription {
    #[serde(flatten)]
    pub(super) process: ProcessKey,
    /// What its caller says of it, as it was given.
    #[serde(default)]
    pub(super) description: Option<String>,
}

impl Inscription {
    /// Replaces what stands in the file. Where the whole does not fit (a full disk) who it is may, and where
    /// that does not either, nothing stands there: never what an earlier holder left.
    pub(super) fn write(file: &File, process: ProcessKey, description: &str) -> io::Result<()> {
        let whole = Self { process, description: Some(description.to_owned()) };
        let written = whole.put(file);
        if written.is_err() && (Self { process, description: None }).put(file).is_err() {
            let _nothing_else_to_do = file.set_len(0);
        }
        written
    }

    /// Reads what stands in a file; `None` when it is not a whole line of ours.
    pub(super) fn read(file: &File) -> Option<Self> {
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        let end = text.iter().position(|byte| *byte == b'\n')?;
        serde_json::from_slice(text.get(..end)?).ok()
    }

    fn put(&self, file: &File) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        if line.len() as u64 > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Over what is there, then cut: a reader in between finds a whole line, and reads no further.
        file.write_all_at(&line, 0)?;
        file.set_len(line.len() as u64)
    }
}
