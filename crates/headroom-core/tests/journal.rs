//! Jobs on record: the directory that only its user can reach, records of the living and of the dead, and
//! jobs taken over from a starter that is gone.

mod support;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use headroom_core::boxing::{BoxId, Mode};
use headroom_core::cgroup::PeakSource;
use headroom_core::job::spawn;
use headroom_core::journal::{Facts, JobState, JobView, Record, RuntimeDir, adopt, broken, jobs, sweep};
use headroom_core::proc::ProcessKey;
use support::{
    Kid, KillMarked, MIB, Spawn, TestBase, command, dead_id, dead_key, fixture, is_root, roomy, skipped, system,
    userspace_box, wait_until,
};
use tempfile::TempDir;

#[track_caller]
fn assert_unsafe(path: &Path, why: &str) {
    let error = RuntimeDir::at(path).unwrap_err();
    assert_eq!(error.code(), "E_UNSAFE_DIRECTORY", "{error}");
    assert!(error.to_string().starts_with(path.to_str().unwrap()) && error.to_string().contains(why), "{error}");
}

fn make_dir(path: &Path, mode: u32) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_directory_that_is_made_belongs_to_its_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    assert_eq!(RuntimeDir::at(&path).unwrap().path(), path);
    let made = fs::metadata(&path).unwrap();
    assert_eq!((made.mode() & 0o7777, made.uid()), (0o700, rustix::process::getuid().as_raw()));
    RuntimeDir::at(&path).expect("it is used again");
}

#[test]
fn a_link_is_refused_even_to_a_good_directory() {
    let folder = tempfile::tempdir().unwrap();
    make_dir(&folder.path().join("good"), 0o700);
    let link = folder.path().join("link");
    symlink(folder.path().join("good"), &link).unwrap();
    assert_unsafe(&link, "symbolic link");
    let nowhere = folder.path().join("nowhere");
    symlink(folder.path().join("absent"), &nowhere).unwrap();
    assert_unsafe(&nowhere, "symbolic link");
    assert!(!folder.path().join("absent").exists(), "nothing is made through a link");
}

#[test]
fn a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_unsafe(&file, "not a directory");
}

#[test]
fn a_directory_that_others_can_reach_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o777, 0o1777, 0o750, 0o701, 0o720] {
        let path = folder.path().join(format!("{mode:o}"));
        make_dir(&path, mode);
        assert_unsafe(&path, "0700");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    if !is_root() {
        return skipped("only root can give a directory away");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs");
    make_dir(&path, 0o700);
    std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
    assert_unsafe(&path, "another user");
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_that_names_it() {
    let error = RuntimeDir::at(Path::new("/nonexistent/run")).unwrap_err();
    assert_eq!((error.code(), error.errno()), ("E_IO", Some(libc::ENOENT)));
    assert!(error.to_string().starts_with("/nonexistent/run: "), "{error}");
}

/// Opens the directory that the variable leads to. One in /tmp that was not there before is removed.
fn opened_by(variable: Option<&Path>) -> PathBuf {
    let in_tmp = PathBuf::from(format!("/tmp/hermes-headroom-{}", rustix::process::getuid().as_raw()));
    let was_there = in_tmp.exists();
    let opened = RuntimeDir::open(variable).map(|runtime| runtime.path().to_path_buf());
    if !was_there {
        let _absent_or_in_use = fs::remove_dir(&in_tmp);
    }
    opened.unwrap()
}

#[test]
fn the_users_runtime_directory_is_used_where_it_is_safe() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o700, 0o755] {
        let parent = folder.path().join(format!("{mode:o}"));
        make_dir(&parent, mode);
        assert_eq!(RuntimeDir::open(Some(&parent)).unwrap().path(), parent.join("hermes-headroom"));
    }
}

#[test]
fn without_a_safe_runtime_directory_there_is_the_usual_one_or_one_in_tmp() {
    let uid = rustix::process::getuid().as_raw();
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let in_tmp = PathBuf::from(format!("/tmp/hermes-headroom-{uid}"));
    let expected = if usual.is_dir() { usual.join("hermes-headroom") } else { in_tmp };
    let folder = tempfile::tempdir().unwrap();
    let (open_to_all, link, absent) =
        (folder.path().join("open"), folder.path().join("link"), folder.path().join("absent"));
    make_dir(&open_to_all, 0o777);
    symlink(folder.path(), &link).unwrap();
    for variable in
        [None, Some(Path::new("relative/path")), Some(Path::new("")), Some(&*open_to_all), Some(&*link), Some(&*absent)]
    {
        assert_eq!(opened_by(variable), expected, "{variable:?}");
    }
    assert_eq!(fs::read_dir(&open_to_all).unwrap().count(), 0);
    if is_root() {
        let theirs = folder.path().join("theirs");
        make_dir(&theirs, 0o700);
        std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
        assert_eq!(opened_by(Some(&theirs)), expected, "as with sudo -E");
    }
}

/// A runtime directory of one test.
struct Journal {
    runtime: Arc<RuntimeDir>,
    _folder: TempDir,
}

impl Journal {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { runtime: Arc::new(RuntimeDir::at(&folder.path().join("run")).unwrap()), _folder: folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.runtime.path().join(name)
    }

    /// Writes a record that nobody holds.
    fn put(&self, facts: &Facts) -> PathBuf {
        let path = self.path(&format!("{}.job.json", facts.id));
        fs::write(&path, serde_json::to_vec(facts).unwrap()).unwrap();
        path
    }

    fn put_text(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.runtime.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn jobs(&self) -> Vec<JobView> {
        jobs(&system(), &self.runtime).unwrap()
    }

    fn sweep(&self) -> Vec<JobView> {
        sweep(&system(), &self.runtime).unwrap()
    }

    /// A lock that was let go may be held a moment longer by a child that another test is just starting:
    /// between fork and exec it has a copy of every descriptor.
    fn wait_until_swept(&self) {
        wait_until("everything is swept", || self.sweep().is_empty() && self.names().is_empty());
    }

    fn only_job(&self) -> JobView {
        let mut views = self.jobs();
        assert_eq!(views.len(), 1, "{views:?}");
        views.remove(0)
    }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// A `userspace` job of 48 MiB on record.
fn facts(id: BoxId) -> Facts {
    Facts {
        id: id.to_string(),
        mode: Mode::Userspace,
        cgroup: None,
        memory_bytes: 48 * MIB,
        swap_bytes: None,
        command: "make test".to_owned(),
        kind: "test".to_owned(),
        cwd: "/src".to_owned(),
        owner: id.owner,
        root: None,
        started_unix_ms: 1_700_000_000_000,
        started_boot_ms: 0,
        boot_id: boot_id(),
        left: false,
        is_awaited: false,
        sessions: Vec::new(),
    }
}

fn in_cgroup(id: BoxId, mode: Mode, cgroup: &Path) -> Facts {
    Facts { mode, cgroup: Some(cgroup.to_path_buf()), ..facts(id) }
}

/// A child with a job's mark, as the job's starter would have given it.
fn marked(id: BoxId, script: &str) -> (Kid, KillMarked) {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .env("HEADROOM_JOB_ID", id.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    (Kid(shell.spawn().unwrap()), KillMarked(id))
}

#[test]
fn a_record_is_one_file_that_only_its_user_can_read() {
    let journal = Journal::new();
    let job_box = userspace_box(roomy());
    let record = Record::new(Arc::clone(&journal.runtime), &system(), &job_box, "c", "k", "/").unwrap();
    let name = format!("{}.job.json", job_box.id());
    assert_eq!(journal.names(), std::slice::from_ref(&name));
    assert_eq!(fs::metadata(journal.path(&name)).unwrap().mode() & 0o7777, 0o600);
    let facts: Facts = serde_json::from_slice(&fs::read(journal.path(&name)).unwrap()).unwrap();
    assert_eq!((facts.owner, facts.root, facts.left), (system().own_key().unwrap(), None, false));
    assert_eq!((facts.boot_id, facts.memory_bytes, facts.swap_bytes), (boot_id(), 512 * MIB, Some(0)));
    record.erase();
    assert_eq!(journal.names(), [] as [&str; 0]);
}

#[test]
fn a_record_cannot_be_made_in_a_directory_that_is_gone() {
    let journal = Journal::new();
    fs::remove_dir(journal.runtime.path()).unwrap();
    let job_box = userspace_box(roomy());
    let answer = Record::new(Arc::clone(&journal.runtime), &system(), &job_box, "c", "k", "/");
    assert_eq!(answer.unwrap_err().errno(), Some(libc::ENOENT));
}

#[test]
fn a_record_is_held_from_its_making_until_it_is_dropped() {
    let journal = Journal::new();
    let job_box = userspace_box(roomy());
    let kid = Kid::idle();
    let mut record = Record::new(Arc::clone(&journal.runtime), &system(), &job_box, "c", "k", "/").unwrap();
    assert_eq!((journal.only_job().state, journal.only_job().root_pid), (JobState::Running, None));
    record.set_root(kid.key());
    assert_eq!((journal.only_job().state, journal.only_job().root_pid), (JobState::Running, Some(kid.pid())));
    assert_eq!(journal.names().len(), 1, "the file was replaced, not doubled");
    assert_eq!(journal.sweep().len(), 1);
    drop(record);
    // As after the starter's sudden death, while its job runs on.
    wait_until("the job is an orphan", || journal.only_job().state == JobState::Orphaned);
    drop(kid);
    journal.wait_until_swept();
}

#[test]
fn a_job_whose_command_is_over_is_told_as_left_running() {
    let journal = Journal::new();
    let job_box = userspace_box(roomy());
    let (kid, _marked) = marked(job_box.id(), "read line");
    let record = Record::new(Arc::clone(&journal.runtime), &system(), &job_box, "c", "k", "/").unwrap();
    record.keep_as_left();
    let view = journal.only_job();
    assert_eq!((view.state, view.root_pid), (JobState::LeftRunning, Some(kid.pid())));
    assert_eq!(journal.sweep().len(), 1, "its record stays as long as it runs");
}

#[test]
fn states_have_their_words() {
    let words = [JobState::Running, JobState::Orphaned, JobState::LeftRunning].map(JobState::as_str);
    assert_eq!(words, ["running", "orphaned", "left_running"]);
}

#[test]
fn a_job_of_a_dead_starter_is_an_orphan_found_by_its_mark() {
    let journal = Journal::new();
    let id = dead_id();
    let (kid, _marked) = marked(id, "sleep 1000 & sleep 1000 & read line");
    journal.put(&facts(id));
    wait_until("both helpers are found", || journal.only_job().processes.len() == 3);
    let view = journal.only_job();
    assert_eq!(
        (view.state, view.root_pid),
        (JobState::Orphaned, Some(kid.pid())),
        "the oldest is taken for the command"
    );
    assert_eq!(view.facts, facts(id));
    assert!(view.now_bytes > 0);
    assert_eq!(view.peak.map(|peak| peak.source), Some(PeakSource::Sampled));
    assert_eq!((journal.sweep().len(), journal.names().len()), (1, 1));
}

#[test]
fn a_job_without_marks_is_found_by_its_recorded_command() {
    let journal = Journal::new();
    let kid = Kid::idle();
    journal.put(&Facts { root: Some(kid.key()), ..facts(dead_id()) });
    let view = journal.only_job();
    assert_eq!((view.root_pid, view.processes.len()), (Some(kid.pid()), 1));
    assert_eq!(view.processes[0].pid, kid.pid());
}

#[test]
fn a_number_that_was_used_again_is_not_the_jobs() {
    let journal = Journal::new();
    let kid = Kid::idle();
    let key = kid.key();
    let earlier = ProcessKey { start_ticks: key.start_ticks - 1, ..key };
    journal.put(&Facts { root: Some(earlier), ..facts(dead_id()) });
    assert_eq!((journal.sweep().len(), journal.names().len()), (0, 0));
    assert!(system().is_alive(key));
}

#[test]
fn a_number_that_was_used_again_is_not_told_as_the_jobs_process() {
    let journal = Journal::new();
    let id = dead_id();
    let (job, _marked) = marked(id, "read line");
    let stranger = Kid::idle();
    let earlier = ProcessKey { start_ticks: stranger.key().start_ticks - 1, ..stranger.key() };
    journal.put(&Facts { root: Some(earlier), ..facts(id) });
    wait_until("the job's process is found", || journal.only_job().processes.len() == 1);
    assert_eq!(journal.only_job().root_pid, Some(job.pid()), "whoever is told a number may stop that process");
    assert!(journal.only_job().processes.iter().all(|process| process.pid != stranger.pid()));
}

#[test]
fn a_starter_whose_number_was_used_again_is_gone() {
    let journal = Journal::new();
    let stranger = Kid::idle();
    let earlier = ProcessKey { start_ticks: stranger.key().start_ticks - 1, ..stranger.key() };
    let id = BoxId { owner: earlier, sequence: 1 };
    let (_job, _marked) = marked(id, "read line");
    let held = File::open(journal.put(&facts(id))).unwrap();
    held.lock().unwrap();
    assert_eq!(journal.only_job().state, JobState::Orphaned, "its lock is kept by who adopted it");
    journal.put_text(&format!("{id}.new"), "cut sho");
    journal.sweep();
    assert_eq!(journal.names().len(), 1, "what it did not finish is removed");
}

#[test]
fn an_age_does_not_jump_with_the_wall_clock() {
    let journal = Journal::new();
    let kid = Kid::idle();
    let hours = |hours: i64| 1_800_000_000_000_i64.saturating_add(hours * 3_600_000).cast_unsigned();
    // Started when the clock was years ahead, or years behind.
    for started_unix_ms in [0, 1, hours(-100_000), hours(100_000), u64::MAX] {
        let path = journal.put(&Facts { root: Some(kid.key()), started_unix_ms, ..facts(dead_id()) });
        assert!(journal.only_job().age_ms <= kid.key().age_ms(), "{started_unix_ms}");
        fs::remove_file(path).unwrap();
    }
    // Without a process on record the oldest of the job tells.
    let id = dead_id();
    let (marked, _marked) = marked(id, "read line");
    journal.put(&Facts { started_unix_ms: 0, ..facts(id) });
    wait_until("its process is found", || journal.jobs().len() == 1);
    assert!(journal.only_job().age_ms <= marked.key().age_ms());
    // Without any process there is only the wall clock; what is to come is now.
    let held = File::open(journal.put(&Facts { started_unix_ms: u64::MAX, ..facts(dead_id()) })).unwrap();
    held.lock().unwrap();
    assert!(journal.jobs().iter().any(|view| view.processes.is_empty() && view.age_ms == 0));
}

#[test]
fn looking_removes_nothing() {
    let journal = Journal::new();
    journal.put(&facts(dead_id()));
    journal.put_text("1-2-3.job.json", "corrupt");
    journal.put_text("1-2-3.new", "");
    assert_eq!((journal.jobs().len(), journal.names().len()), (0, 3));
}

#[test]
fn records_that_are_none_are_swept() {
    let journal = Journal::new();
    for name in ["cut-short", "empty", "another-release", "not-text"] {
        journal.put_text(&format!("{name}.job.json"), fs::read(fixture("journal").join(name)).unwrap());
    }
    journal.put(&Facts { id: "not-an-identity".to_owned(), ..facts(dead_id()) });
    let huge = serde_json::to_vec(&Facts { command: "x".repeat(1 << 20), ..facts(dead_id()) }).unwrap();
    journal.put_text("huge.job.json", huge);
    journal.put(&facts(dead_id()));
    assert_eq!((broken(&journal.runtime).unwrap().len(), journal.names().len()), (6, 7));
    assert_eq!((journal.sweep().len(), journal.names()), (0, Vec::new()));
    assert_eq!(broken(&journal.runtime).unwrap(), [] as [PathBuf; 0]);
}

#[test]
fn a_record_of_another_boot_is_swept_and_its_numbers_mean_nothing() {
    let journal = Journal::new();
    let kid = Kid::idle();
    let earlier = Facts { root: Some(kid.key()), boot_id: "an-earlier-boot".to_owned(), ..facts(dead_id()) };
    journal.put(&earlier);
    assert_eq!((journal.jobs().len(), journal.sweep().len(), journal.names().len()), (0, 0, 0));
    assert!(system().is_alive(kid.key()));
}

#[test]
fn a_record_whose_cgroup_is_gone_is_swept() {
    let journal = Journal::new();
    let folder = tempfile::tempdir().unwrap();
    let (gone, gone_with_its_parent) = (dead_id(), dead_id());
    journal.put(&in_cgroup(gone, Mode::Cgroup1, &folder.path().join(gone.cgroup_name())));
    let deeper = folder.path().join("absent").join(gone_with_its_parent.cgroup_name());
    journal.put(&in_cgroup(gone_with_its_parent, Mode::Cgroup2, &deeper));
    assert_eq!((journal.sweep().len(), journal.names().len()), (0, 0));
}

#[test]
fn other_files_are_left_alone() {
    let journal = Journal::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("target"), "corrupt").unwrap();
    journal.put_text("daemon.sock", "");
    journal.put_text("notes.json", "corrupt");
    symlink(outside.path().join("target"), journal.path("1-2-3.job.json")).unwrap();
    assert_eq!(journal.sweep().len(), 0);
    assert_eq!(broken(&journal.runtime).unwrap(), [journal.path("1-2-3.job.json")], "it stays, and is told");
    assert_eq!(journal.names(), ["1-2-3.job.json", "daemon.sock", "notes.json"], "nothing is read through a link");
    assert!(outside.path().join("target").exists());
}

#[test]
fn what_somebody_else_holds_is_never_removed() {
    let journal = Journal::new();
    let corrupt = journal.put_text("1-2-3.job.json", "corrupt: its owner is still writing");
    let other_boot = journal.put(&Facts { boot_id: "an-earlier-boot".to_owned(), ..facts(dead_id()) });
    let without_processes = journal.put(&facts(dead_id()));
    let held = [&corrupt, &other_boot, &without_processes].map(|path| File::open(path).unwrap());
    for file in &held {
        file.lock().unwrap();
    }
    assert_eq!(journal.sweep().len(), 1, "the one that can be understood is listed");
    assert_eq!(journal.names().len(), 3);
    drop(held);
    journal.wait_until_swept();
}

#[test]
fn a_record_that_another_process_holds_is_never_removed() {
    let journal = Journal::new();
    let file = File::open(journal.put(&facts(dead_id()))).unwrap();
    file.lock().unwrap();
    // From here on only the child holds the lock.
    let holder = Kid(Command::new("sleep").arg("1000").stdin(file).spawn().unwrap());
    for _ in 0..3 {
        assert_eq!((journal.sweep().len(), journal.names().len()), (1, 1));
    }
    drop(holder);
    journal.wait_until_swept();
}

#[test]
fn two_who_look_at_once_do_not_take_each_other_for_the_owner() {
    let journal = Journal::new();
    let looker = File::open(journal.put(&facts(dead_id()))).unwrap();
    looker.lock_shared().unwrap();
    assert_eq!((journal.sweep().len(), journal.names().len()), (0, 0));
}

#[test]
fn two_sweeps_at_once_remove_everything_and_fail_at_nothing() {
    let journal = Journal::new();
    let kept = dead_id();
    let (_kid, _marked) = marked(kept, "read line");
    for round in 0..10 {
        for sequence in 0..30 {
            journal.put(&facts(BoxId { sequence: 1000 + round * 100 + sequence, ..dead_ids_owner() }));
        }
        journal.put(&facts(kept));
        let listed: Vec<usize> = std::thread::scope(|scope| {
            let sweeps: Vec<_> = (0..2).map(|_| scope.spawn(|| journal.sweep().len())).collect();
            sweeps.into_iter().map(|sweep| sweep.join().unwrap()).collect()
        });
        assert_eq!(listed, [1, 1]);
        assert_eq!(journal.names(), [format!("{kept}.job.json")]);
    }
}

/// An identity of one dead maker, the same at every call.
fn dead_ids_owner() -> BoxId {
    static DEAD: std::sync::OnceLock<ProcessKey> = std::sync::OnceLock::new();
    BoxId { owner: *DEAD.get_or_init(dead_key), sequence: 0 }
}

#[test]
fn unfinished_files_of_dead_makers_are_removed_and_those_of_living_ones_kept() {
    let journal = Journal::new();
    let living = BoxId::new(&system()).unwrap();
    for name in [format!("{}.new", dead_id()), "nonsense.new".to_owned(), format!("{living}.new")] {
        journal.put_text(&name, "cut sho");
    }
    journal.sweep();
    assert_eq!(journal.names(), [format!("{living}.new")]);
}

#[test]
fn an_orphan_in_a_box_is_listed_and_swept_with_its_box_when_it_ends() {
    let Some(base) = TestBase::kernel() else { return };
    let journal = Journal::new();
    let job_box = base.placement.make_box(dead_id(), roomy()).unwrap();
    let path = job_box.cgroup_path().unwrap();
    let kid = Spawn(spawn(&command(&["sleep", "1000"]), &job_box).unwrap().pid);
    journal.put(&in_cgroup(job_box.id(), base.placement.mode, &path));

    let view = journal.only_job();
    assert_eq!((view.state, view.root_pid, view.processes.len()), (JobState::Orphaned, Some(kid.0), 1));
    assert!(view.now_bytes > 0);
    assert_eq!((journal.sweep().len(), path.is_dir()), (1, true));

    assert!(job_box.kill_all().unwrap());
    wait_until("box and record are swept", || journal.sweep().is_empty() && journal.names().is_empty());
    assert!(!path.exists());
}

#[test]
fn an_empty_box_of_a_dead_starter_is_swept_with_everything_nested_in_it() {
    let Some(base) = TestBase::kernel() else { return };
    let journal = Journal::new();
    let job_box = base.placement.make_box(dead_id(), roomy()).unwrap();
    job_box.cgroup().unwrap().make_child("a").unwrap().make_child("b").unwrap();
    journal.put(&in_cgroup(job_box.id(), base.placement.mode, &job_box.cgroup_path().unwrap()));
    assert_eq!((journal.sweep().len(), journal.names().len(), base.names().len()), (0, 0, 0));
}

#[test]
fn two_sweeps_at_once_remove_real_boxes() {
    let Some(base) = TestBase::kernel() else { return };
    let journal = Journal::new();
    for _ in 0..10 {
        let job_box = base.placement.make_box(dead_id(), roomy()).unwrap();
        journal.put(&in_cgroup(job_box.id(), base.placement.mode, &job_box.cgroup_path().unwrap()));
    }
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(journal.sweep().len(), 0));
        }
    });
    journal.sweep();
    assert_eq!((journal.names().len(), base.names().len()), (0, 0));
}

#[test]
fn a_record_of_a_folder_that_is_no_jobs_cgroup_removes_no_folder() {
    let journal = Journal::new();
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    fs::create_dir_all(precious.join("empty/too")).unwrap();
    for cgroup in [precious.as_path(), &precious.join("empty"), &precious.join("empty/..")] {
        for mode in [Mode::Cgroup1, Mode::Cgroup2] {
            journal.put(&in_cgroup(dead_id(), mode, cgroup));
        }
    }
    journal.sweep();
    assert!(precious.join("empty/too").is_dir());
    assert_eq!(journal.names(), [] as [&str; 0], "such a record is of no use");
}

#[test]
fn a_record_of_a_foreign_cgroup_removes_no_cgroup() {
    let Some(base) = TestBase::kernel() else { return };
    let journal = Journal::new();
    let foreign =
        headroom_core::cgroup::Cgroup::open(base.path(), base.version()).unwrap().make_child("system.slice").unwrap();
    journal.put(&in_cgroup(dead_id(), base.placement.mode, foreign.path()));
    journal.sweep();
    assert!(foreign.path().is_dir());
}

#[test]
fn processes_of_a_foreign_cgroup_are_not_taken_for_the_jobs() {
    let Some(base) = TestBase::kernel() else { return };
    let journal = Journal::new();
    let other = base.make_box(roomy());
    let kid = Spawn(spawn(&command(&["sleep", "1000"]), &other).unwrap().pid);
    // The cgroup above all boxes, and the box of another job.
    for cgroup in [base.path(), &other.cgroup_path().unwrap()] {
        journal.put(&in_cgroup(dead_id(), base.placement.mode, cgroup));
    }
    let listed: Vec<i32> = journal.jobs().iter().flat_map(|view| &view.processes).map(|process| process.pid).collect();
    assert!(!listed.contains(&kid.0), "{listed:?}");
}

#[test]
fn a_record_of_another_jobs_box_does_not_remove_that_box() {
    let Some(base) = TestBase::kernel() else { return };
    let journal = Journal::new();
    // Made by this process, which lives, and not yet entered by its job.
    let living = base.make_box(roomy());
    journal.put(&in_cgroup(dead_id(), base.placement.mode, &living.cgroup_path().unwrap()));
    journal.sweep();
    assert!(living.cgroup_path().unwrap().is_dir(), "the box of a living starter was removed");
}

/// Grows to 100 MB when it is told to, and keeps them long enough to be seen: what has come and gone between two
/// samples is nobody's to kill.
const GREEDY: &str = "read line; (head -c 100000000 /dev/zero; sleep 3) | tail -n 1 >/dev/null";

#[test]
fn an_orphan_that_is_taken_over_is_held_to_its_cap() {
    let journal = Journal::new();
    let id = dead_id();
    let (mut kid, _marked) = marked(id, GREEDY);
    journal.put(&facts(id));
    assert_eq!(adopt(&system(), &journal.runtime).unwrap(), 1);
    assert_eq!(adopt(&system(), &journal.runtime).unwrap(), 0, "it is looked after already");
    let view = journal.only_job();
    assert_eq!((view.state, view.root_pid), (JobState::Orphaned, Some(kid.pid())), "its starter is still gone");
    assert_eq!((journal.sweep().len(), journal.names().len()), (1, 1));

    kid.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(kid.0.wait().unwrap().code(), Some(137), "the biggest process was killed and the shell saw it");
    wait_until("the record is erased", || journal.names().is_empty());
}

#[test]
fn an_orphan_below_its_cap_runs_to_its_end() {
    let journal = Journal::new();
    let id = dead_id();
    let (mut kid, _marked) = marked(id, "read line; head -c 5000000 /dev/zero | tail -n 1 >/dev/null");
    journal.put(&Facts { root: Some(kid.key()), ..facts(id) });
    assert_eq!(adopt(&system(), &journal.runtime).unwrap(), 1);
    kid.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(kid.0.wait().unwrap().code(), Some(0));
    wait_until("the record is erased", || journal.names().is_empty());
}

#[test]
fn a_record_without_processes_is_taken_over_and_erased() {
    let journal = Journal::new();
    journal.put(&Facts { root: Some(dead_key()), ..facts(dead_id()) });
    assert_eq!(adopt(&system(), &journal.runtime).unwrap(), 1);
    wait_until("the record is erased", || journal.names().is_empty());
}

#[test]
fn only_userspace_jobs_of_this_boot_that_nobody_holds_are_taken_over() {
    let journal = Journal::new();
    for mode in [Mode::Cgroup1, Mode::Cgroup2, Mode::Off] {
        journal.put(&Facts { mode, ..facts(dead_id()) });
    }
    journal.put(&Facts { boot_id: "an-earlier-boot".to_owned(), ..facts(dead_id()) });
    journal.put_text("1-2-3.job.json", "corrupt");
    let held = File::open(journal.put(&facts(dead_id()))).unwrap();
    held.lock().unwrap();
    let own_box = userspace_box(roomy());
    let _running = Record::new(Arc::clone(&journal.runtime), &system(), &own_box, "c", "k", "/").unwrap();
    assert_eq!(adopt(&system(), &journal.runtime).unwrap(), 0);
    assert_eq!(journal.names().len(), 7);
}
