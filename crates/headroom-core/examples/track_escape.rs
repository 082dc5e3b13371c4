//! How many processes of commands that another process starts are outside their box, at their start and in the
//! end: `npm run bench:track`. The agent is this program once more. Each kind of launch is done one after the other,
//! on a machine that is kept busy. The words: how many launches of each kind, and how many busy loops beside.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result, and its agent answers")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use headroom_core::boxing::{BoxId, Limits, Mode, Placement, probe};
use headroom_core::cgroup::{Cgroup, Limit};
use headroom_core::job::Supervision;
use headroom_core::proc::ProcFs;
use headroom_core::tracker::{TrackedCall, finish, track};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Each tells where it is at once, and when it is in a box or half a second is over.
const LOOK: &str = "cg=/proc/self/cgroup; c() { while read -r l; do echo \"$l\"; done < $cg; }; \
    c > NAME.start; n=0; while [ $n -lt 50 ]; do n=$((n+1)); \
    case $(c) in *headroom-job-*) break;; esac; sleep 0.01; done; c > NAME.end; mv NAME.end NAME.done";

/// As an agent at work has.
const AGENT_THREADS: usize = 60;
const COST_OVER: Duration = Duration::from_secs(5);

const KINDS: [(&str, &str); 4] = [
    ("plain child", "sh SCRIPT"),
    ("orphan", "( (sh SCRIPT) & )"),
    ("new session", "setsid -f sh SCRIPT"),
    ("background shell", "sh SCRIPT"),
];

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "--agent") {
        return be_agent();
    }
    let launches: u32 = words.first().map_or(Ok(500), |word| word.parse())?;
    let busy: usize = words.get(1).map_or(Ok(2), |word| word.parse())?;
    let proc = ProcFs::system()?;
    let mut placements =
        probe(&proc).into_iter().filter(|verdict| matches!(verdict.mode, Mode::Cgroup2 | Mode::Cgroup1));
    let placement: Placement = placements.find_map(|verdict| verdict.outcome.ok()).ok_or("no kernel limit here")?;
    let parent = Cgroup::open(placement.base.as_ref().ok_or("no base")?, Placement::version(placement.mode))?;
    let name = format!("headroom-bench-{}", std::process::id());
    let base = parent.make_child(&name)?;
    if placement.mode == Mode::Cgroup2 {
        base.dir().write("cgroup.subtree_control", "+memory")?;
    }
    let placement = Placement { mode: placement.mode, base: Some(base.path().to_path_buf()) };
    let dir = std::env::temp_dir().join(&name);
    fs::create_dir(&dir)?;
    let mut agent = start_agent()?;
    base.make_child("agent")?.enter(agent.id().cast_signed())?;
    let loops: Vec<Child> =
        (0..busy).map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn()).collect::<Result<_, _>>()?;
    println!("mode {}, {launches} launches of each kind, {busy} busy loops", placement.mode);
    let outcome = measure_all(&proc, &placement, &mut agent, &dir, launches);
    let mut beside = start_agent()?;
    let costs = [("its own cgroup", agent.id()), ("the bench's own cgroup", beside.id())];
    for (place, pid) in costs {
        let percent = measure_cost(&proc, &placement, pid.cast_signed())?;
        println!(
            "looking every 5 ms at an agent with {AGENT_THREADS} threads in {place}: {percent:.2} % of a processor"
        );
    }
    beside.kill()?;
    beside.wait()?;
    for mut child in loops.into_iter().chain([agent]) {
        let _ended = child.kill();
        let _collected = child.wait();
    }
    base.kill_all()?;
    parent.remove_child(&name)?;
    fs::remove_dir_all(&dir)?;
    outcome
}

fn measure_all(proc: &ProcFs, placement: &Placement, agent: &mut Child, dir: &Path, launches: u32) -> Outcome<()> {
    println!("{:<18} {:>14} {:>16} {:>12} {:>10}", "", "began outside", "outside in end", "told escaped", "not found");
    for (kind, shape) in KINDS {
        let mut sum = [0_u32; 4];
        for number in 0..launches {
            let one = launch(proc, placement, agent, dir, (kind, shape), number)?;
            for (sum, one) in sum.iter_mut().zip(one) {
                *sum += u32::from(one);
            }
        }
        println!("{kind:<18} {:>14} {:>16} {:>12} {:>10}", sum[0], sum[1], sum[2], sum[3]);
    }
    Ok(())
}

/// Began outside, outside in the end, told as escaped, not found.
fn launch(
    proc: &ProcFs,
    placement: &Placement,
    agent: &mut Child,
    dir: &Path,
    (kind, shape): (&str, &str),
    number: u32,
) -> Outcome<[bool; 4]> {
    let name = dir.join(format!("{}-{number}", kind.replace(' ', "-")));
    let (script, start, done) = (name.with_extension("sh"), name.with_extension("start"), name.with_extension("done"));
    fs::write(&script, LOOK.replace("NAME", &name.display().to_string()))?;
    let text = shape.replace("SCRIPT", &script.display().to_string());
    let limits = Limits { memory_bytes: 256 << 20, swap: Limit::Bytes(0) };
    let job_box = placement.make_box(BoxId::new(proc)?, limits)?;
    let box_name = job_box.name().to_owned();
    let call = TrackedCall { agent: agent.id().cast_signed(), texts: vec![text.clone()], oom_score_adj: 900 };
    let tracked = track(call, job_box, Supervision::default())?;
    let shell = if kind == "background shell" { format!("set +m; {text}") } else { format!("cd /; eval '{text}'") };
    let line = format!("{}\t{shell}\n", if kind == "background shell" { "-lic" } else { "-c" });
    agent.stdin.as_mut().ok_or("no input")?.write_all(line.as_bytes())?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done.exists() {
        if Instant::now() > deadline {
            return Err("a launch did not tell where it is".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _maybe_over = finish(tracked.id);
    let mut events = String::new();
    UnixStream::from(tracked.events).read_to_string(&mut events)?;
    let is_outside = |file: &Path| fs::read_to_string(file).map(|text| !text.contains(&box_name));
    let told =
        [is_outside(&start)?, is_outside(&done)?, !events.contains("\"escaped\":0"), events.contains("not_entered")];
    for file in [script, start, done] {
        fs::remove_file(file)?;
    }
    Ok(told)
}

/// What the thread of a call takes that is never started, in the time after the first moment.
fn measure_cost(proc: &ProcFs, placement: &Placement, agent: i32) -> Outcome<f64> {
    let limits = Limits { memory_bytes: 256 << 20, swap: Limit::Bytes(0) };
    let job_box = placement.make_box(BoxId::new(proc)?, limits)?;
    let call = TrackedCall { agent, texts: vec!["never started".to_owned()], oom_score_adj: 900 };
    let tracked = track(call, job_box, Supervision::default())?;
    std::thread::sleep(Duration::from_secs(1));
    let (before, began) = (tracker_nanoseconds()?, Instant::now());
    std::thread::sleep(COST_OVER);
    #[expect(clippy::cast_precision_loss, reason = "a share in percent")]
    let percent = (tracker_nanoseconds()? - before) as f64 / began.elapsed().as_nanos() as f64 * 100.0;
    let _known = finish(tracked.id);
    UnixStream::from(tracked.events).read_to_end(&mut Vec::new())?;
    Ok(percent)
}

/// The time that this program's tracking threads have run. See the kernel's Documentation/scheduler/sched-stats.
fn tracker_nanoseconds() -> Outcome<u64> {
    let mut sum = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let path = task?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == "headroom-track" {
            let text = fs::read_to_string(path.join("schedstat"))?;
            sum += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
        }
    }
    Ok(sum)
}

fn start_agent() -> Outcome<Child> {
    let own = std::env::current_exe()?;
    Ok(Command::new(own).arg("--agent").env("BENCH_AGENT", "1").stdin(Stdio::piped()).spawn()?)
}

fn be_agent() -> Outcome<()> {
    for _ in 0..AGENT_THREADS {
        std::thread::spawn(std::thread::park);
    }
    for line in BufReader::new(std::io::stdin()).lines() {
        let line = line?;
        std::thread::spawn(move || {
            let (flag, text) = line.split_once('\t').unwrap_or(("-c", ""));
            let mut command = Command::new("bash");
            command.args([flag, text]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            // SAFETY: setsid is async-signal-safe.
            unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) };
            let _ended = command.status();
        });
    }
    Ok(())
}
