//! A process that is all ours collects the orphans of its jobs. One test: it is the whole process's choice.

mod support;

use headroom_core::job::{Stdio, Supervision};
use headroom_core::process::{become_subreaper, reap};
use support::{PATIENCE, Supervised, TestBox, roomy, shell, skipped, system, userspace_box, wait_until};

#[test]
fn orphans_come_to_us_and_are_collected_when_they_end() {
    let proc = system();
    let own = std::process::id().cast_signed();
    if proc.children(own).unwrap().is_none() {
        return skipped("this kernel has no /proc/PID/task/TID/children");
    }
    become_subreaper().unwrap();
    // Two orphans: the first ends at once, the second when our end of its input is closed.
    let script = "exec 3<&0; ( (sh -c 'echo $$; exit 7') & ); ( (sh -c 'echo $$; read line <&3') & ); read line";
    let mut command = shell(script);
    command.stdio = [Stdio::Pipe, Stdio::Pipe, Stdio::Null];
    let supervision = Supervision { collects_orphans: true, ..Supervision::default() };
    let in_box = TestBox { job_box: userspace_box(roomy()), base: None };
    let mut job = Supervised::start(in_box, command, supervision).unwrap();
    let stdin = job.pipe(0);
    let pids = two_numbers(job.pipe(1));

    wait_until("the orphan that ended is collected while its job runs", || {
        pids.iter().any(|pid| proc.stat(*pid).unwrap().is_none())
    });
    let waiting = *pids.iter().find(|pid| proc.stat(**pid).unwrap().is_some()).unwrap();
    assert_eq!(proc.stat(waiting).unwrap().unwrap().ppid, own);
    drop(stdin);
    let ended = job.ended();
    assert_eq!(ended["ending"]["exit_code"], 1, "the end of its input: {ended}");
    assert_eq!(ended["left_running"], serde_json::json!([]));
    // It ends at the same time as the command; whoever comes last finds it.
    wait_until("the other orphan is gone too", || {
        reap(waiting).is_ok_and(|ending| ending.is_some()) || proc.stat(waiting).unwrap().is_none()
    });
}

fn two_numbers(pipe: std::fs::File) -> [i32; 2] {
    use std::io::BufRead;
    let reader = std::thread::spawn(move || {
        let lines = std::io::BufReader::new(pipe).lines().take(2);
        lines.map(|line| line.unwrap().parse().unwrap()).collect::<Vec<i32>>()
    });
    let deadline = std::time::Instant::now() + PATIENCE;
    while !reader.is_finished() {
        assert!(std::time::Instant::now() < deadline, "the orphans did not say who they are");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    reader.join().unwrap().try_into().unwrap()
}
