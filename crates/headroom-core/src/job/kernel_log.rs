//! Who was killed, from the kernel's own log. Only root (or `CAP_SYSLOG`) may read it on most systems;
//! without it victims stay unknown or are told from the last sample.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, SeekFrom};

use crate::job::Victim;

/// /dev/kmsg from a moment on. See the kernel's Documentation/ABI/testing/dev-kmsg.
#[derive(Debug)]
pub(crate) struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Opens the log at its present end; `None` where that is not allowed.
    pub(crate) fn from_now() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd: OwnedFd = rustix::fs::open("/dev/kmsg", flags, Mode::empty()).ok()?;
        rustix::fs::seek(&fd, SeekFrom::End(0)).ok()?;
        Some(Self { file: File::from(fd) })
    }

    /// The processes killed since for lack of memory in the cgroup of this name, and those among `members`.
    pub(crate) fn victims_in(&mut self, cgroup_name: &str, members: &HashSet<i32>) -> Vec<Victim> {
        let mut text = String::new();
        let mut record = [0_u8; 8192];
        // One read is one record. EPIPE: records were overwritten before they were read; go on.
        loop {
            match self.file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => text.push_str(&String::from_utf8_lossy(record.get(..length).unwrap_or_default())),
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        parse_victims(&text, cgroup_name, members)
    }
}

/// The kernel writes two lines for a kill: `oom-kill:…,oom_memcg=PATH,…,pid=N,…`, then
/// `Memory cgroup out of memory: Killed process N (NAME) …, anon-rss:12kB, file-rss:…, shmem-rss:…`. It
/// leaves the first one out when there are many in a short time, so known members count without it.
fn parse_victims(text: &str, cgroup_name: &str, members: &HashSet<i32>) -> Vec<Victim> {
    let mut ours = members.clone();
    let mut victims = Vec::new();
    for line in text.lines() {
        if line.contains("oom-kill:") && line.split([',', '/']).any(|part| part == cgroup_name) {
            ours.extend(line.split(',').find_map(|part| part.strip_prefix("pid=")?.parse::<i32>().ok()));
        } else if let Some((_, rest)) = line.split_once("Killed process ") {
            victims.extend(parse_killed(rest).filter(|victim: &Victim| ours.contains(&victim.pid)));
        }
    }
    victims
}

fn parse_killed(rest: &str) -> Option<Victim> {
    let (pid, rest) = rest.split_once(" (")?;
    let (name, sizes) = rest.rsplit_once(") ").or_else(|| rest.rsplit_once("), "))?;
    let kib = |key: &str| -> Option<u64> {
        sizes.split(", ").find_map(|part| part.trim().strip_prefix(key)?.strip_suffix("kB")?.parse().ok())
    };
    let rss_kib: u64 = ["anon-rss:", "file-rss:", "shmem-rss:"].into_iter().filter_map(kib).sum();
    Some(Victim { pid: pid.parse().ok()?, name: name.to_owned(), rss_bytes: rss_kib * 1024 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
3,100,5,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a/headroom-job-1-2-3,task_memcg=/a/headroom-job-1-2-3/job,task=node,pid=77,uid=0
3,101,6,-;Memory cgroup out of memory: Killed process 77 (node) total-vm:900kB, anon-rss:300kB, file-rss:20kB, shmem-rss:4kB, UID:0 pgtables:1kB oom_score_adj:900
3,102,7,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a/headroom-job-1-2-33,task=sh,pid=78,uid=0
3,103,8,-;Memory cgroup out of memory: Killed process 78 (sh) total-vm:900kB, anon-rss:300kB, file-rss:0kB, shmem-rss:0kB
";

    #[test]
    fn only_kills_in_the_named_cgroup_count() {
        let victims = parse_victims(LOG, "headroom-job-1-2-3", &HashSet::new());
        assert_eq!(victims, [Victim { pid: 77, name: "node".to_owned(), rss_bytes: 324 * 1024 }]);
    }

    #[test]
    fn a_known_member_counts_without_the_line_that_names_its_cgroup() {
        let log = "3,1,2,-;Memory cgroup out of memory: Killed process 9 (w) total-vm:1kB, anon-rss:5kB";
        assert_eq!(parse_victims(log, "headroom-job-1-2-3", &HashSet::from([9])).len(), 1);
        assert_eq!(parse_victims(log, "headroom-job-1-2-3", &HashSet::from([8])).len(), 0);
    }

    #[test]
    fn a_name_with_parentheses_is_read_whole() {
        let victim = parse_killed("9 (a) (b) total-vm:1kB, anon-rss:2kB").unwrap();
        assert_eq!((victim.name.as_str(), victim.rss_bytes), ("a) (b", 2048));
    }

    #[test]
    fn lines_of_another_shape_are_passed_over() {
        assert_eq!(parse_victims("Killed process x (y) z\noom-kill:pid=\n", "headroom-job-1-2-3", &HashSet::new()), []);
    }
}
