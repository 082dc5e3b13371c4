//! One memory cgroup: limits, counters and life cycle. All reads are relative to an open directory, so
//! a cgroup that is removed and made anew under the same name is never mistaken for the old one.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cgroup::{Limit, Version};
use crate::dir::Dir;
use crate::error::{Error, Result};

/// How long a cgroup may stay busy after its last process ended (exits are asynchronous).
const REMOVE_PATIENCE: Duration = Duration::from_millis(200);

/// So much at once is asked of a limit before the kernel gives up instead of killing (`PAGE_ALLOC_COSTLY_ORDER`).
const LARGEST_CHARGE_PAGES: u64 = 8;

/// Where a peak was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PeakSource {
    /// v2 `memory.peak` (kernel 5.19 and later).
    #[serde(rename = "memory.peak")]
    MemoryPeak,
    /// v1 `memory.max_usage_in_bytes`.
    #[serde(rename = "max_usage")]
    MaxUsage,
    /// The largest sample that was taken.
    #[serde(rename = "sampled")]
    Sampled,
}

impl PeakSource {
    /// The word used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryPeak => "memory.peak",
            Self::MaxUsage => "max_usage",
            Self::Sampled => "sampled",
        }
    }
}

/// The most memory that was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Peak {
    /// So many bytes.
    pub bytes: u64,
    /// Where the number comes from.
    pub source: PeakSource,
}

/// An open memory cgroup.
#[derive(Debug)]
pub struct Cgroup {
    dir: Dir,
    version: Version,
}

impl Cgroup {
    /// Opens an existing cgroup directory.
    pub fn open(path: impl AsRef<Path>, version: Version) -> Result<Self> {
        Ok(Self { dir: Dir::open(path)?, version })
    }

    /// Makes a cgroup below this one and opens it.
    pub fn make_child(&self, name: &str) -> Result<Self> {
        self.dir.make_dir(name)?;
        Ok(Self { dir: self.dir.open_dir(name)?, version: self.version })
    }

    /// A second handle on this very cgroup.
    pub fn open_again(&self) -> Result<Self> {
        Ok(Self { dir: self.dir.open_dir(".")?, version: self.version })
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Which interface the files have.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The directory itself.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The memory limit; `None` where there is none by nature (the v2 root, a cgroup without controller).
    pub fn memory_limit(&self) -> Result<Option<Limit>> {
        self.limit(self.name("memory.limit_in_bytes", "memory.max"))
    }

    /// The most that may be swapped out; `None` without swap accounting. v1 limits memory and swap
    /// together, so there it is the difference.
    pub fn swap_limit(&self) -> Result<Option<Limit>> {
        match self.version {
            Version::V2 => self.limit("memory.swap.max"),
            Version::V1 => {
                let (memory, sum) = (self.memory_limit()?, self.limit("memory.memsw.limit_in_bytes")?);
                Ok(match (memory, sum) {
                    (Some(Limit::Bytes(memory)), Some(Limit::Bytes(sum))) => {
                        Some(Limit::Bytes(sum.saturating_sub(memory)))
                    }
                    (_, sum) => sum.map(|_| Limit::Max),
                })
            }
        }
    }

    /// Sets memory and swap limits. Where the kernel does not account swap only memory is set and the
    /// answer is `false`.
    pub fn set_limits(&self, memory_bytes: u64, swap: Limit) -> Result<bool> {
        match self.version {
            Version::V2 => {
                self.dir.write("memory.max", &memory_bytes.to_string())?;
                self.write_if_present("memory.swap.max", &swap.to_string())
            }
            Version::V1 => {
                // Old kernels count a child in its parent only when asked to; new ones refuse the write
                // because they always do.
                let _always_on_since_5_11 = self.dir.write("memory.use_hierarchy", "1");
                self.dir.write("memory.limit_in_bytes", &memory_bytes.to_string())?;
                let sum = match swap {
                    Limit::Max => "-1".to_owned(),
                    Limit::Bytes(swap_bytes) => memory_bytes.saturating_add(swap_bytes).to_string(),
                };
                self.write_if_present("memory.memsw.limit_in_bytes", &sum)
            }
        }
    }

    /// Memory in use now, page cache included, bytes.
    pub fn usage_bytes(&self) -> Result<Option<u64>> {
        self.number(self.name("memory.usage_in_bytes", "memory.current"))
    }

    /// Swap in use now, bytes.
    pub fn swap_usage_bytes(&self) -> Result<Option<u64>> {
        match self.version {
            Version::V2 => self.number("memory.swap.current"),
            Version::V1 => Ok(self
                .number("memory.memsw.usage_in_bytes")?
                .zip(self.usage_bytes()?)
                .map(|(sum, memory)| sum.saturating_sub(memory))),
        }
    }

    /// The part of the use that the kernel can drop at once: inactive file cache and reclaimable slab.
    pub fn droppable_bytes(&self) -> Result<u64> {
        let names: &[&str] = match self.version {
            Version::V1 => &["total_inactive_file"],
            Version::V2 => &["inactive_file", "slab_reclaimable"],
        };
        self.keyed("memory.stat", names)
    }

    /// The kernel's own record of the most memory in use, where it keeps one.
    pub fn peak(&self) -> Result<Option<Peak>> {
        let (file, source) = match self.version {
            Version::V1 => ("memory.max_usage_in_bytes", PeakSource::MaxUsage),
            Version::V2 => ("memory.peak", PeakSource::MemoryPeak),
        };
        Ok(self.number(file)?.map(|bytes| Peak { bytes, source }))
    }

    /// How many processes the kernel has killed for lack of memory, in this cgroup and below. v2 counts
    /// below by itself; v1 counts each cgroup alone.
    pub fn oom_kills(&self) -> Result<u64> {
        match self.version {
            Version::V2 => self.keyed("memory.events", &["oom_kill"]),
            Version::V1 => {
                let mut sum = self.keyed("memory.oom_control", &["oom_kill"])?;
                for child in self.children()? {
                    sum += child.oom_kills()?;
                }
                Ok(sum)
            }
        }
    }

    /// How many processes of this very cgroup, not of those below it, the kernel has killed.
    pub fn own_oom_kills(&self) -> Result<u64> {
        self.keyed(self.name("memory.oom_control", "memory.events.local"), &["oom_kill"])
    }

    /// Whether this very cgroup's limit was reached with nothing left to reclaim. v1 keeps no such event;
    /// there the count of refused charges stands for it. The sum with swap is charged first, so where that may be
    /// no higher than memory alone (a job without swap) only its peak tells: newer kernels do not count there.
    pub fn limit_was_hit(&self) -> Result<bool> {
        match self.version {
            Version::V1 => {
                if self.number("memory.failcnt")?.is_some_and(|count| count > 0) {
                    return Ok(true);
                }
                let most = self.number("memory.memsw.max_usage_in_bytes")?;
                let limit = self.number("memory.memsw.limit_in_bytes")?;
                let slack = LARGEST_CHARGE_PAGES * rustix::param::page_size() as u64;
                Ok(most.zip(limit).is_some_and(|(most, limit)| most.saturating_add(slack) > limit))
            }
            Version::V2 => Ok(self.keyed("memory.events.local", &["oom"])? > 0),
        }
    }

    /// A handle through which a process enters: whoever writes `0` to it is in. See cgroups(7).
    pub fn entry(&self) -> Result<OwnedFd> {
        self.dir.open_for_writing("cgroup.procs")
    }

    /// Moves a whole process into this cgroup.
    pub fn enter(&self, pid: i32) -> Result<()> {
        self.dir.write("cgroup.procs", &pid.to_string())
    }

    /// The cgroups directly below this one. One that is removed meanwhile is left out.
    pub fn children(&self) -> Result<Vec<Self>> {
        let open = |name: &_| Some(Self { dir: self.dir.open_dir(name).ok()?, version: self.version });
        Ok(self.dir.dirs()?.iter().filter_map(open).collect())
    }

    /// Removes a child and everything below it. `false` when a process is still inside.
    pub fn remove_child(&self, name: impl AsRef<OsStr>) -> Result<bool> {
        let name = PathBuf::from(name.as_ref());
        let deadline = Instant::now() + REMOVE_PATIENCE;
        loop {
            match self.remove_tree(&name) {
                Ok(()) => return Ok(true),
                Err(error) if error.errno() != Some(libc::EBUSY) => return Err(error),
                Err(_) => {}
            }
            if self.child_is_populated(&name)? || Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn remove_tree(&self, name: &Path) -> Result<()> {
        if self.dir.remove_dir(name).is_ok() {
            return Ok(());
        }
        if let Some(child) = crate::dir::absent_as_none(self.dir.open_dir(name))? {
            for below in child.dirs()? {
                Self { dir: self.dir.open_dir(name)?, version: self.version }.remove_tree(Path::new(&below))?;
            }
        }
        self.dir.remove_dir(name)
    }

    fn child_is_populated(&self, name: &Path) -> Result<bool> {
        let Some(dir) = crate::dir::absent_as_none(self.dir.open_dir(name))? else { return Ok(false) };
        Ok(!Self { dir, version: self.version }.pids()?.is_empty())
    }

    fn name(&self, v1: &'static str, v2: &'static str) -> &'static str {
        match self.version {
            Version::V1 => v1,
            Version::V2 => v2,
        }
    }

    fn write_if_present(&self, file: &str, value: &str) -> Result<bool> {
        Ok(crate::dir::absent_as_none(self.dir.write(file, value))?.is_some())
    }

    fn limit(&self, file: &str) -> Result<Option<Limit>> {
        let Some(text) = self.dir.read_if_present(file)? else { return Ok(None) };
        let parsed = Limit::parse(&text);
        parsed.map(Some).ok_or_else(|| Error::parse(self.path().join(file), text.trim(), "a number of bytes or `max`"))
    }

    fn number(&self, file: &str) -> Result<Option<u64>> {
        let Some(text) = self.dir.read_if_present(file)? else { return Ok(None) };
        let parsed = text.trim().parse();
        parsed.map(Some).map_err(|_| Error::parse(self.path().join(file), text.trim(), "a number of bytes"))
    }

    /// Sum of the named values of a `NAME VALUE` file; a name that this kernel lacks counts 0.
    fn keyed(&self, file: &str, names: &[&str]) -> Result<u64> {
        let text = self.dir.read_if_present(file)?.unwrap_or_default();
        let mut sum = 0;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(' ') else { continue };
            if names.contains(&key) {
                let number = value.trim().parse::<u64>();
                let number = number.map_err(|_| Error::parse(self.path().join(file), line, "a name and a number"))?;
                sum = u64::saturating_add(sum, number);
            }
        }
        Ok(sum)
    }
}
