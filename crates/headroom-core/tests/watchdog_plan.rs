//! What the watchdog decides: pure, over made-up times.

mod support;

use std::time::{Duration, Instant};

use headroom_core::boxing::BoxId;
use headroom_core::proc::ProcessKey;
use headroom_core::watchdog::{Cause, Judge, Plan, Reading, Rules, Stalls, Step, Verdict};
use support::MIB;

const CRITICAL: u64 = 96 * MIB;
const RESERVE: u64 = 256 * MIB;

fn rules() -> Rules {
    Rules {
        critical_bytes: CRITICAL,
        reserve_bytes: RESERVE,
        stalled_percent: 40,
        refaults_per_s: 1000,
        pause_limit: Duration::from_mins(1),
        observe: false,
        agent_pid: None,
    }
}

fn job(number: u32) -> BoxId {
    BoxId { owner: ProcessKey { pid: 100, start_ticks: 7 }, sequence: number }
}

fn verdict(available_mb: u64) -> Verdict {
    let available_bytes = available_mb * MIB;
    Verdict {
        cause: (available_bytes < CRITICAL).then_some(Cause::Available),
        is_agents_own: false,
        is_emergency: available_bytes < CRITICAL / 2,
        available_bytes,
        swap_free_bytes: 0,
        pause: Duration::from_millis(10),
    }
}

/// Looks again and again, some times a second, as the thread does.
struct Clock {
    plan: Plan,
    now: Instant,
}

impl Clock {
    fn new() -> Self {
        let rules = rules();
        Self { plan: Plan::new(rules.pause_limit, rules.reserve_bytes), now: Instant::now() }
    }

    fn look(&mut self, available_mb: u64, jobs: &[BoxId]) -> Option<Step> {
        self.plan.next(self.now, &verdict(available_mb), jobs)
    }

    /// Steps within so many milliseconds, without repetitions.
    fn within(&mut self, ms: u64, available_mb: u64, jobs: &[BoxId]) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..ms / 50 {
            self.now += Duration::from_millis(50);
            steps.extend(self.look(available_mb, jobs).filter(|step| steps.last() != Some(step)));
        }
        steps
    }
}

#[test]
fn without_danger_nothing_is_done() {
    let mut clock = Clock::new();
    assert_eq!(clock.within(60_000, 97, &[job(1), job(2)]), []);
    assert_eq!(clock.within(1000, 10, &[]), [], "and nothing can be done without jobs");
}

#[test]
fn a_single_job_is_asked_to_end_and_killed_two_seconds_later() {
    let mut clock = Clock::new();
    assert_eq!(clock.within(1950, 90, &[job(1)]), [Step::Terminate(job(1))]);
    assert_eq!(clock.within(1000, 90, &[job(1)]), [Step::Kill(job(1))]);
}

#[test]
fn a_job_that_ends_when_asked_is_not_killed() {
    let mut clock = Clock::new();
    assert_eq!(clock.within(500, 90, &[job(1)]), [Step::Terminate(job(1))]);
    assert_eq!(clock.within(5000, 90, &[]), []);
}

#[test]
fn with_half_of_the_line_left_there_is_no_time_to_ask() {
    let mut clock = Clock::new();
    assert_eq!(clock.within(50, 47, &[job(1), job(2)]), [Step::Kill(job(2))]);
    let mut clock = Clock::new();
    assert_eq!(clock.within(100, 90, &[job(1)]), [Step::Terminate(job(1))]);
    assert_eq!(clock.within(100, 40, &[job(1)]), [Step::Kill(job(1))], "nor to wait any longer");
}

#[test]
fn the_newest_is_paused_and_goes_on_when_an_older_one_has_ended() {
    let mut clock = Clock::new();
    let (old, new) = (job(1), job(2));
    assert_eq!(clock.within(50, 90, &[old, new]), [Step::Pause(new)]);
    assert_eq!(clock.within(20_000, 150, &[old, new]), [], "above the line, below the reserve: wait");
    assert_eq!(clock.within(100, 150, &[new]), [Step::Resume(new)]);
}

#[test]
fn a_paused_job_goes_on_when_there_is_memory_again() {
    let mut clock = Clock::new();
    let (old, new) = (job(1), job(2));
    assert_eq!(clock.within(50, 90, &[old, new]), [Step::Pause(new)]);
    assert_eq!(clock.within(900, 300, &[old, new]), [], "not within the same second");
    assert_eq!(clock.within(2000, 300, &[old, new]), [Step::Resume(new)]);
}

#[test]
fn what_was_pushed_out_must_have_room_to_come_back() {
    let mut clock = Clock::new();
    let (old, new) = (job(1), job(2));
    assert_eq!(clock.within(50, 90, &[old, new]), [Step::Pause(new)]);
    clock.plan.pages_are_leaving(new);
    assert_eq!(clock.within(3000, 90, &[old, new]), [], "writing to swap takes its time");
    assert_eq!(clock.within(3000, 400, &[old, new]), [], "and what becomes free is the job's own");
    clock.plan.pages_have_left(new, 400 * MIB);
    assert_eq!(clock.within(10_000, 500, &[old, new]), [], "the 400 MB would be missing at once");
    assert_eq!(clock.within(100, 700, &[old, new]), [Step::Resume(new)]);
}

#[test]
fn a_pause_that_does_not_help_ends_with_a_stop() {
    let mut clock = Clock::new();
    let (old, new) = (job(1), job(2));
    assert_eq!(clock.within(50, 90, &[old, new]), [Step::Pause(new)]);
    assert_eq!(clock.within(900, 90, &[old, new]), []);
    assert_eq!(clock.within(5000, 90, &[old, new]), [Step::Terminate(new), Step::Kill(new)]);
    let mut clock = Clock::new();
    assert_eq!(clock.within(50, 90, &[old, new]), [Step::Pause(new)]);
    assert_eq!(clock.within(50, 40, &[old, new]), [Step::Kill(new)], "at once, when it is getting worse");
}

#[test]
fn with_nobody_older_left_there_is_nothing_to_wait_for() {
    let mut clock = Clock::new();
    let (old, new) = (job(1), job(2));
    assert_eq!(clock.within(50, 90, &[old, new]), [Step::Pause(new)]);
    assert_eq!(clock.within(50, 90, &[new]), [Step::Terminate(new)]);
}

#[test]
fn pauses_are_bounded_in_all() {
    let mut clock = Clock::new();
    let (old, new) = (job(1), job(2));
    assert_eq!(clock.within(50, 90, &[old, new]), [Step::Pause(new)]);
    assert_eq!(clock.within(59_800, 150, &[old, new]), []);
    assert_eq!(clock.within(400, 150, &[old, new]), [Step::Resume(new)], "a minute is over");
    assert_eq!(clock.within(3000, 90, &[old, new]), [Step::Terminate(new)], "no second minute");
}

#[test]
fn the_oldest_is_safe_while_there_is_another() {
    let mut clock = Clock::new();
    let mut jobs = vec![job(1), job(2), job(3)];
    for expected in [3, 2] {
        let mut acted_on = Vec::new();
        for _ in 0..2000 {
            acted_on.extend(clock.within(50, 90, &jobs));
            if acted_on.contains(&Step::Kill(job(expected))) {
                break;
            }
        }
        let others = acted_on.iter().filter(|step| {
            let (Step::Pause(id) | Step::Resume(id) | Step::Terminate(id) | Step::Kill(id)) = step;
            *id != job(expected)
        });
        assert_eq!(others.count(), 0, "{acted_on:?}");
        jobs.pop();
    }
    assert!(clock.within(60_000, 90, &jobs).contains(&Step::Kill(job(1))), "alone it is no longer safe");
}

#[test]
fn after_a_job_has_gone_there_is_rest_but_not_in_an_emergency() {
    let mut clock = Clock::new();
    assert_eq!(clock.within(50, 40, &[job(1), job(2)]), [Step::Kill(job(2))]);
    assert_eq!(clock.within(14_500, 90, &[job(1)]), []);
    assert_eq!(clock.within(1000, 90, &[job(1)]), [Step::Terminate(job(1))]);
    let mut clock = Clock::new();
    assert_eq!(clock.within(50, 40, &[job(1), job(2)]), [Step::Kill(job(2))]);
    assert_eq!(clock.within(100, 40, &[job(1)]), [Step::Kill(job(1))]);
}

#[test]
fn a_job_that_came_later_goes_before_the_paused_one() {
    let mut clock = Clock::new();
    let jobs = [job(1), job(2)];
    assert_eq!(clock.within(50, 90, &jobs), [Step::Pause(job(2))]);
    let jobs = [job(1), job(2), job(3)];
    assert_eq!(clock.within(50, 90, &jobs), [Step::Terminate(job(3))]);
    assert_eq!(clock.plan.paused(), Some(job(2)));
}

#[test]
fn a_job_that_is_stuck_in_the_kernel_does_not_keep_the_next_one() {
    let mut clock = Clock::new();
    let jobs = [job(1), job(2), job(3)];
    assert_eq!(clock.within(9000, 40, &jobs), [Step::Kill(job(3))]);
    assert_eq!(clock.within(3000, 40, &jobs), [Step::Kill(job(3)), Step::Kill(job(2))]);
}

#[test]
fn a_pause_of_a_dead_watchdog_is_taken_over_with_its_time() {
    let mut clock = Clock::new();
    let (old, new) = (job(1), job(2));
    clock.plan.adopt_paused(clock.now, new, vec![old], Duration::from_secs(50));
    assert_eq!(clock.within(9500, 150, &[old, new]), []);
    assert_eq!(clock.within(1000, 150, &[old, new]), [Step::Resume(new)]);
}

/// Judges readings that are a quarter of a second apart.
fn causes(available_mb: u64, stalls: impl IntoIterator<Item = Stalls>) -> Vec<Option<Cause>> {
    let mut judge = Judge::new(rules());
    let mut at = Instant::now();
    let judged = stalls.into_iter().map(|stalls| {
        at += Duration::from_millis(250);
        let reading = Reading { at, available_bytes: available_mb * MIB, swap_free_bytes: 0, stalls };
        judge.judge(&reading).cause
    });
    judged.collect()
}

#[test]
fn available_memory_below_the_line_is_danger_at_the_first_look() {
    assert_eq!(causes(95, [Stalls::Unknown]), [Some(Cause::Available)]);
    assert_eq!(causes(96, [Stalls::Unknown]), [None]);
}

#[test]
fn an_agent_that_waits_for_memory_is_danger_however_much_there_seems_to_be() {
    let waits = |share: u64| (0..8).map(move |n| Stalls::Agent { total_us: 5000 + n * 2500 * share });
    assert_eq!(causes(5000, waits(39)), [None; 8]);
    let judged = causes(5000, waits(50));
    assert_eq!(judged[..2], [None, None], "one look says nothing about a rate");
    assert_eq!(judged[2..], [Some(Cause::Stalled(50)); 6]);
}

#[test]
fn the_agents_waiting_is_its_own_only_while_memory_is_not_short_for_all() {
    let judged = |available_mb: u64| {
        let mut judge = Judge::new(rules());
        let mut at = Instant::now();
        let verdicts = (0..4).map(|n| {
            at += Duration::from_millis(250);
            let stalls = Stalls::Agent { total_us: n * 200_000 };
            judge.judge(&Reading { at, available_bytes: available_mb * MIB, swap_free_bytes: 0, stalls })
        });
        verdicts.last().unwrap()
    };
    assert!(judged(5000).is_agents_own && judged(5000).cause.is_some());
    assert!(!judged(200).is_agents_own && judged(200).cause.is_some());
    assert!(!judged(50).is_agents_own);
}

#[test]
fn the_machines_pressure_counts_only_while_memory_is_short() {
    let waits = || (0..8).map(|n| Stalls::System { total_us: n * 200_000 });
    assert_eq!(causes(257, waits()), [None; 8], "a job that thrashes in its own box");
    assert_eq!(causes(255, waits())[2..], [Some(Cause::Stalled(80)); 6]);
}

#[test]
fn without_pressure_information_pages_that_come_back_stand_for_it() {
    let comes_back = |pages: u64| (0..8).map(move |n| Stalls::Refaults { total: 9 + n * pages / 4 });
    assert_eq!(causes(255, comes_back(900)), [None; 8]);
    assert_eq!(causes(257, comes_back(4000)), [None; 8]);
    assert_eq!(causes(255, comes_back(4000))[2..], [Some(Cause::Refaults(4000)); 6]);
}

#[test]
fn waiting_that_is_over_is_forgotten_within_a_second() {
    let totals = [0, 200, 400, 600, 800, 800, 800, 800, 800, 800].map(|ms| Stalls::Agent { total_us: ms * 1000 });
    let judged = causes(5000, totals);
    assert!(judged[4].is_some());
    assert_eq!(judged[9], None);
}

#[test]
fn totals_that_go_back_start_anew() {
    let totals = [900, 950, 990, 10, 20, 30].map(|ms| Stalls::Agent { total_us: ms * 1000 });
    assert_eq!(causes(5000, totals), [None; 6]);
}

#[test]
fn the_nearer_to_the_line_the_sooner_the_next_look() {
    let pause = |available_mb: u64| {
        let reading = Reading {
            at: Instant::now(),
            available_bytes: available_mb * MIB,
            swap_free_bytes: 0,
            stalls: Stalls::Unknown,
        };
        Judge::new(rules()).judge(&reading).pause
    };
    assert_eq!(pause(96), Duration::from_millis(10));
    assert_eq!(pause(96 + 300), Duration::from_millis(100));
    assert_eq!(pause(u64::MAX / MIB), Duration::from_millis(500));
}
