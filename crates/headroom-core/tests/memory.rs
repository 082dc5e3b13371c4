//! How much memory there is: meminfo, pressure, and the limits above this process, over fake machines.

mod support;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use headroom_core::dir::Dir;
use headroom_core::memory::{Available, Ceiling, MemInfo, Pressure, Stall};
use headroom_core::proc::ProcFs;
use support::{FakeProc, MIB, fixture, put, skipped, system};
use tempfile::TempDir;

/// As in fixtures/proc/meminfo.
const MACHINE: MemInfo = MemInfo {
    total_bytes: 16_384_000 << 10,
    available_bytes: 12_288_000 << 10,
    swap_total_bytes: 8_388_604 << 10,
    swap_free_bytes: 4_194_300 << 10,
};

#[test]
fn meminfo_is_read_in_bytes() {
    assert_eq!(ProcFs::at(fixture("proc")).unwrap().meminfo().unwrap(), MACHINE);
}

#[test]
fn a_machine_without_swap_lines_has_no_swap() {
    let fake = FakeProc::new().file("meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 60 kB\n");
    let expected = MemInfo { total_bytes: 102_400, available_bytes: 61_440, swap_total_bytes: 0, swap_free_bytes: 0 };
    assert_eq!(fake.open().meminfo().unwrap(), expected);
}

#[test]
fn an_absent_meminfo_is_an_error_that_names_it() {
    let error = FakeProc::new().open().meminfo().unwrap_err();
    assert_eq!((error.code(), error.errno()), ("E_IO", Some(libc::ENOENT)));
    assert!(error.to_string().contains("/meminfo: "), "{error}");
}

#[test]
fn a_malformed_meminfo_names_file_and_line() {
    let odd = [
        ("MemTotal: much kB\nMemAvailable: 1 kB\n", "MemTotal: much kB"),
        ("MemTotal:\nMemAvailable: 1 kB\n", "MemTotal:"),
        ("MemTotal: 1 kB\nMemAvailable: -1 kB\n", "MemAvailable: -1 kB"),
        ("MemTotal: 1 kB\n", "MemAvailable"),
        ("MemTotal: 1 kB\nMemAvailable: 1 kB\nSwapTotal: x kB\n", "SwapTotal: x kB"),
        ("", "MemTotal"),
    ];
    for (text, line) in odd {
        let error = FakeProc::new().file("meminfo", text).open().meminfo().unwrap_err();
        assert_eq!(error.code(), "E_PARSE", "{text:?}");
        assert!(error.to_string().contains("/meminfo") && error.to_string().contains(line), "{error}");
    }
}

#[test]
fn the_real_machine_has_memory() {
    let machine = system().meminfo().unwrap();
    assert!(machine.available_bytes > 0 && machine.available_bytes <= machine.total_bytes);
}

#[test]
fn pressure_is_read_from_proc_and_from_a_cgroup() {
    let expected = Pressure {
        some: Stall { avg10_percent: 0.29, total_us: 42_541_629 },
        full: Stall { avg10_percent: 0.15, total_us: 18_146_186 },
    };
    for (folder, file) in [("proc", "pressure/memory"), ("cgroup/v2", "memory.pressure")] {
        let dir = Dir::open(fixture(folder)).unwrap();
        assert_eq!(Pressure::read(&dir, file).unwrap(), Some(expected));
    }
}

#[test]
fn pressure_without_a_full_line_has_none() {
    let fake = FakeProc::new().file("pressure/memory", "some avg10=1.50 avg60=0.00 avg300=0.00 total=7\n");
    let pressure = Pressure::read(fake.open().dir(), "pressure/memory").unwrap().unwrap();
    assert_eq!(pressure, Pressure { some: Stall { avg10_percent: 1.5, total_us: 7 }, full: Stall::default() });
}

#[test]
fn a_kernel_without_pressure_files_is_none() {
    assert_eq!(Pressure::read(FakeProc::new().open().dir(), "pressure/memory").unwrap(), None);
}

#[test]
fn a_malformed_pressure_file_names_file_and_line() {
    let odd = ["some avg10=x total=1", "some avg10=0.1", "some total=1", "some avg10=0.1 total=-1", "nonsense", ""];
    for line in odd {
        let fake = FakeProc::new().file("pressure/memory", format!("{line}\n"));
        let error = Pressure::read(fake.open().dir(), "pressure/memory").unwrap_err();
        assert_eq!(error.code(), "E_PARSE");
        assert!(error.to_string().contains("pressure/memory") && error.to_string().contains(line), "{error}");
    }
}

/// A fake /proc whose mountinfo points at temporary folders.
struct Machine {
    proc: FakeProc,
    cgroups: TempDir,
    mounts: String,
    membership: String,
}

impl Machine {
    fn new() -> Self {
        let proc = FakeProc::new().file("meminfo", fs::read(fixture("proc/meminfo")).unwrap());
        Self { proc, cgroups: TempDir::new().unwrap(), mounts: String::new(), membership: String::new() }
    }

    /// Mounts a part of a hierarchy.
    fn mount(mut self, kind: &str, root: &str, folder: &str) -> Self {
        let (fs_type, options) = if kind == "v2" { ("cgroup2", "rw") } else { ("cgroup", "rw,memory") };
        let point = self.dir(folder);
        fs::create_dir_all(&point).unwrap();
        let point = point.display();
        writeln!(self.mounts, "32 31 0:9 {root} {point} rw,relatime - {fs_type} {fs_type} {options}").unwrap();
        self
    }

    fn member(mut self, line: &str) -> Self {
        self.membership += line;
        self.membership.push('\n');
        self
    }

    /// A cgroup with its files; `cgroup.procs` makes a folder one.
    fn cgroup(self, folder: &str, files: &[(&str, &str)]) -> Self {
        put(&self.dir(folder), "cgroup.procs", "");
        for (name, content) in files {
            put(&self.dir(folder), name, content);
        }
        self
    }

    /// The v2 hierarchy in folder `v2`, with this process in `/a/b`.
    fn v2() -> Self {
        Self::new().mount("v2", "/", "v2").member("0::/a/b").cgroup("v2", &[]).cgroup("v2/a", &[]).cgroup("v2/a/b", &[])
    }

    fn dir(&self, folder: &str) -> PathBuf {
        self.cgroups.path().join(folder)
    }

    fn ceiling(&self, folder: &str, limit_mib: u64, left_mib: u64) -> Ceiling {
        Ceiling { cgroup: self.dir(folder), limit_bytes: limit_mib * MIB, left_bytes: left_mib * MIB }
    }

    fn measure(&self) -> Available {
        put(self.proc.path(), "self/mountinfo", &self.mounts);
        put(self.proc.path(), "self/cgroup", &self.membership);
        Available::measure(&self.proc.open()).unwrap()
    }
}

#[track_caller]
fn assert_unlimited(available: &Available) {
    let expected = Available {
        total_bytes: MACHINE.total_bytes,
        available_bytes: MACHINE.available_bytes,
        machine: MACHINE,
        ceilings: Vec::new(),
    };
    assert_eq!(*available, expected);
}

const GIB_LIMIT: (&str, &str) = ("memory.max", "1073741824\n");
const HALF_USED: (&str, &str) = ("memory.current", "536870912\n");

#[test]
fn without_a_limit_the_machine_counts() {
    assert_unlimited(&Machine::v2().measure());
    assert_unlimited(&Machine::v2().cgroup("v2/a/b", &[("memory.max", "max\n"), HALF_USED]).measure());
    assert_unlimited(&Machine::new().measure());
}

#[test]
fn the_own_cgroups_limit_counts() {
    let machine = Machine::v2().cgroup("v2/a/b", &[GIB_LIMIT, HALF_USED]);
    let available = machine.measure();
    assert_eq!(available.ceilings, [machine.ceiling("v2/a/b", 1024, 512)]);
    assert_eq!((available.total_bytes, available.available_bytes), (1024 * MIB, 512 * MIB));
    assert_eq!(available.machine, MACHINE);
}

#[test]
fn a_tighter_limit_above_counts_and_ceilings_are_told_nearest_first() {
    let machine = Machine::v2()
        .cgroup("v2/a/b", &[GIB_LIMIT, HALF_USED])
        .cgroup("v2/a", &[("memory.max", "629145600\n"), ("memory.current", "524288000\n")])
        .cgroup("v2", &[("memory.max", "max\n"), HALF_USED]);
    let available = machine.measure();
    assert_eq!(available.ceilings, [machine.ceiling("v2/a/b", 1024, 512), machine.ceiling("v2/a", 600, 100)]);
    assert_eq!((available.total_bytes, available.available_bytes), (600 * MIB, 100 * MIB));
}

#[test]
fn the_lowest_limit_and_the_least_left_may_stand_on_different_cgroups() {
    let machine = Machine::v2()
        .cgroup("v2/a/b", &[("memory.max", "629145600\n"), ("memory.current", "0\n")])
        .cgroup("v2/a", &[GIB_LIMIT, ("memory.current", "1063256064\n")]);
    let available = machine.measure();
    assert_eq!((available.total_bytes, available.available_bytes), (600 * MIB, 10 * MIB));
}

#[test]
fn a_limit_above_the_machines_memory_gives_no_more_than_the_machine() {
    let machine = Machine::v2().cgroup("v2/a/b", &[("memory.max", "1099511627776\n"), ("memory.current", "0\n")]);
    let available = machine.measure();
    assert_eq!(available.ceilings, [machine.ceiling("v2/a/b", 1 << 20, 1 << 20)]);
    assert_eq!((available.total_bytes, available.available_bytes), (MACHINE.total_bytes, MACHINE.available_bytes));
}

#[test]
fn in_a_container_the_mount_shows_the_own_part_of_the_tree() {
    let machine = Machine::new()
        .mount("v2", "/docker/x", "v2")
        .member("0::/docker/x/inner")
        .cgroup("v2", &[("memory.max", "268435456\n"), ("memory.current", "134217728\n")])
        .cgroup("v2/inner", &[GIB_LIMIT, HALF_USED]);
    let available = machine.measure();
    assert_eq!(available.ceilings, [machine.ceiling("v2/inner", 1024, 512), machine.ceiling("v2", 256, 128)]);
}

#[test]
fn the_root_of_a_container_is_its_own_cgroup() {
    let machine = Machine::new()
        .mount("v1", "/docker/x", "memory")
        .member("4:memory:/docker/x")
        .cgroup("memory", &[("memory.limit_in_bytes", "268435456\n"), ("memory.usage_in_bytes", "134217728\n")]);
    assert_eq!(machine.measure().ceilings, [machine.ceiling("memory", 256, 128)]);
}

#[test]
fn a_mount_of_another_part_of_the_tree_does_not_count() {
    let limits = [GIB_LIMIT, HALF_USED];
    assert_unlimited(
        &Machine::new().mount("v2", "/docker/y", "v2").member("0::/docker/x").cgroup("v2", &limits).measure(),
    );
    // Above the root of this cgroup namespace.
    assert_unlimited(&Machine::new().mount("v2", "/", "v2").member("0::/../other").cgroup("other", &limits).measure());
}

#[test]
fn a_folder_without_processes_file_is_no_cgroup() {
    let machine = Machine::new().mount("v2", "/", "v2").member("0::/a");
    put(&machine.dir("v2/a"), "memory.max", "1073741824\n");
    put(&machine.dir("v2/a"), "memory.current", "0\n");
    assert_unlimited(&machine.measure());
}

#[test]
fn of_two_mounts_the_newer_one_counts_unless_it_does_not_show_the_cgroup() {
    let both = Machine::new()
        .mount("v2", "/", "old")
        .mount("v2", "/", "new")
        .member("0::/a")
        .cgroup("old/a", &[GIB_LIMIT, HALF_USED]);
    assert_eq!(both.measure().ceilings, [both.ceiling("old/a", 1024, 512)]);
    let both = both.cgroup("new/a", &[("memory.max", "2097152\n"), ("memory.current", "1048576\n")]);
    assert_eq!(both.measure().ceilings, [both.ceiling("new/a", 2, 1)]);
}

#[test]
fn a_v1_limit_counts_with_those_above_it() {
    let machine = Machine::new()
        .mount("v1", "/", "memory")
        .member("4:memory:/a/b")
        .cgroup("memory", &[("memory.limit_in_bytes", "9223372036854771712\n"), ("memory.usage_in_bytes", "5\n")])
        .cgroup("memory/a", &[("memory.limit_in_bytes", "104857600\n"), ("memory.usage_in_bytes", "62914560\n")])
        .cgroup("memory/a/b", &[("memory.limit_in_bytes", "209715200\n"), ("memory.usage_in_bytes", "62914560\n")]);
    let available = machine.measure();
    assert_eq!(available.ceilings, [machine.ceiling("memory/a/b", 200, 140), machine.ceiling("memory/a", 100, 40)]);
    assert_eq!((available.total_bytes, available.available_bytes), (100 * MIB, 40 * MIB));
}

#[test]
fn the_number_that_v1_writes_for_no_limit_is_none() {
    for number in ["9223372036854771712", "9223372036854710272", "9223372036854775807"] {
        let files = [("memory.limit_in_bytes", number), ("memory.usage_in_bytes", "5\n")];
        let machine = Machine::new().mount("v1", "/", "memory").member("4:memory:/a").cgroup("memory/a", &files);
        assert_unlimited(&machine.measure());
    }
}

#[test]
fn on_a_hybrid_machine_both_hierarchies_count() {
    let machine = Machine::v2()
        .mount("v1", "/", "memory")
        .member("4:memory:/a")
        .cgroup("memory/a", &[("memory.limit_in_bytes", "104857600\n"), ("memory.usage_in_bytes", "0\n")])
        .cgroup("v2/a/b", &[GIB_LIMIT, HALF_USED]);
    let available = machine.measure();
    assert_eq!(available.ceilings, [machine.ceiling("v2/a/b", 1024, 512), machine.ceiling("memory/a", 100, 100)]);
}

#[test]
fn cache_that_can_be_dropped_is_not_used() {
    let v2 = Machine::v2().cgroup(
        "v2/a/b",
        &[
            GIB_LIMIT,
            HALF_USED,
            ("memory.stat", "anon 1\ninactive_file 104857600\nactive_file 5\nslab_reclaimable 12582912\n"),
        ],
    );
    assert_eq!(v2.measure().ceilings, [v2.ceiling("v2/a/b", 1024, 512 + 100 + 12)]);
    let v1 = Machine::new().mount("v1", "/", "memory").member("4:memory:/a").cgroup(
        "memory/a",
        &[
            ("memory.limit_in_bytes", "104857600\n"),
            ("memory.usage_in_bytes", "94371840\n"),
            ("memory.stat", "inactive_file 5\ntotal_inactive_file 20971520\ntotal_active_file 7\n"),
        ],
    );
    assert_eq!(v1.measure().ceilings, [v1.ceiling("memory/a", 100, 30)]);
}

#[test]
fn more_droppable_cache_than_use_leaves_the_whole_limit() {
    let stat = ("memory.stat", "inactive_file 99999999999\n");
    let machine = Machine::v2().cgroup("v2/a/b", &[GIB_LIMIT, HALF_USED, stat]);
    assert_eq!(machine.measure().ceilings, [machine.ceiling("v2/a/b", 1024, 1024)]);
}

#[test]
fn a_limit_below_the_use_leaves_nothing() {
    let machine = Machine::v2().cgroup("v2/a/b", &[("memory.max", "1048576\n"), HALF_USED]);
    let available = machine.measure();
    assert_eq!(available.ceilings, [machine.ceiling("v2/a/b", 1, 0)]);
    assert_eq!(available.available_bytes, 0);
}

#[test]
fn a_limit_of_zero_leaves_nothing() {
    let machine = Machine::v2().cgroup("v2/a/b", &[("memory.max", "0\n"), ("memory.current", "0\n")]);
    assert_eq!(machine.measure().total_bytes, 0);
}

#[test]
fn files_that_cannot_be_read_are_no_limit() {
    assert_unlimited(&Machine::v2().cgroup("v2/a/b", &[("memory.max", "lots\n"), HALF_USED]).measure());
    assert_unlimited(&Machine::v2().cgroup("v2/a/b", &[GIB_LIMIT, ("memory.current", "some\n")]).measure());
    assert_unlimited(&Machine::v2().cgroup("v2/a/b", &[GIB_LIMIT]).measure());
    let machine = Machine::v2().cgroup("v2/a/b", &[HALF_USED]);
    fs::create_dir(machine.dir("v2/a/b/memory.max")).unwrap();
    assert_unlimited(&machine.measure());
}

#[test]
fn a_malformed_stat_file_counts_nothing_as_droppable() {
    let machine = Machine::v2().cgroup("v2/a/b", &[GIB_LIMIT, HALF_USED, ("memory.stat", "inactive_file lots\n")]);
    assert_eq!(machine.measure().ceilings, [machine.ceiling("v2/a/b", 1024, 512)]);
}

#[test]
fn the_real_machine_is_measured_within_its_own_numbers() {
    let available = Available::measure(&system()).unwrap();
    assert!(available.total_bytes <= available.machine.total_bytes);
    assert!(available.available_bytes <= available.machine.available_bytes);
    for ceiling in &available.ceilings {
        assert!(ceiling.left_bytes <= ceiling.limit_bytes, "{ceiling:?}");
    }
    if !Path::new("/proc/pressure/memory").exists() {
        return skipped("this kernel has no PSI");
    }
    // Present but switched off (`psi=0`) reads as none.
    Pressure::read(system().dir(), "pressure/memory").unwrap();
}
