//! A limit as the kernel writes it: a number of bytes, or none.

use std::fmt;

/// v1 has no word for «no limit»: it shows the largest page count times the page size.
const V1_UNLIMITED_BYTES: u64 = 1 << 62;

/// A memory or swap limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// No limit (`max` in v2, a huge number in v1).
    Max,
    /// So many bytes.
    Bytes(u64),
}

impl Limit {
    /// The number of bytes, `None` when there is no limit.
    #[must_use]
    pub fn as_bytes(self) -> Option<u64> {
        match self {
            Self::Max => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "max" => Some(Self::Max),
            number => match number.parse().ok()? {
                bytes if bytes >= V1_UNLIMITED_BYTES => Some(Self::Max),
                bytes => Some(Self::Bytes(bytes)),
            },
        }
    }
}

/// As v2 wants it; v1 takes `-1` for no limit.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}
