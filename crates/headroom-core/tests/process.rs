//! Single processes: handles that cannot be confused, collecting children, `oom_score_adj`.

mod support;

use std::process::Command;
use std::time::Duration;

use headroom_core::Error;
use headroom_core::proc::ProcessKey;
use headroom_core::process::{Ending, OomScore, PidFd, own_oom_score_adj, reap, reap_orphans};
use support::{FakeProc, Kid, PATIENCE, dead_key, system, wait_until};

#[track_caller]
fn assert_gone<T: std::fmt::Debug>(answer: Result<T, Error>, asked: i32) {
    match answer {
        Err(Error::Gone { pid }) => assert_eq!(pid, asked),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_handle_is_opened_on_a_living_process() {
    let kid = Kid::idle();
    assert_eq!(PidFd::open(kid.pid()).unwrap().pid(), kid.pid());
    assert_eq!(PidFd::open_exactly(&system(), kid.key()).unwrap().pid(), kid.pid());
}

#[test]
fn a_process_that_is_gone_has_no_handle() {
    let dead = dead_key();
    assert_gone(PidFd::open(0x7fff_ffff), 0x7fff_ffff);
    assert_gone(PidFd::open_exactly(&system(), dead), dead.pid);
}

#[test]
fn zero_and_negative_numbers_are_no_process() {
    for pid in [0, -1, i32::MIN] {
        assert_gone(PidFd::open(pid), pid);
    }
}

#[test]
fn a_process_with_another_start_time_is_not_the_one_meant() {
    let kid = Kid::idle();
    let key = kid.key();
    for start_ticks in [key.start_ticks + 1, key.start_ticks - 1, 0] {
        assert_gone(PidFd::open_exactly(&system(), ProcessKey { start_ticks, ..key }), key.pid);
    }
}

#[test]
fn a_signal_reaches_the_process() {
    let mut kid = Kid::idle();
    let handle = PidFd::open(kid.pid()).unwrap();
    handle.signal(libc::SIGTERM).unwrap();
    assert!(handle.wait(PATIENCE).unwrap());
    let status = kid.0.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
}

#[test]
fn a_number_that_is_no_signal_is_refused() {
    let kid = Kid::idle();
    let handle = PidFd::open(kid.pid()).unwrap();
    for signal in [-1, 0, 1000] {
        let error = handle.signal(signal).unwrap_err();
        assert_eq!((error.code(), error.errno()), ("E_CALL", Some(libc::EINVAL)));
    }
    assert!(system().is_alive(kid.key()));
}

#[test]
fn a_handle_never_reaches_a_later_process_of_the_same_number() {
    let mut kid = Kid::idle();
    let handle = PidFd::open(kid.pid()).unwrap();
    kid.0.kill().unwrap();
    kid.0.wait().unwrap();
    assert_gone(handle.signal(libc::SIGTERM), handle.pid());
}

#[test]
fn waiting_tells_a_running_process_from_one_that_has_ended() {
    let mut kid = Kid::idle();
    let handle = PidFd::open(kid.pid()).unwrap();
    assert!(!handle.wait(Duration::ZERO).unwrap());
    assert!(!handle.wait(Duration::from_millis(20)).unwrap());
    drop(kid.0.stdin.take());
    assert!(handle.wait(PATIENCE).unwrap());
    assert!(handle.wait(Duration::ZERO).unwrap(), "it stays ended");
    kid.0.wait().unwrap();
    assert!(handle.wait(Duration::MAX).unwrap(), "also after it was collected");
}

#[test]
fn a_child_is_collected_once_with_its_exit_code() {
    let kid = Kid(Command::new("sh").args(["-c", "exit 37"]).spawn().unwrap());
    wait_until("the child has ended", || system().living(kid.pid()).unwrap().is_none());
    assert_eq!(reap(kid.pid()).unwrap(), Some(Ending::ExitCode(37)));
    assert_gone(reap(kid.pid()), kid.pid());
}

#[test]
fn a_child_is_collected_with_the_signal_that_ended_it() {
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGABRT] {
        let kid = Kid::idle();
        PidFd::open(kid.pid()).unwrap().signal(signal).unwrap();
        wait_until("the child has ended", || system().living(kid.pid()).unwrap().is_none());
        assert_eq!(reap(kid.pid()).unwrap(), Some(Ending::Signal(signal)));
    }
}

#[test]
fn a_running_or_stopped_child_is_not_collected() {
    let kid = Kid::idle();
    assert_eq!(reap(kid.pid()).unwrap(), None);
    PidFd::open(kid.pid()).unwrap().signal(libc::SIGSTOP).unwrap();
    wait_until("the child is stopped", || system().stat(kid.pid()).unwrap().unwrap().state == 'T');
    assert_eq!(reap(kid.pid()).unwrap(), None);
}

#[test]
fn collecting_one_child_leaves_the_others_to_whoever_started_them() {
    let mut others: Vec<Kid> = (0..3).map(|_| Kid::idle()).collect();
    let mut ours = Kid::idle();
    for kid in others.iter_mut().chain([&mut ours]) {
        kid.become_zombie();
    }
    assert_eq!(reap(ours.pid()).unwrap(), Some(Ending::Signal(libc::SIGKILL)));
    for other in &mut others {
        assert!(other.0.try_wait().unwrap().is_some(), "its status is still there for its starter");
    }
}

#[test]
fn a_process_that_is_no_child_is_left_alone() {
    let parent = std::os::unix::process::parent_id().cast_signed();
    for pid in [1, parent].into_iter().filter(|pid| *pid > 0) {
        assert_gone(reap(pid), pid);
    }
    assert_gone(reap(0), 0);
}

#[test]
fn a_negative_number_is_no_child() {
    assert_gone(reap(-1), -1);
}

#[test]
fn orphans_are_collected_among_those_named_only() {
    let (mut ended, mut unnamed, running) = (Kid::idle(), Kid::idle(), Kid::idle());
    ended.become_zombie();
    unnamed.become_zombie();
    reap_orphans([ended.pid(), running.pid(), 1, 0x7fff_ffff]);
    assert_eq!(system().stat(ended.pid()).unwrap(), None);
    assert!(system().stat(unnamed.pid()).unwrap().unwrap().is_zombie());
    assert!(system().living(running.pid()).unwrap().is_some());
}

#[test]
fn an_ending_is_shown_as_a_shell_shows_it() {
    assert_eq!(Ending::ExitCode(3).as_exit_code(), 3);
    assert_eq!(Ending::Signal(libc::SIGKILL).as_exit_code(), 137);
    assert_eq!(serde_json::to_string(&Ending::ExitCode(3)).unwrap(), r#"{"exit_code":3}"#);
    assert_eq!(serde_json::to_string(&Ending::Signal(9)).unwrap(), r#"{"signal":9}"#);
}

#[test]
fn a_score_is_raised_and_never_lowered() {
    let text =
        |own, wanted| OomScore::raise(own, wanted).map(|score| String::from_utf8(score.as_bytes().to_vec()).unwrap());
    assert_eq!(text(0, 500).as_deref(), Some("500"));
    assert_eq!(text(-1000, -999).as_deref(), Some("-999"));
    assert_eq!(text(0, i32::MAX).as_deref(), Some("1000"));
    assert_eq!(text(999, 1000).as_deref(), Some("1000"));
    for (own, wanted) in [(500, 500), (500, 499), (0, -1000), (0, i32::MIN), (1000, 5000), (-1000, i32::MIN)] {
        assert_eq!(text(own, wanted), None, "{own} to {wanted}");
    }
}

#[test]
fn the_own_score_is_read() {
    let own = own_oom_score_adj(&system()).unwrap();
    let text = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_eq!(own.to_string(), text.trim());
    assert_eq!(own_oom_score_adj(&FakeProc::new().file("self/oom_score_adj", "-17\n").open()).unwrap(), -17);
}

#[test]
fn an_absent_or_malformed_own_score_names_the_file() {
    let absent = own_oom_score_adj(&FakeProc::new().open()).unwrap_err();
    assert_eq!((absent.code(), absent.errno()), ("E_IO", Some(libc::ENOENT)));
    for text in ["", "high\n", "1.5\n"] {
        let error = own_oom_score_adj(&FakeProc::new().file("self/oom_score_adj", text).open()).unwrap_err();
        assert!(error.code() == "E_PARSE" && error.to_string().contains("self/oom_score_adj"), "{error}");
    }
}
