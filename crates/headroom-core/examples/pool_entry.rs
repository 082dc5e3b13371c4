//! What it costs to bring a process into a pool of a real user manager, beside `systemd-run --user --scope`
//! in the same run. Wants a session bus: `npm run bench:pool` brings one. The first word is how many rounds.
//!
//! Leaves are made without limits here: where the memory controller is on cgroup v1, a v2 leaf can have
//! none. What a limit costs is in `npm run bench:box`.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use headroom_core::cgroup::{Cgroup, Hierarchies, Limit, Version};
use headroom_core::proc::ProcFs;
use headroom_core::systemd::{Bus, Manager, UnitLimits};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const LIMITS: UnitLimits = UnitLimits { memory_bytes: 1 << 30, swap: Limit::Bytes(0) };

/// A process that waits, ended with this.
struct Waiting(Child);

impl Waiting {
    fn start() -> std::io::Result<Self> {
        Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().map(Self)
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _collected = self.0.wait();
    }
}

fn main() -> Outcome<()> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(200), |word| word.parse())?;
    let proc = ProcFs::system()?;
    let manager = Manager::of(Bus::User)?;
    let mount = Hierarchies::of_self(&proc)?.v2.ok_or("no cgroup v2 hierarchy")?.mount_point;
    println!("{:<52} {:>8} {:>8} {:>8}", "milliseconds", "p50", "p90", "max");

    report("plain /bin/true, for comparison", &time(rounds, || Ok(Command::new("true").status().map(drop)?))?);
    report(
        "systemd-run --user --scope true",
        &time(rounds, || {
            let words = ["--user", "--scope", "--quiet", "--collect", "true"];
            Ok(Command::new("systemd-run").args(words).stderr(Stdio::null()).status().map(drop)?)
        })?,
    );

    let mut number = 0;
    let unit = |number: &mut u32| {
        *number += 1;
        format!("headroom-bench-{}-{number}.scope", std::process::id())
    };
    let mut waiting = Vec::new();
    for _ in 0..rounds {
        waiting.push(Waiting::start()?);
    }
    let mut pids = waiting.iter().map(Waiting::pid);
    report(
        "new pool: StartTransientUnit until JobRemoved",
        &time(rounds, || {
            let pid = pids.next().ok_or("no process left")?;
            Ok(manager.start_scope(&unit(&mut number), "bench", LIMITS, &[pid])?)
        })?,
    );
    drop(pids);
    drop(waiting);

    let (keeper, guest) = (Waiting::start()?, Waiting::start()?);
    let pool_unit = unit(&mut number);
    manager.start_scope(&pool_unit, "bench", LIMITS, &[keeper.pid(), guest.pid()])?;
    let path = proc.membership(keeper.pid())?.and_then(|membership| membership.v2).ok_or("the keeper is gone")?;
    let pool = Cgroup::open(mount.join(path.trim_start_matches('/')), Version::V2)?;
    report(
        "pool there, by files: leaf made, entered, left, removed",
        &time(rounds, || {
            let leaf = pool.make_child("headroom-bench-leaf")?;
            leaf.make_child("job")?.enter(guest.pid())?;
            pool.enter(guest.pid())?;
            if pool.remove_child("headroom-bench-leaf")? { Ok(()) } else { Err("the leaf was not empty".into()) }
        })?,
    );
    pool.make_child("bench")?;
    report(
        "pool there, by AttachProcessesToUnit",
        &time(rounds, || Ok(manager.attach(&pool_unit, "/bench", &[guest.pid()])?))?,
    );
    Ok(())
}

fn time(rounds: usize, mut action: impl FnMut() -> Outcome<()>) -> Outcome<Vec<f64>> {
    let mut durations = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        action()?;
        durations.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    durations.sort_by(f64::total_cmp);
    Ok(durations)
}

fn report(name: &str, sorted: &[f64]) {
    let at =
        |percent: usize| sorted.get((sorted.len() * percent / 100).min(sorted.len() - 1)).copied().unwrap_or(f64::NAN);
    println!("{name:<52} {:>8.3} {:>8.3} {:>8.3}", at(50), at(90), at(100));
}
