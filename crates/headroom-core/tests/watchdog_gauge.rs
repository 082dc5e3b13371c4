//! Whose waiting for memory is the agent's own.

mod support;

use headroom_core::watchdog::Gauge;
use support::FakeProc;

const MEMINFO: &str = "MemTotal: 1000 kB\nMemAvailable: 500 kB\n";

/// An agent with the number 10 in this cgroup.
fn gauge(agent: &str) -> (FakeProc, Gauge) {
    let fake = FakeProc::new()
        .file("meminfo", MEMINFO)
        .file("self/cgroup", "0::/elsewhere\n")
        .file("self/mountinfo", "")
        .file("10/cgroup", format!("0::{agent}\n"))
        .file("1/cgroup", "0::/\n")
        .file("2/cgroup", "0::/agents/one\n")
        .file("3/cgroup", "0::/agents/one/headroom-job-1-2-3\n")
        .file("4/cgroup", "0::/agents/one-more\n")
        .file("5/cgroup", "1:memory:/x\n");
    let gauge = Gauge::new(fake.open(), 0, Some(10)).unwrap();
    (fake, gauge)
}

#[test]
fn a_job_in_the_agents_cgroup_or_below_it_waits_with_it() {
    let (_fake, gauge) = gauge("/agents/one");
    let with_it: Vec<bool> = (1..=6).map(|pid| gauge.is_with_agent(pid)).collect();
    assert_eq!(with_it, [false, true, true, false, false, false]);
}

#[test]
fn an_agent_in_the_root_waits_with_everybody() {
    let (_fake, gauge) = gauge("/");
    let with_it: Vec<bool> = (1..=4).map(|pid| gauge.is_with_agent(pid)).collect();
    assert_eq!(with_it, [true; 4]);
}
