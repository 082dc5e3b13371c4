//! The ways to hold a job's memory, best first.

use std::fmt;
use std::str::FromStr;

/// How a job is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A leaf below a pool unit of the user's systemd manager.
    SystemdUser,
    /// The same on the system manager, for root.
    SystemdSystem,
    /// A writable cgroup v2 directory with the memory controller.
    Cgroup2,
    /// A writable cgroup v1 memory hierarchy.
    Cgroup1,
    /// No kernel limit: headroom samples the job and kills at the cap.
    Userspace,
    /// Nothing holds the job.
    Off,
}

impl Mode {
    /// Every mode, best first.
    pub const ALL: [Self; 6] =
        [Self::SystemdUser, Self::SystemdSystem, Self::Cgroup2, Self::Cgroup1, Self::Userspace, Self::Off];

    /// The word used in settings, reports and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SystemdUser => "systemd-user",
            Self::SystemdSystem => "systemd-system",
            Self::Cgroup2 => "cgroup2",
            Self::Cgroup1 => "cgroup1",
            Self::Userspace => "userspace",
            Self::Off => "off",
        }
    }

    /// Whether a kernel memory limit holds the job.
    #[must_use]
    pub fn is_kernel_limit(self) -> bool {
        !matches!(self, Self::Userspace | Self::Off)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word).ok_or_else(|| format!("unknown mode {word:?}"))
    }
}
