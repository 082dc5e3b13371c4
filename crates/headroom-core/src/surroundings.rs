//! What kind of machine this is: container, board, systemd, swap. Read from files alone, so tests use a folder.

use std::path::Path;

use crate::dir::Dir;
use crate::error::Result;

/// What is known of the machine around this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The kind of container: `docker`, `podman`, `lxc`, … or `container` where only that is known.
    pub container: Option<String>,
    /// The board's name as the firmware tells it, such as `Raspberry Pi 4 Model B Rev 1.4`.
    pub board: Option<String>,
    /// systemd is the first process (`sd_booted(3)`).
    pub is_systemd: bool,
    /// A swap device is compressed memory (zram).
    pub has_zram: bool,
}

impl Surroundings {
    /// Reads below a root, which is `/` for the running system.
    pub fn read(root: impl AsRef<Path>) -> Result<Self> {
        let root = Dir::open(root)?;
        let swaps = root.read_if_present("proc/swaps")?.unwrap_or_default();
        Ok(Self {
            container: container(&root),
            board: board(&root),
            is_systemd: root.open_dir("run/systemd/system").is_ok(),
            has_zram: swaps.lines().any(|line| line.starts_with("/dev/zram")),
        })
    }
}

/// systemd tells it to everybody, Docker and Podman leave a file; see `systemd-detect-virt(1)`.
fn container(root: &Dir) -> Option<String> {
    let text = |file: &str| root.read_if_present(file).ok().flatten();
    if let Some(kind) = text("run/systemd/container").and_then(|text| first_word(&text)) {
        return Some(kind);
    }
    if text("run/.containerenv").is_some() {
        return Some("podman".to_owned());
    }
    if text(".dockerenv").is_some() {
        return Some("docker".to_owned());
    }
    // Root alone may look, and it holds more than that: nothing but the kind is kept.
    let environment = root.read_bytes("proc/1/environ").ok()?;
    let kind = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"container="))?;
    first_word(&String::from_utf8_lossy(kind)).or_else(|| Some("container".to_owned()))
}

fn first_word(text: &str) -> Option<String> {
    text.split_ascii_whitespace().next().map(|word| word.chars().take(32).collect())
}

fn board(root: &Dir) -> Option<String> {
    let bytes = root.read_bytes("proc/device-tree/model").ok()?;
    let name = String::from_utf8_lossy(&bytes).trim_matches(['\0', '\n', ' ']).to_owned();
    (!name.is_empty()).then_some(name)
}
