//! Units told from cgroup paths, and machines told from files, over fake folders.

mod support;

use headroom_core::proc::{Manager, SystemdUnit};
use headroom_core::process::oom_score_adj;
use headroom_core::surroundings::Surroundings;
use support::{FakeProc, put, system};
use tempfile::TempDir;

const USER_PATH: &str = "/user.slice/user-1000.slice/user@1000.service";

#[track_caller]
fn unit(path: &str) -> SystemdUnit {
    SystemdUnit::of_path(path).unwrap()
}

#[test]
fn a_user_service_belongs_to_its_users_manager() {
    let found = unit(&format!("{USER_PATH}/app.slice/hermes-gateway.service"));
    assert_eq!(found.manager, Manager::User(1000));
    assert_eq!((found.unit.as_str(), found.session), ("hermes-gateway.service", None));
    assert_eq!(found.slices, ["app.slice"], "the slices above belong to the system's manager");
}

#[test]
fn cgroups_below_a_unit_do_not_change_it() {
    let below = unit(&format!("{USER_PATH}/app.slice/hermes-gateway.service/agent/other.service"));
    assert_eq!(below.unit, "hermes-gateway.service");
    let user = unit(&format!("{USER_PATH}/app.slice/app-hermes.slice/hermes-gateway-work.service"));
    assert_eq!(user.slices, ["app.slice", "app-hermes.slice"]);
}

#[test]
fn a_system_service_belongs_to_the_systems_manager() {
    let found = unit("/system.slice/hermes-gateway.service");
    assert_eq!((found.manager, found.unit.as_str()), (Manager::System, "hermes-gateway.service"));
    assert_eq!(found.slices, ["system.slice"]);
    let instance = unit("/system.slice/system-hermes.slice/hermes@bot.service");
    assert_eq!((instance.unit.as_str(), instance.slices.len()), ("hermes@bot.service", 2));
}

#[test]
fn a_login_is_a_session_and_no_service() {
    let found = unit("/user.slice/user-1000.slice/session-3.scope");
    assert_eq!((found.manager, found.session.as_deref()), (Manager::System, Some("3")));
    assert_eq!(found.unit, "session-3.scope");
    assert_eq!(unit(&format!("{USER_PATH}/tmux-spawn-1.scope")).session, None);
}

#[test]
fn a_users_manager_without_anything_below_is_a_unit_of_the_system() {
    let found = unit(USER_PATH);
    assert_eq!((found.manager, found.unit.as_str()), (Manager::System, "user@1000.service"));
}

#[test]
fn cgroups_above_that_no_manager_made_are_passed_over() {
    let found = unit("/lxc/101/user.slice/user-5.slice/user@5.service/app.slice/a.service");
    assert_eq!((found.manager, found.unit.as_str()), (Manager::User(5), "a.service"));
    assert_eq!(unit("/lxc.payload.101/system.slice/a.service").manager, Manager::System);
}

#[test]
fn a_name_that_systemd_had_to_escape_is_told_without_the_escape() {
    assert_eq!(unit("/system.slice/_cpu.service").unit, "cpu.service");
}

#[test]
fn what_is_in_no_unit_has_none() {
    for path in ["", "/", "/docker/3f2a9c", "/.service", "/user.slice", "/a/b/c", "/user@x.servic"] {
        assert_eq!(SystemdUnit::of_path(path), None, "{path:?}");
    }
}

#[test]
fn a_process_is_looked_up_in_v2_and_then_in_systemds_own_v1_hierarchy() {
    let of = |text: &str| FakeProc::new().file("77/cgroup", text).open().systemd_unit(77).unwrap();
    let v2 = of("9:memory:/elsewhere\n1:name=systemd:/system.slice/one.service\n0::/system.slice/two.service\n");
    assert_eq!(v2.unwrap().unit, "two.service");
    let v1 = of("9:memory:/system.slice/wrong.service\n1:name=systemd:/system.slice/one.service\n0::/\n");
    assert_eq!(v1.unwrap().unit, "one.service");
    assert_eq!(of("9:memory:/system.slice/wrong.service\n"), None);
    assert_eq!(of("nonsense\n\n::\n"), None);
    assert_eq!(FakeProc::new().open().systemd_unit(77).unwrap(), None);
}

#[test]
fn the_score_of_a_process_is_read_and_a_malformed_one_names_its_file() {
    let fake = FakeProc::new().file("77/oom_score_adj", "-250\n").file("78/oom_score_adj", "high\n");
    let proc = fake.open();
    assert_eq!(oom_score_adj(&proc, 77).unwrap(), Some(-250));
    assert_eq!(oom_score_adj(&proc, 79).unwrap(), None);
    assert!(oom_score_adj(&proc, 78).unwrap_err().to_string().contains("78/oom_score_adj"));
    let own = std::process::id().cast_signed();
    assert!(oom_score_adj(&system(), own).unwrap().is_some());
}

fn machine(files: &[(&str, &str)]) -> Surroundings {
    let root = TempDir::new().unwrap();
    for (file, content) in files {
        put(root.path(), file, content);
    }
    Surroundings::read(root.path()).unwrap()
}

#[test]
fn a_bare_machine_is_no_container_and_no_board() {
    assert_eq!(machine(&[]), Surroundings::default());
    assert!(machine(&[("run/systemd/system/x", "")]).is_systemd);
}

#[test]
fn containers_are_told_by_what_they_leave_in_the_root() {
    let kind = |files: &[(&str, &str)]| machine(files).container;
    assert_eq!(kind(&[("run/systemd/container", "lxc\n")]).as_deref(), Some("lxc"));
    assert_eq!(kind(&[("run/.containerenv", "")]).as_deref(), Some("podman"));
    assert_eq!(kind(&[(".dockerenv", "")]).as_deref(), Some("docker"));
    assert_eq!(kind(&[("proc/1/environ", "TOKEN=abc\0container=oci\0")]).as_deref(), Some("oci"));
    assert_eq!(kind(&[("proc/1/environ", "container=\0")]).as_deref(), Some("container"));
    assert_eq!(kind(&[("proc/1/environ", "my_container=oci\0")]), None);
}

#[test]
fn the_board_is_told_without_the_zero_at_its_end() {
    let board = machine(&[("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0")]).board;
    assert_eq!(board.as_deref(), Some("Raspberry Pi 4 Model B Rev 1.4"));
    assert_eq!(machine(&[("proc/device-tree/model", "\0")]).board, None);
}

#[test]
fn compressed_swap_is_told_from_a_file() {
    let header = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
    let swaps = |line: &str| machine(&[("proc/swaps", &format!("{header}{line}"))]).has_zram;
    assert!(swaps("/dev/zram0 partition 1048572 0 100\n"));
    assert!(!swaps("/swapfile file 1048572 0 -2\n"));
    assert!(!swaps(""));
}

#[test]
fn the_running_machine_can_be_looked_at() {
    Surroundings::read("/").unwrap();
}
