//! Signals of this process reach its job. One test: the handlers are the whole process's.

mod support;

use headroom_core::job::{Stdio, Supervision};
use headroom_core::process::SignalForwarder;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;
use support::{Supervised, TestBox, roomy, shell, userspace_box, wait_until};

fn job(script: &str, forwarder: &SignalForwarder) -> Supervised {
    let mut with_pipe = shell(script);
    with_pipe.stdio[1] = Stdio::Pipe;
    let supervision = Supervision { forwarder: Some(forwarder.clone()), ..Supervision::default() };
    Supervised::start(TestBox { job_box: userspace_box(roomy()), base: None }, with_pipe, supervision).unwrap()
}

#[test]
fn signals_are_passed_on_early_ones_when_the_job_starts() {
    let forwarder = SignalForwarder::install().unwrap();
    assert_eq!(forwarder.last_ending_signal(), None);

    kill_process(getpid(), Signal::USR1).unwrap();
    let early = job("exec sleep 1000", &forwarder);
    let ended = early.ended();
    assert_eq!((&ended["ending"], &ended["ended_by_signal"]), (&json!({ "signal": libc::SIGUSR1 }), &json!(null)));

    let mut later = job(
        "trap 'kill $!; exit 43' TERM; trap : WINCH; sleep 1000 >/dev/null & echo ready; wait; wait; wait",
        &forwarder,
    );
    assert_eq!(later.first_line(), "ready");
    kill_process(getpid(), Signal::WINCH).unwrap();
    kill_process(getpid(), Signal::TERM).unwrap();
    let ended = later.ended();
    assert_eq!((&ended["ending"], &ended["ended_by_signal"]), (&json!({ "exit_code": 43 }), &json!(libc::SIGTERM)));
    assert_eq!(forwarder.last_ending_signal(), Some(libc::SIGTERM));

    // Their job is over: the next ones reach nobody and harm nobody.
    kill_process(getpid(), Signal::HUP).unwrap();
    wait_until("the signal was noted", || forwarder.last_ending_signal() == Some(libc::SIGHUP));
}
