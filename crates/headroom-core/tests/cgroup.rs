//! One memory cgroup of either version, over the fixture folders `fixtures/cgroup` and over fake ones.

mod support;

use std::fs;

use headroom_core::Error;
use headroom_core::cgroup::{Cgroup, Hierarchies, Limit, Peak, PeakSource, Version};
use support::{FakeProc, MIB, fixture, put};
use tempfile::TempDir;

fn v1() -> Cgroup {
    Cgroup::open(fixture("cgroup/v1"), Version::V1).unwrap()
}

fn v2() -> Cgroup {
    Cgroup::open(fixture("cgroup/v2"), Version::V2).unwrap()
}

/// A folder with these files; kernel files exist before they are written, and so must fake ones.
struct Fake {
    dir: TempDir,
    version: Version,
}

impl Fake {
    fn new(version: Version, files: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        for (name, content) in files {
            put(dir.path(), name, content);
        }
        Self { dir, version }
    }

    fn open(&self) -> Cgroup {
        Cgroup::open(self.dir.path(), self.version).unwrap()
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.dir.path().join(file)).unwrap()
    }
}

const LIMIT_FILES: [(Version, &str); 2] = [(Version::V1, "memory.limit_in_bytes"), (Version::V2, "memory.max")];

#[test]
fn limits_are_read_in_both_versions() {
    for cgroup in [v1(), v2()] {
        assert_eq!(cgroup.memory_limit().unwrap(), Some(Limit::Bytes(512 * MIB)));
    }
    assert_eq!(v2().swap_limit().unwrap(), Some(Limit::Bytes(0)));
    assert_eq!(v1().swap_limit().unwrap(), Some(Limit::Bytes(256 * MIB)), "memory and swap are limited together");
}

#[test]
fn that_a_limit_was_hit_is_told_in_both_versions() {
    let was_hit = |version, files: &[(&str, &str)]| Fake::new(version, files).open().limit_was_hit().unwrap();
    assert!(was_hit(Version::V2, &[("memory.events.local", "oom 1\n")]));
    assert!(!was_hit(Version::V2, &[("memory.events.local", "oom 0\n")]));
    assert!(was_hit(Version::V1, &[("memory.failcnt", "3\n")]));
    assert!(!was_hit(Version::V1, &[("memory.failcnt", "0\n")]));
    let sum = |most: &str, limit: &str| {
        let files = [
            ("memory.failcnt", "0\n"),
            ("memory.memsw.max_usage_in_bytes", most),
            ("memory.memsw.limit_in_bytes", limit),
        ];
        was_hit(Version::V1, &files)
    };
    // Without swap the kernel refuses the sum first, and counts that nowhere.
    assert!(sum("104857600", "104857600") && sum("104849408", "104857600"));
    assert!(!sum("90000000", "104857600") && !sum("104857600", "9223372036854771712"));
}

#[test]
fn no_limit_is_max_in_both_versions() {
    for (folder, version) in [("cgroup/v1-unlimited", Version::V1), ("cgroup/v2-unlimited", Version::V2)] {
        let cgroup = Cgroup::open(fixture(folder), version).unwrap();
        assert_eq!(cgroup.memory_limit().unwrap(), Some(Limit::Max));
        assert_eq!(cgroup.swap_limit().unwrap(), Some(Limit::Max));
    }
}

#[test]
fn an_absent_limit_file_is_none() {
    for version in [Version::V1, Version::V2] {
        let fake = Fake::new(version, &[]);
        assert_eq!(fake.open().memory_limit().unwrap(), None);
        assert_eq!(fake.open().swap_limit().unwrap(), None);
    }
}

#[test]
fn a_malformed_limit_names_file_and_line() {
    for (version, file) in LIMIT_FILES {
        for text in ["", "\n", "lots\n", "-1\n", "12 34\n", "1e9\n", "maximum\n", "99999999999999999999999\n"] {
            let fake = Fake::new(version, &[(file, text)]);
            let error = fake.open().memory_limit().unwrap_err();
            let Error::Parse { file: named, line, .. } = &error else { panic!("{error} is no parse error") };
            assert_eq!((named, line.as_str()), (&fake.dir.path().join(file), text.trim()));
        }
    }
}

#[test]
fn a_v1_sum_without_a_limit_is_unlimited_swap() {
    let files = [("memory.limit_in_bytes", "1048576\n"), ("memory.memsw.limit_in_bytes", "9223372036854771712\n")];
    assert_eq!(Fake::new(Version::V1, &files).open().swap_limit().unwrap(), Some(Limit::Max));
}

#[test]
fn a_v1_sum_below_the_memory_limit_leaves_no_swap() {
    let files = [("memory.limit_in_bytes", "1048576\n"), ("memory.memsw.limit_in_bytes", "4096\n")];
    assert_eq!(Fake::new(Version::V1, &files).open().swap_limit().unwrap(), Some(Limit::Bytes(0)));
}

#[test]
fn set_limits_writes_the_v2_files() {
    for (swap, text) in [(Limit::Bytes(0), "0"), (Limit::Bytes(4096), "4096"), (Limit::Max, "max")] {
        let fake = Fake::new(Version::V2, &[("memory.max", ""), ("memory.swap.max", "")]);
        assert!(fake.open().set_limits(64 * MIB, swap).unwrap());
        assert_eq!(fake.text("memory.max"), "67108864");
        assert_eq!(fake.text("memory.swap.max"), text);
        assert_eq!(fake.open().swap_limit().unwrap(), Some(swap), "what was set is read back");
    }
}

#[test]
fn set_limits_writes_the_v1_files() {
    let expected = [(Limit::Bytes(0), "67108864"), (Limit::Bytes(4096), "67112960"), (Limit::Max, "-1")];
    for (swap, sum) in expected {
        let files = [("memory.limit_in_bytes", ""), ("memory.memsw.limit_in_bytes", ""), ("memory.use_hierarchy", "")];
        let fake = Fake::new(Version::V1, &files);
        assert!(fake.open().set_limits(64 * MIB, swap).unwrap());
        assert_eq!(fake.text("memory.limit_in_bytes"), "67108864");
        assert_eq!(fake.text("memory.memsw.limit_in_bytes"), sum);
        assert_eq!(fake.text("memory.use_hierarchy"), "1");
    }
}

#[test]
fn a_v1_sum_beyond_any_number_is_the_largest_one() {
    let files = [("memory.limit_in_bytes", ""), ("memory.memsw.limit_in_bytes", "")];
    let fake = Fake::new(Version::V1, &files);
    assert!(fake.open().set_limits(64 * MIB, Limit::Bytes(u64::MAX)).unwrap());
    assert_eq!(fake.text("memory.memsw.limit_in_bytes"), u64::MAX.to_string());
}

#[test]
fn without_swap_accounting_only_memory_is_set() {
    for (version, file) in LIMIT_FILES {
        let fake = Fake::new(version, &[(file, "")]);
        assert!(!fake.open().set_limits(64 * MIB, Limit::Bytes(0)).unwrap());
        assert_eq!(fake.text(file), "67108864");
        assert_eq!(fs::read_dir(fake.dir.path()).unwrap().count(), 1, "no file is made");
    }
}

#[test]
fn without_a_memory_controller_setting_limits_fails_and_names_the_file() {
    for (version, file) in LIMIT_FILES {
        let error = Fake::new(version, &[]).open().set_limits(MIB, Limit::Max).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ENOENT));
        assert!(error.to_string().contains(file), "{error}");
    }
}

#[test]
fn usage_is_read_in_both_versions() {
    for cgroup in [v1(), v2()] {
        assert_eq!(cgroup.usage_bytes().unwrap(), Some(300 * MIB));
        assert_eq!(cgroup.swap_usage_bytes().unwrap(), Some(4096));
    }
}

#[test]
fn absent_usage_is_none_and_malformed_usage_names_the_file() {
    for (version, file) in [(Version::V1, "memory.usage_in_bytes"), (Version::V2, "memory.current")] {
        let fake = Fake::new(version, &[]);
        assert_eq!((fake.open().usage_bytes().unwrap(), fake.open().swap_usage_bytes().unwrap()), (None, None));
        for text in ["max\n", "", "-5\n"] {
            let error = Fake::new(version, &[(file, text)]).open().usage_bytes().unwrap_err();
            assert!(error.code() == "E_PARSE" && error.to_string().contains(file), "{error}");
        }
    }
}

#[test]
fn the_peak_is_told_with_its_source() {
    assert_eq!(v1().peak().unwrap(), Some(Peak { bytes: 400_000_000, source: PeakSource::MaxUsage }));
    assert_eq!(v2().peak().unwrap(), Some(Peak { bytes: 400_000_000, source: PeakSource::MemoryPeak }));
    let words = [PeakSource::MaxUsage, PeakSource::MemoryPeak, PeakSource::Sampled].map(PeakSource::as_str);
    assert_eq!(words, ["max_usage", "memory.peak", "sampled"]);
}

#[test]
fn a_peak_is_written_to_json_under_the_words_of_as_str() {
    for source in [PeakSource::MaxUsage, PeakSource::MemoryPeak, PeakSource::Sampled] {
        assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
    }
}

#[test]
fn a_kernel_that_keeps_no_peak_has_none_and_a_malformed_one_names_the_file() {
    for (version, file) in [(Version::V1, "memory.max_usage_in_bytes"), (Version::V2, "memory.peak")] {
        assert_eq!(Fake::new(version, &[]).open().peak().unwrap(), None);
        let error = Fake::new(version, &[(file, "high\n")]).open().peak().unwrap_err();
        assert!(error.code() == "E_PARSE" && error.to_string().contains(file), "{error}");
    }
}

#[test]
fn v1_adds_up_the_kills_of_the_cgroups_below_and_v2_has_them_added_already() {
    assert_eq!(v1().oom_kills().unwrap(), 2 + 3 + 4);
    assert_eq!(v2().oom_kills().unwrap(), 5);
}

#[test]
fn own_kills_are_those_of_this_very_cgroup() {
    assert_eq!(v1().own_oom_kills().unwrap(), 2);
    assert_eq!(v2().own_oom_kills().unwrap(), 2);
}

#[test]
fn a_kernel_that_counts_no_kills_has_none_and_a_malformed_count_names_the_file() {
    for (version, file) in [(Version::V1, "memory.oom_control"), (Version::V2, "memory.events")] {
        assert_eq!(Fake::new(version, &[]).open().oom_kills().unwrap(), 0);
        assert_eq!(Fake::new(version, &[(file, "under_oom 0\noom_group_kill 7\n")]).open().oom_kills().unwrap(), 0);
        let error = Fake::new(version, &[(file, "oom_kill many\n")]).open().oom_kills().unwrap_err();
        assert!(error.code() == "E_PARSE" && error.to_string().contains(file), "{error}");
    }
}

#[test]
fn what_the_kernel_can_drop_is_told_for_both_versions() {
    assert_eq!(v1().droppable_bytes().unwrap(), 90_000_000);
    assert_eq!(v2().droppable_bytes().unwrap(), 93_000_000);
    assert_eq!(Fake::new(Version::V2, &[]).open().droppable_bytes().unwrap(), 0);
}

#[test]
fn counters_beyond_any_memory_do_not_overflow() {
    let stat = format!("inactive_file {0}\nslab_reclaimable {0}\n", u64::MAX);
    let answer = Fake::new(Version::V2, &[("memory.stat", &stat)]).open().droppable_bytes();
    assert!(matches!(answer, Ok(u64::MAX) | Err(_)), "{answer:?}");
}

#[test]
fn processes_are_listed_with_those_below_ascending_and_without_invisible_ones() {
    assert_eq!(v1().pids().unwrap(), [7, 12, 44, 301]);
    assert_eq!(v2().pids().unwrap(), [12, 44, 301], "0 stands for a process that cannot be seen from here");
    assert_eq!(Fake::new(Version::V2, &[]).open().pids().unwrap(), [] as [i32; 0]);
}

#[test]
fn a_malformed_process_list_names_the_file() {
    for text in ["12\nx\n", "\n", "99999999999\n"] {
        let error = Fake::new(Version::V2, &[("cgroup.procs", text)]).open().pids().unwrap_err();
        assert!(error.code() == "E_PARSE" && error.to_string().contains("cgroup.procs"), "{error}");
    }
}

#[test]
fn children_are_the_folders_directly_below() {
    let names = |cgroup: &Cgroup| -> Vec<_> {
        cgroup.children().unwrap().iter().map(|child| child.path().file_name().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&v2()), ["worker"]);
    assert_eq!(names(&v2().children().unwrap()[0]), ["deep"]);
    assert_eq!(v1().children().unwrap()[0].version(), Version::V1);
}

#[test]
fn a_cgroup_that_does_not_exist_cannot_be_opened() {
    let error = Cgroup::open("/nonexistent/cgroup", Version::V2).unwrap_err();
    assert_eq!((error.code(), error.errno()), ("E_IO", Some(libc::ENOENT)));
}

#[test]
fn a_process_enters_through_the_process_list() {
    let fake = Fake::new(Version::V2, &[("cgroup.procs", "")]);
    fake.open().enter(4711).unwrap();
    assert_eq!(fake.text("cgroup.procs"), "4711");
    rustix::io::write(fake.open().entry().unwrap(), b"0").unwrap();
    assert!(fake.text("cgroup.procs").starts_with('0'));
    assert_eq!(Fake::new(Version::V2, &[]).open().entry().unwrap_err().errno(), Some(libc::ENOENT));
}

#[test]
fn killing_an_empty_cgroup_is_done_at_once_with_one_write_where_the_kernel_has_it() {
    let newer = Fake::new(Version::V2, &[("cgroup.procs", ""), ("cgroup.kill", "")]);
    assert!(newer.open().kill_all().unwrap());
    assert_eq!(newer.text("cgroup.kill"), "1");
    let older = Fake::new(Version::V1, &[("cgroup.procs", "")]);
    assert!(older.open().kill_all().unwrap());
    assert!(!older.dir.path().join("cgroup.kill").exists());
}

#[test]
fn a_child_is_removed_with_everything_below_it_and_only_it() {
    let fake = Fake::new(Version::V1, &[]);
    fs::create_dir_all(fake.dir.path().join("job/a/b/c")).unwrap();
    fs::create_dir_all(fake.dir.path().join("job/d")).unwrap();
    fs::create_dir(fake.dir.path().join("other")).unwrap();
    assert!(fake.open().remove_child("job").unwrap());
    assert!(!fake.dir.path().join("job").exists());
    assert!(fake.dir.path().join("other").exists());
    assert!(fake.open().remove_child("job").unwrap(), "an absent one is fine");
}

#[test]
fn a_child_that_is_no_empty_folder_is_not_removed() {
    let fake = Fake::new(Version::V1, &[("job/precious", "data")]);
    assert_eq!(fake.open().remove_child("job").unwrap_err().errno(), Some(libc::ENOTEMPTY));
    assert_eq!(fake.text("job/precious"), "data");
}

#[test]
fn a_child_is_made_and_opened_once() {
    let fake = Fake::new(Version::V2, &[]);
    let child = fake.open().make_child("job").unwrap();
    assert_eq!((child.path(), child.version()), (fake.dir.path().join("job").as_path(), Version::V2));
    assert_eq!(fake.open().make_child("job").unwrap_err().errno(), Some(libc::EEXIST));
}

#[test]
fn a_cgroup_that_was_replaced_is_not_mistaken_for_the_old_one() {
    let fake = Fake::new(Version::V2, &[("job/memory.max", "4096\n")]);
    let old = Cgroup::open(fake.dir.path().join("job"), Version::V2).unwrap();
    fs::rename(fake.dir.path().join("job"), fake.dir.path().join("moved")).unwrap();
    put(fake.dir.path(), "job/memory.max", "8192\n");
    assert_eq!(old.memory_limit().unwrap(), Some(Limit::Bytes(4096)));
}

#[test]
fn a_limit_is_shown_as_v2_wants_it() {
    assert_eq!((Limit::Max.to_string(), Limit::Bytes(0).to_string()), ("max".to_owned(), "0".to_owned()));
    assert_eq!(Limit::Bytes(u64::MAX).to_string(), "18446744073709551615");
    assert_eq!((Limit::Max.as_bytes(), Limit::Bytes(7).as_bytes()), (None, Some(7)));
}

#[test]
fn a_read_only_mount_is_told_and_places_are_listed_upwards() {
    let cgroups = Fake::new(Version::V1, &[("a/b/cgroup.procs", "")]);
    let root = cgroups.dir.path().display().to_string();
    let fake = FakeProc::new()
        .file("self/cgroup", "4:memory:/docker/x/a/b\n0::/nowhere\n")
        .file("self/mountinfo", format!("1 2 0:1 /docker/x {root} ro,nosuid - cgroup cgroup rw,memory\n"));
    let found = Hierarchies::of_self(&fake.open()).unwrap();
    assert_eq!(found.v2, None);
    let place = found.v1_memory.unwrap();
    assert!(place.read_only);
    assert_eq!((place.version, place.mount_point.as_path()), (Version::V1, cgroups.dir.path()));
    let upwards: Vec<_> = place.own_and_above().collect();
    assert_eq!(
        upwards,
        ["a/b", "a", ""].map(|below| if below.is_empty() {
            cgroups.dir.path().to_path_buf()
        } else {
            cgroups.dir.path().join(below)
        })
    );
}

#[test]
fn a_mount_point_with_a_space_is_found() {
    let cgroups = Fake::new(Version::V2, &[("my groups/cgroup.procs", "")]);
    let point = cgroups.dir.path().join("my groups");
    let fake = FakeProc::new().file("self/cgroup", "0::/\n").file(
        "self/mountinfo",
        format!("1 2 0:1 / {}/my\\040groups rw - cgroup2 cgroup2 rw\n", cgroups.dir.path().display()),
    );
    let place = Hierarchies::of_self(&fake.open()).unwrap().v2.unwrap();
    assert_eq!((place.own.as_path(), place.read_only), (point.as_path(), false));
}
