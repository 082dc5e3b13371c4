//! Finds the directories of this process's own cgroups. Mount points are taken from mountinfo, never
//! guessed: a container may show only a part of the tree, at any place.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::proc::{Membership, Mount, ProcFs};

/// Which interface a hierarchy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// Files such as `memory.limit_in_bytes`.
    V1,
    /// Files such as `memory.max`.
    V2,
}

/// Where this process sits in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which interface the files there have.
    pub version: Version,
    /// The topmost directory that can be seen.
    pub mount_point: PathBuf,
    /// The directory of this process's cgroup.
    pub own: PathBuf,
    /// Mounted read-only, as containers do.
    pub read_only: bool,
}

impl Place {
    /// The own directory and every one above it up to the mount point, nearest first.
    pub fn own_and_above(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.own.ancestors().take_while(|dir| dir.starts_with(&self.mount_point)).map(Path::to_path_buf)
    }
}

/// The hierarchies that matter for memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hierarchies {
    /// The unified hierarchy, with or without a memory controller.
    pub v2: Option<Place>,
    /// The v1 hierarchy that has the memory controller.
    pub v1_memory: Option<Place>,
}

impl Hierarchies {
    /// Finds the places of this process.
    pub fn of_self(proc: &ProcFs) -> Result<Self> {
        Self::of(proc, proc.own_membership()?)
    }

    /// Finds the places that a membership names, as far as they can be seen from here.
    pub fn of(proc: &ProcFs, membership: Membership) -> Result<Self> {
        let mounts = proc.mounts()?;
        let is_v1_memory =
            |mount: &&Mount| mount.fs_type == "cgroup" && mount.super_options.iter().any(|option| option == "memory");
        let v1 = mounts.iter().rev().filter(is_v1_memory);
        let v2 = mounts.iter().rev().filter(|mount| mount.fs_type == "cgroup2");
        Ok(Self {
            v1_memory: membership.v1_memory.and_then(|path| place(v1, Version::V1, &path)),
            v2: membership.v2.and_then(|path| place(v2, Version::V2, &path)),
        })
    }
}

/// The newest mount in which the path can be reached. A mount that another one covers, or that shows a
/// different part of the tree, does not count.
fn place<'a>(mut newest_first: impl Iterator<Item = &'a Mount>, version: Version, path: &str) -> Option<Place> {
    newest_first.find_map(|mount| {
        let below = Path::new(path).strip_prefix(&mount.root).ok()?;
        // `/..` means: outside of this cgroup namespace.
        if below.components().any(|part| part.as_os_str() == "..") {
            return None;
        }
        let own = if below.as_os_str().is_empty() { mount.mount_point.clone() } else { mount.mount_point.join(below) };
        own.join("cgroup.procs").exists().then(|| Place {
            version,
            mount_point: mount.mount_point.clone(),
            own,
            read_only: mount.options.iter().any(|option| option == "ro"),
        })
    })
}
