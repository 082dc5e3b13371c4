//! /proc/self/mountinfo: where hierarchies are mounted, and which part of them. See proc(5).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::proc::ProcFs;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The folder of the file system that forms the root of this mount.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Type, such as `cgroup2`.
    pub fs_type: String,
    /// Per-mount options, such as `ro`.
    pub options: Vec<String>,
    /// Options of the file system itself; for cgroup v1 the controllers stand here.
    pub super_options: Vec<String>,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let before: Vec<&str> = before.split(' ').collect();
        let mut after = after.split(' ');
        let list = |text: &str| text.split(',').map(str::to_owned).collect();
        Some(Self {
            root: unescape(before.get(3)?),
            mount_point: unescape(before.get(4)?),
            options: list(before.get(5)?),
            fs_type: after.next()?.to_owned(),
            super_options: after.nth(1).map(list).unwrap_or_default(),
        })
    }
}

impl ProcFs {
    /// The mounts that this process sees, in the order of the file.
    pub fn mounts(&self) -> Result<Vec<Mount>> {
        let bytes = self.dir.read_bytes("self/mountinfo")?;
        let text = String::from_utf8_lossy(&bytes);
        let path = self.dir.path().join("self/mountinfo");
        text.lines().map(|line| Mount::parse(line).ok_or_else(|| Error::parse(&path, line, "a mount"))).collect()
    }
}

/// Undoes the octal escapes of space, tab, line feed and backslash.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|digits| first == b'\\' && digits.iter().all(u8::is_ascii_digit));
        let value = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        if let Some(value) = value {
            bytes.push(value);
            rest = tail.get(3..).unwrap_or_default();
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}
