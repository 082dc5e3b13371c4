//! The processes of a job as they are found from outside: by the cgroup where there is one, else by
//! descent from the job's first process and by the mark in their environment, which survives a parent
//! that has ended.

use std::collections::{HashMap, HashSet};

use crate::boxing::{BoxId, JobBox};
use crate::job::LeftProcess;
use crate::job::sessions::Sessions;
use crate::proc::{Membership, ProcFs, ProcessKey, ProcessTree, Stat, descendants_of};

/// Every process of a job has this variable, with the job's identity as value.
pub const JOB_VARIABLE: &str = "HEADROOM_JOB_ID";

/// `NAME=value` as it stands in the environment of a job's processes.
pub(crate) fn job_mark(id: BoxId) -> String {
    format!("{JOB_VARIABLE}={id}")
}

/// The known processes of one job.
#[derive(Debug)]
pub(crate) struct Watched {
    mark: String,
    members: HashMap<i32, ProcessKey>,
    /// Processes that were looked at and are not the job's.
    strangers: HashSet<ProcessKey>,
    /// Members that were once found outside the box.
    escaped: HashSet<ProcessKey>,
    /// This process inherits the job's orphans: whatever is its child, but for these, is the job's.
    orphans: Option<Inheritance>,
    /// Sessions that are the job's, by their leaders; for jobs whose processes do not carry the mark.
    sessions: Option<Sessions>,
}

#[derive(Debug)]
struct Inheritance {
    own_pid: i32,
    not_the_jobs: Vec<i32>,
}

impl Watched {
    /// Starts from the job's first process, if it is known.
    pub(crate) fn new(id: BoxId, root: Option<ProcessKey>) -> Self {
        let members = root.into_iter().map(|key| (key.pid, key)).collect();
        let (strangers, escaped) = (HashSet::new(), HashSet::new());
        Self { mark: job_mark(id), members, strangers, escaped, orphans: None, sessions: None }
    }

    /// Starts from what is on record.
    pub(crate) fn on_record(proc: &ProcFs, id: BoxId, root: Option<ProcessKey>, sessions: &[ProcessKey]) -> Self {
        let mut watched = Self::new(id, root.filter(|key| proc.is_alive(*key)));
        if !sessions.is_empty() {
            watched.sessions = Some(Sessions::of(sessions));
        }
        watched
    }

    /// Counts sessions as the job's too that its processes lead: somebody else started it, and its processes
    /// do not carry the mark.
    pub(crate) fn follow_sessions(&mut self) {
        self.sessions.get_or_insert_default();
    }

    /// Counts the session of a process as the job's, whose leader was never seen.
    pub(crate) fn follow_session_of(&mut self, stat: &Stat) {
        let leader = ProcessKey { pid: stat.session, start_ticks: stat.start_ticks };
        self.sessions.get_or_insert_default().add(leader);
    }

    /// The sessions that are the job's, by their leaders.
    pub(crate) fn sessions(&self) -> Vec<ProcessKey> {
        self.sessions.as_ref().map(Sessions::leaders).unwrap_or_default()
    }

    /// Adds a process that is known to be the job's.
    pub(crate) fn add(&mut self, stat: &Stat) {
        self.strangers.remove(&stat.key());
        self.members.insert(stat.pid, stat.key());
        if let Some(sessions) = &mut self.sessions {
            sessions.learn(stat);
        }
    }

    /// Whether exactly this process is known to be the job's.
    pub(crate) fn has(&self, key: ProcessKey) -> bool {
        self.members.get(&key.pid) == Some(&key)
    }

    /// Whether a member has, or had, this number.
    pub(crate) fn knows(&self, pid: i32) -> bool {
        self.members.contains_key(&pid)
    }

    /// Whether the parent or the session of a process says that it is the job's.
    pub(crate) fn is_related(&self, stat: &Stat) -> bool {
        self.members.contains_key(&stat.ppid) || self.sessions.as_ref().is_some_and(|known| known.includes(stat))
    }

    /// Counts a member as found outside the box.
    pub(crate) fn note_escape(&mut self, key: ProcessKey) {
        self.escaped.insert(key);
    }

    /// Counts every child of this process, but for `not_the_jobs`, as the job's: this process has declared
    /// itself the parent of orphans and starts nothing else. Those that it had before the job (a shell that
    /// replaced itself by it leaves its own) must be among `not_the_jobs`.
    pub(crate) fn inherit_orphans(&mut self, not_the_jobs: Vec<i32>) {
        self.orphans = Some(Inheritance { own_pid: std::process::id().cast_signed(), not_the_jobs });
    }

    fn is_orphan_of_the_job(&self, stat: &Stat) -> bool {
        let is_ours = |ours: &Inheritance| ours.own_pid == stat.ppid && !ours.not_the_jobs.contains(&stat.pid);
        // An orphan of one that was there before the job was seen as a stranger while its parent lived.
        self.orphans.as_ref().is_some_and(is_ours) && !self.strangers.contains(&stat.key())
    }

    /// Adds the children that known members have now: cheap, and enough between two full looks.
    pub(crate) fn look_at_children(&mut self, proc: &ProcFs) {
        let mut unseen: Vec<i32> = self.members.keys().copied().collect();
        unseen.extend(self.orphans.as_ref().map(|ours| ours.own_pid));
        while let Some(pid) = unseen.pop() {
            for child in proc.children(pid).ok().flatten().unwrap_or_default() {
                if self.orphans.as_ref().is_some_and(|ours| ours.not_the_jobs.contains(&child)) {
                    continue;
                }
                if let (false, Ok(Some(key))) = (self.members.contains_key(&child), proc.living(child))
                    && !self.strangers.contains(&key)
                {
                    self.members.insert(child, key);
                    unseen.push(child);
                }
            }
        }
    }

    /// Looks at every process of the machine once: drops members that ended, adds descendants and those
    /// that carry the mark, orphans included.
    pub(crate) fn look_at_all(&mut self, proc: &ProcFs) {
        let Ok(tree) = proc.tree() else { return };
        let is_living =
            |key: &ProcessKey| tree.get(key.pid).is_some_and(|stat| stat.key() == *key && !stat.is_zombie());
        self.members.retain(|_, key| is_living(key));
        self.look_at_sessions(&tree);
        let orphans = tree.iter().filter(|stat| self.is_orphan_of_the_job(stat)).map(|stat| stat.pid);
        let roots: HashSet<i32> = self.members.keys().copied().chain(orphans).collect();
        let below = descendants_of(&tree, &roots);
        if let Some(sessions) = &mut self.sessions {
            for stat in &below {
                sessions.learn(stat);
            }
        }
        self.members.extend(below.iter().filter(|stat| !stat.is_zombie()).map(|stat| (stat.pid, stat.key())));
        self.strangers.retain(is_living);
        for stat in tree.iter().filter(|stat| !stat.is_zombie() && stat.pid != 1) {
            let key = stat.key();
            if self.members.contains_key(&stat.pid) || self.strangers.contains(&key) {
                continue;
            }
            if proc.has_environment(stat.pid, &self.mark) {
                self.members.insert(stat.pid, key);
            } else if !is_young(stat, &tree) {
                self.strangers.insert(key);
            }
        }
    }

    fn look_at_sessions(&mut self, tree: &ProcessTree) {
        let Some(sessions) = &mut self.sessions else { return };
        sessions.forget_ended(tree);
        let of_sessions = tree.iter().filter(|stat| !stat.is_zombie() && sessions.includes(stat));
        self.members.extend(of_sessions.map(|stat| (stat.pid, stat.key())));
    }

    /// Counts members whose cgroup is not the job's box, each once.
    pub(crate) fn count_escapes(&mut self, proc: &ProcFs, job_box: &JobBox) -> u64 {
        let outside = self.outside(proc, job_box);
        self.escaped.extend(outside.into_iter().map(|(key, _)| key));
        self.escaped.len() as u64
    }

    /// Members whose cgroup is not the job's box, and where they are. Who is ending is not told to be in any.
    pub(crate) fn outside(&self, proc: &ProcFs, job_box: &JobBox) -> Vec<(ProcessKey, Membership)> {
        let is_outside = |key: &ProcessKey| {
            let found = proc.membership(key.pid).ok()?.filter(|found| !job_box.holds(found))?;
            let stat = proc.stat(key.pid).ok()??;
            (stat.key() == *key && !stat.is_zombie() && !stat.is_exiting).then_some((*key, found))
        };
        self.members.values().filter_map(is_outside).collect()
    }

    /// Known members, in no order.
    pub(crate) fn members(&self) -> impl Iterator<Item = ProcessKey> + '_ {
        self.members.values().copied()
    }

    /// The members that live, described.
    pub(crate) fn left_running(&self, proc: &ProcFs) -> Vec<LeftProcess> {
        describe(proc, self.members().filter(|key| proc.is_alive(*key)).map(|key| key.pid))
    }
}

/// A process between fork and exec still shows its parent's environment; judge it at the next look.
fn is_young(stat: &Stat, tree: &ProcessTree) -> bool {
    tree.iter().map(|other| other.start_ticks).max().is_some_and(|newest| stat.start_ticks + 1 >= newest)
}

/// Names and sizes of living processes, largest first.
pub(crate) fn describe(proc: &ProcFs, pids: impl IntoIterator<Item = i32>) -> Vec<LeftProcess> {
    let mut found: Vec<LeftProcess> = Vec::new();
    for pid in pids {
        if let Ok(Some(stat)) = proc.stat(pid)
            && !stat.is_zombie()
        {
            let rss_bytes = proc.statm(pid).ok().flatten().unwrap_or_default().resident_bytes;
            found.push(LeftProcess { pid, name: stat.name, rss_bytes });
        }
    }
    found.sort_by(|a, b| b.rss_bytes.cmp(&a.rss_bytes).then(a.pid.cmp(&b.pid)));
    found
}
