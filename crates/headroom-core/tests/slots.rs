//! Taking turns: never more holders than the limit, first come first served, whoever is killed when, and
//! whatever is wrong with the directory.

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use headroom_core::journal::RuntimeDir;
use headroom_core::slots::{Listing, MOST_SLOTS, Slot, Turn, Waiter, list};
use support::{Kid, PATIENCE, is_root, skipped, system, wait_until};
use tempfile::TempDir;

/// A runtime directory of one test.
struct Folder {
    dir: TempDir,
    runtime: RuntimeDir,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = RuntimeDir::at(&dir.path().join("run")).unwrap();
        Self { dir, runtime }
    }

    fn join(&self, limit: u32) -> Waiter {
        join(&self.runtime, limit, "test").unwrap()
    }

    fn slots(&self) -> PathBuf {
        self.runtime.path().join("slots")
    }

    fn list(&self) -> Listing {
        list(&system(), &self.runtime).unwrap()
    }

    /// Names of the files of the line, sorted.
    fn tickets(&self) -> Vec<String> {
        let names = fs::read_dir(self.slots()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("ticket-")).collect();
        names.sort();
        names
    }

    fn log(&self) -> Log {
        Log(self.dir.path().join("log"))
    }

    /// Another process that takes turns.
    fn taker(&self, name: &str, limit: u32, turns: u32) -> Kid {
        let mut command = helper("take-turns", self.runtime.path());
        command.env("NAME", name).env("LIMIT", limit.to_string()).env("TURNS", turns.to_string());
        Kid(command.env("LOG", &self.log().0).spawn().unwrap())
    }
}

fn join(runtime: &RuntimeDir, limit: u32, description: &str) -> headroom_core::Result<Waiter> {
    Waiter::join(&system(), runtime, NonZeroU32::new(limit).unwrap(), description)
}

#[track_caller]
fn taken(waiter: &mut Waiter) -> Slot {
    match waiter.try_take().unwrap() {
        Turn::Taken(slot) => slot,
        Turn::Ahead { waiting } => panic!("not taken, {waiting} wait before us"),
    }
}

#[track_caller]
fn ahead(waiter: &mut Waiter) -> usize {
    match waiter.try_take().unwrap() {
        Turn::Taken(_) => panic!("taken"),
        Turn::Ahead { waiting } => waiting,
    }
}

/// What the processes of a test did, in the order in which they did it: appended lines.
struct Log(PathBuf);

impl Log {
    fn add(&self, line: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Names of those who came in, in that order.
    fn came_in(&self) -> Vec<String> {
        let name = |line: &String| Some(line.strip_prefix("in ")?.split(' ').next()?.to_owned());
        self.lines().iter().filter_map(name).collect()
    }

    /// How long it is by now: what others have written is before this.
    fn position(&self) -> u64 {
        fs::metadata(&self.0).map_or(0, |file| file.len())
    }

    /// Fails when more than the highest limit were inside at once, or when somebody came in although as many
    /// as their own limit were inside from before they asked until they were in. Between taking a slot and
    /// writing it down another one may take and write, so less than that proves nothing. Who is about to be
    /// killed counts no longer: nobody can tell when the kernel lets go of their slot.
    fn assert_limits_were_kept(&self) {
        let (mut inside, mut doomed): (Vec<(String, u64)>, Vec<String>) = (Vec::new(), Vec::new());
        let (mut position, mut highest) = (0, 0);
        for line in self.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let name = words[1].to_owned();
            match words[0] {
                "in" if !doomed.contains(&name) => {
                    let (limit, asked): (usize, u64) = (words[2].parse().unwrap(), words[3].parse().unwrap());
                    highest = limit.max(highest);
                    let certain = inside.iter().filter(|(_, came_in)| *came_in < asked).count();
                    assert!(certain < limit, "{line}: {inside:?} were inside");
                    inside.push((name, position));
                    assert!(inside.len() <= highest, "{line}: {inside:?} are inside");
                }
                "out" => inside.retain(|(other, _)| *other != name),
                "kill" => {
                    inside.retain(|(other, _)| *other != name);
                    doomed.push(name);
                }
                _ => {}
            }
            position += line.len() as u64 + 1;
        }
    }
}

/// This test program again, as another process that plays a part.
fn helper(part: &str, runtime: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "part_of_another_process", "--nocapture"]).env("PART", part).env("RUNTIME", runtime);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

/// Does nothing, except in a process that `helper` starts.
#[test]
fn part_of_another_process() {
    let Ok(part) = std::env::var("PART") else { return };
    let runtime = || RuntimeDir::at(Path::new(&std::env::var_os("RUNTIME").unwrap())).unwrap();
    match part.as_str() {
        "take-turns" => take_turns(&runtime()),
        "fill-disk" => fill_disk(&runtime()),
        "read-only" => read_only(&runtime()),
        other => panic!("no part {other}"),
    }
}

fn take_turns(runtime: &RuntimeDir) {
    let variable = |name| std::env::var(name).unwrap();
    let (name, limit, turns): (_, u32, u32) =
        (variable("NAME"), variable("LIMIT").parse().unwrap(), variable("TURNS").parse().unwrap());
    let log = Log(variable("LOG").into());
    let parent = rustix::process::getppid();
    for _ in 0..turns {
        let mut waiter = join(runtime, limit, &name).unwrap();
        log.add(&format!("joined {name}"));
        let (slot, asked) = loop {
            let asked = log.position();
            if let Turn::Taken(slot) = waiter.try_take().unwrap() {
                break (slot, asked);
            }
            // The test is gone.
            if rustix::process::getppid() != parent {
                return;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        log.add(&format!("in {name} {limit} {asked}"));
        std::thread::sleep(Duration::from_micros(200));
        log.add(&format!("out {name}"));
        drop(slot);
    }
}

#[test]
fn the_first_takes_a_slot_and_gives_it_back() {
    let folder = Folder::new();
    let slot = taken(&mut folder.join(1));
    let mut second = folder.join(1);
    assert_eq!(ahead(&mut second), 0);
    drop(slot);
    let slot = taken(&mut second);
    assert_eq!(slot.number(), 0);
    assert_eq!(folder.tickets(), Vec::<String>::new());
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!((mode(&folder.slots()), mode(&folder.slots().join("slot-0"))), (0o700, 0o600));
}

#[test]
fn the_line_is_kept_and_may_be_left() {
    let folder = Folder::new();
    let slot = taken(&mut folder.join(1));
    let mut line: Vec<Waiter> = (0..4).map(|_| folder.join(1)).collect();
    assert_eq!(line.iter_mut().map(ahead).collect::<Vec<_>>(), [0, 1, 2, 3]);
    drop(line.remove(1));
    assert_eq!(line.iter_mut().map(ahead).collect::<Vec<_>>(), [0, 1, 2]);
    drop(slot);
    assert_eq!(ahead(&mut line[2]), 2, "a free slot is for the first in the line");
    assert_eq!(ahead(&mut line[1]), 1);
    let _slot = taken(&mut line[0]);
    assert_eq!(ahead(&mut line[1]), 0);
}

#[test]
fn everybody_counts_by_their_own_limit() {
    let folder = Folder::new();
    let first = taken(&mut folder.join(2));
    let (mut strict, mut generous) = (folder.join(1), folder.join(2));
    assert_eq!(ahead(&mut strict), 0);
    assert_eq!(ahead(&mut generous), 1, "whoever came first is waited for, whatever their limit");
    drop(strict);
    let second = taken(&mut generous);
    drop(first);
    let mut strict = folder.join(1);
    assert_eq!(ahead(&mut strict), 0, "slot-1 is held, which is beyond the limit of 1, and counts");
    drop(second);
    assert_eq!(taken(&mut strict).number(), 0);
}

#[test]
fn a_job_does_not_keep_the_slot_of_who_started_it() {
    let folder = Folder::new();
    let slot = taken(&mut folder.join(1));
    let _job = Kid::idle();
    drop(slot);
    let _slot = taken(&mut folder.join(1));
}

/// A child between fork and exec has the descriptor too, and is not asked to close it.
#[test]
fn a_slot_is_given_back_although_its_descriptor_was_copied() {
    let folder = Folder::new();
    let slot = taken(&mut folder.join(1));
    let own = folder.slots().join("slot-0");
    let is_own = |fd: &i32| fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|path| path == own);
    let numbers = fs::read_dir("/proc/self/fd").unwrap();
    let fd = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(is_own).unwrap();
    // SAFETY: it is the slot's, which is open until it is dropped below.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let _copy = borrowed.try_clone_to_owned().unwrap();
    drop(slot);
    let _slot = taken(&mut folder.join(1));
}

#[test]
fn eight_processes_never_hold_more_than_the_limit() {
    for limits in [[2, 2], [1, 1], [1, 2]] {
        let folder = Folder::new();
        let kids = (0..8).map(|n| folder.taker(&n.to_string(), limits[n % 2], 20));
        let mut kids: Vec<Kid> = kids.collect();
        wait_until("all have had their turns", || {
            kids.iter_mut().all(|kid| kid.0.try_wait().unwrap().is_some_and(|status| status.success()))
        });
        folder.log().assert_limits_were_kept();
        assert_eq!((folder.log().came_in().len(), folder.tickets()), (160, Vec::new()));
        assert_eq!(folder.list(), Listing::default());
    }
}

#[test]
fn processes_have_their_turns_in_the_order_of_their_arrival() {
    let folder = Folder::new();
    let slot = taken(&mut folder.join(1));
    let names: Vec<String> = (0..8).map(|n| format!("{n}")).collect();
    let mut kids = Vec::new();
    for name in &names {
        kids.push(folder.taker(name, 1, 1));
        wait_until("it has joined", || folder.log().lines().contains(&format!("joined {name}")));
    }
    let shown: Vec<String> = folder.list().waiting.into_iter().map(|waiter| waiter.description.unwrap()).collect();
    assert_eq!(shown, names);
    drop(slot);
    for kid in &mut kids {
        wait_until("it has had its turn", || kid.0.try_wait().unwrap().is_some());
    }
    assert_eq!(folder.log().came_in(), names);
}

/// Asks until the place in the line is marked anew: the kernel's clock for files goes in steps.
fn ask_and_be_seen(folder: &Folder, number: usize, waiter: &mut Waiter) {
    let file = folder.slots().join(&folder.tickets()[number]);
    let written = || fs::metadata(&file).unwrap().modified().unwrap();
    let before = written();
    wait_until("asking leaves a mark", || {
        ahead(waiter);
        written() != before
    });
}

/// Asks every second, as the waiter's clock has it. How many were before it at last; `None` with a slot.
fn ask_for(waiter: &mut Waiter, seconds: std::ops::Range<u64>, began: Instant) -> (Option<usize>, Option<Slot>) {
    let mut last = None;
    for second in seconds {
        match waiter.try_take_at(began + Duration::from_secs(second)).unwrap() {
            Turn::Taken(slot) => return (None, Some(slot)),
            Turn::Ahead { waiting } => last = Some(waiting),
        }
    }
    (last, None)
}

#[test]
fn who_does_not_ask_is_passed_over_and_keeps_the_place() {
    let folder = Folder::new();
    let began = Instant::now();
    let held = taken(&mut folder.join(1));
    let (mut first, mut second, mut third) = (folder.join(1), folder.join(1), folder.join(1));
    drop(held);
    assert_eq!(ask_for(&mut second, 0..8, began).0, Some(1), "a slot is free, and the first may be about to take it");
    ask_and_be_seen_with_a_held_slot(&folder, &mut first);
    assert_eq!(ask_for(&mut second, 8..16, began).0, Some(1), "it has asked meanwhile");
    let slot = ask_for(&mut second, 16..40, began).1.expect("the first is passed over");
    assert_eq!(ask_for(&mut third, 0..40, began).0, Some(0), "as it is by everybody");
    // It goes on.
    assert_eq!(ahead(&mut first), 0);
    ask_and_be_seen(&folder, 0, &mut first);
    assert_eq!(ask_for(&mut third, 40..42, began).0, Some(1));
    drop(slot);
    assert_eq!(ask_for(&mut third, 42..43, began).0, Some(1), "the place was kept");
    let _slot = taken(&mut first);
}

/// Asks while the only slot is held, so that it is not taken.
fn ask_and_be_seen_with_a_held_slot(folder: &Folder, first: &mut Waiter) {
    let held = File::open(folder.slots().join("slot-0")).unwrap();
    held.lock().unwrap();
    ask_and_be_seen(folder, 0, first);
}

#[test]
fn when_everybody_stood_still_nobody_is_passed_over_at_once() {
    let folder = Folder::new();
    let (mut first, mut second) = (folder.join(1), folder.join(1));
    let began = Instant::now();
    assert_eq!(ask_for(&mut second, 0..2, began).0, Some(1));
    assert_eq!(ask_for(&mut second, 5000..5002, began).0, Some(1), "the machine was suspended");
    let _slot = taken(&mut first);
}

fn signal(kid: &Kid, signal: i32) {
    headroom_core::process::PidFd::open(kid.pid()).unwrap().signal(signal).unwrap();
}

#[test]
fn a_process_that_is_stopped_in_the_line_blocks_nobody() {
    let folder = Folder::new();
    let held = taken(&mut folder.join(1));
    let mut kid = folder.taker("stopped", 1, 1);
    wait_until("it has joined", || folder.tickets().len() == 1);
    signal(&kid, libc::SIGSTOP);
    wait_until("it is stopped", || system().stat(kid.pid()).unwrap().unwrap().state == 'T');
    let mut waiter = folder.join(1);
    let stopped: Vec<bool> = folder.list().waiting.iter().map(|waiter| waiter.is_stopped).collect();
    assert_eq!(stopped, [true, false], "status tells it");
    drop(held);
    let slot = ask_for(&mut waiter, 0..40, Instant::now()).1.expect("the stopped one is passed over");
    assert_eq!(folder.list().waiting.len(), 1, "it is still in the line");
    signal(&kid, libc::SIGCONT);
    drop(slot);
    wait_until("it has had its turn", || kid.0.try_wait().unwrap().is_some_and(|status| status.success()));
    assert_eq!(folder.log().came_in(), ["stopped"]);
}

/// Between counting the holders and becoming one: without that lock two who come at once with different limits
/// would both find room.
#[test]
fn while_somebody_takes_a_slot_nobody_else_does() {
    let folder = Folder::new();
    drop(taken(&mut folder.join(1)));
    let taking = File::open(folder.slots().join("line")).unwrap();
    taking.lock().unwrap();
    let mut waiter = folder.join(1);
    assert_eq!((ahead(&mut waiter), folder.list().holders), (0, Vec::new()));
    drop(taking);
    let _slot = taken(&mut waiter);
}

#[test]
fn somebody_who_is_stopped_while_taking_a_slot_blocks_nobody() {
    let folder = Folder::new();
    drop(taken(&mut folder.join(1)));
    let path = folder.slots().join("line");
    let taking = File::open(&path).unwrap();
    taking.lock().unwrap();
    let (mut waiter, began) = (folder.join(1), Instant::now());
    assert_eq!(ask_for(&mut waiter, 0..8, began).0, Some(0), "it may be about to let go");
    let _slot = ask_for(&mut waiter, 8..40, began).1.expect("its lock is taken away");
    assert_ne!(taking.metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
}

#[test]
fn a_limit_above_the_most_is_as_good_as_the_most() {
    let folder = Folder::new();
    let slots: Vec<Slot> = (0..MOST_SLOTS).map(|_| taken(&mut folder.join(u32::MAX))).collect();
    assert_eq!(ahead(&mut folder.join(u32::MAX)), 0);
    drop(slots);
    assert_eq!(folder.list(), Listing::default());
}

#[test]
fn whoever_is_killed_loses_no_slot_and_blocks_nobody() {
    const ROUNDS: u32 = 200;
    let folder = Folder::new();
    let limit = |n: u32| 1 + n % 2;
    let name = |n: u32| format!("taker-{n}");
    let mut kids: Vec<(u32, Kid)> = (0..6).map(|n| (n, folder.taker(&name(n), limit(n), u32::MAX))).collect();
    let mut random = 88_172_645_463_325_252_u64;
    for n in 6..6 + ROUNDS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let victim = usize::try_from(random % 6).unwrap();
        std::thread::sleep(Duration::from_micros(random % 5000));
        folder.log().add(&format!("kill {}", name(kids[victim].0)));
        kids[victim] = (n, folder.taker(&name(n), limit(n), u32::MAX));
        // Everybody goes on, the new one as well.
        if n % 10 == 0 {
            let before = folder.log().came_in().len();
            wait_until("everybody has had a turn since", || {
                let came_in = folder.log().came_in();
                kids.iter().all(|(n, _)| came_in[before..].contains(&name(*n)))
            });
        }
    }
    for (n, kid) in kids.drain(..) {
        folder.log().add(&format!("kill {}", name(n)));
        drop(kid);
    }
    folder.log().assert_limits_were_kept();
    assert_eq!(folder.list(), Listing::default());
    let slots = [(); 2].map(|()| taken(&mut folder.join(2)));
    assert_eq!(slots.map(|slot| slot.number()), [0, 1]);
    assert_eq!(folder.tickets(), Vec::<String>::new(), "the tickets of the dead are removed");
}

#[test]
fn status_shows_who_holds_and_who_waits() {
    let folder = Folder::new();
    assert_eq!(folder.list(), Listing::default());
    assert!(!folder.slots().exists(), "looking makes nothing");
    let description = "{\"command\":\"npm ci\\n\",\"kind\":\"install\"}\nsecond line \u{1f980}";
    let slot = taken(&mut join(&folder.runtime, 1, description).unwrap());
    let mut waiter = folder.join(1);
    let own = system().own_key().unwrap();
    let listing = folder.list();
    let (holder, waiting) = (&listing.holders[0], &listing.waiting[0]);
    assert_eq!((listing.holders.len(), listing.waiting.len()), (1, 1));
    assert_eq!((holder.number, holder.process, holder.is_alive), (0, Some(own), true));
    assert_eq!(holder.description.as_deref(), Some(description), "any text comes back as it was");
    assert_eq!((waiting.process, waiting.description.as_deref()), (Some(own), Some("test")));
    let text = fs::read_to_string(folder.slots().join("slot-0")).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "one line of JSON: {text}");

    assert!(slot.describe("short") && waiter.describe("later"));
    let listing = folder.list();
    assert_eq!(listing.holders[0].description.as_deref(), Some("short"));
    assert_eq!(listing.waiting[0].description.as_deref(), Some("later"));
    drop(slot);
    assert_eq!(folder.list().holders, [], "what stands in a file that nobody holds is old");
    let _slot = taken(&mut waiter);
    assert_eq!(folder.list().holders[0].description.as_deref(), Some("later"));
}

#[test]
fn a_number_that_another_process_has_now_is_told_apart() {
    let folder = Folder::new();
    let _slot = taken(&mut folder.join(1));
    let file = folder.slots().join("slot-0");
    let kid = Kid::idle();
    let reused = kid.key();
    let line = |ticks: u64| format!("{{\"pid\":{},\"start_ticks\":{ticks},\"description\":\"old\"}}\n", reused.pid);
    fs::write(&file, line(reused.start_ticks)).unwrap();
    assert!(folder.list().holders[0].is_alive);
    fs::write(&file, line(reused.start_ticks - 1)).unwrap();
    assert!(!folder.list().holders[0].is_alive);
}

#[test]
fn corrupt_files_hide_who_it_is_and_change_nothing_else() {
    let folder = Folder::new();
    let slot = taken(&mut folder.join(1));
    let mut waiter = folder.join(1);
    let file = folder.slots().join("slot-0");
    for bytes in [&b""[..], b"{\"pid\":", b"\n", b"\xff\xfe\n", b"{\"pid\":\"x\"}\n", &vec![b'x'; 1 << 20]] {
        fs::write(&file, bytes).unwrap();
        fs::write(folder.slots().join(folder.tickets()[0].clone()), bytes).unwrap();
        let listing = folder.list();
        assert_eq!((listing.holders.len(), listing.waiting.len()), (1, 1));
        assert_eq!((listing.holders[0].process, &listing.holders[0].description), (None, &None));
        assert_eq!(ahead(&mut waiter), 0);
    }
    assert!(slot.describe("whole again"));
    assert_eq!(folder.list().holders[0].description.as_deref(), Some("whole again"));
    assert!(!slot.describe(&"x".repeat(1 << 17)), "too long to be read");
    assert!(folder.list().holders[0].is_alive && folder.list().holders[0].description.is_none());
}

#[test]
fn what_is_no_file_of_ours_costs_no_slot_and_blocks_nobody() {
    let folder = Folder::new();
    drop(folder.join(1));
    let slots = folder.slots();
    fs::create_dir(slots.join("slot-0")).unwrap();
    symlink(folder.dir.path().join("elsewhere"), slots.join("slot-1")).unwrap();
    fs::create_dir(slots.join("ticket-00000000000000000000")).unwrap();
    symlink("nowhere", slots.join("ticket-00000000000000000001")).unwrap();
    for name in ["ticket-", "ticket-7", "ticket-x", "slot-", "slot-00", "slot--1", "slot-99999999999", "\u{1f980}"] {
        fs::write(slots.join(name), "").unwrap();
    }
    let held = taken(&mut folder.join(1));
    assert_eq!(held.number(), 2);
    assert_eq!(ahead(&mut folder.join(1)), 0);
    assert!(!folder.dir.path().join("elsewhere").exists(), "nothing is made through a link");
    assert_eq!(folder.list().holders.len(), 1);
}

#[test]
fn a_ticket_that_was_deleted_is_made_again_in_its_place() {
    let folder = Folder::new();
    let slot = taken(&mut folder.join(1));
    let (mut first, mut second) = (folder.join(1), folder.join(1));
    fs::remove_file(folder.slots().join(&folder.tickets()[0])).unwrap();
    assert_eq!(ahead(&mut second), 0);
    assert_eq!((ahead(&mut first), ahead(&mut second)), (0, 1));
    drop(slot);
    let _slot = taken(&mut first);
    assert_eq!(folder.list().waiting.len(), 1);
}

#[test]
fn everything_may_be_deleted_at_any_time() {
    let folder = Folder::new();
    let held = taken(&mut folder.join(1));
    let mut waiter = folder.join(1);
    for entry in fs::read_dir(folder.slots()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    drop(held);
    let held = taken(&mut waiter);
    assert_eq!(ahead(&mut folder.join(1)), 0, "the new file counts");
    drop(held);
    let mut waiter = folder.join(1);
    fs::remove_dir_all(folder.slots()).unwrap();
    let error = waiter.try_take().unwrap_err();
    assert_eq!((error.code(), error.errno()), ("E_IO", Some(libc::ENOENT)), "{error}");
    let _slot = taken(&mut folder.join(1));
}

#[test]
fn a_thousand_dead_tickets_are_removed_by_who_meets_them() {
    let folder = Folder::new();
    drop(folder.join(1));
    for number in 0..1000 {
        File::create(folder.slots().join(format!("ticket-{number:020}"))).unwrap();
    }
    let mut waiter = folder.join(1);
    let mut asked = 0;
    let slot = loop {
        asked += 1;
        assert!(asked < 10, "each time some are removed");
        if let Turn::Taken(slot) = waiter.try_take().unwrap() {
            break slot;
        }
    };
    drop(slot);
    assert_eq!(folder.tickets(), Vec::<String>::new());
}

#[test]
fn numbers_of_tickets_do_not_run_out() {
    let folder = Folder::new();
    drop(folder.join(1));
    let last = folder.slots().join(format!("ticket-{}", u64::MAX));
    for number in [u64::MAX, u64::MAX - 1, 1 << 63] {
        File::create(folder.slots().join(format!("ticket-{number:020}"))).unwrap();
    }
    let mut waiter = folder.join(1);
    assert_eq!(folder.tickets(), ["ticket-00000000000000000000"], "nobody had them");
    drop(taken(&mut waiter));

    let somebody = File::create(&last).unwrap();
    somebody.lock().unwrap();
    let error = join(&folder.runtime, 1, "").unwrap_err();
    assert!(error.to_string().starts_with(last.to_str().unwrap()), "{error}");
    drop(somebody);
    let _slot = taken(&mut folder.join(1));
}

#[test]
fn a_directory_that_is_not_safe_is_refused() {
    let refused = |why: &str, prepare: &dyn Fn(&Path)| {
        let folder = Folder::new();
        prepare(&folder.slots());
        for error in [join(&folder.runtime, 1, "").unwrap_err(), list(&system(), &folder.runtime).unwrap_err()] {
            let text = error.to_string();
            assert_eq!(error.code(), "E_UNSAFE_DIRECTORY", "{text}");
            assert!(text.starts_with(folder.slots().to_str().unwrap()) && text.contains(why), "{text}");
        }
    };
    refused("symbolic link", &|slots| symlink("/tmp", slots).unwrap());
    refused("not a directory", &|slots| fs::write(slots, "").unwrap());
    refused("0700", &|slots| {
        fs::create_dir(slots).unwrap();
        fs::set_permissions(slots, fs::Permissions::from_mode(0o777)).unwrap();
    });
    if !is_root() {
        return skipped("only root can give a directory away");
    }
    refused("another user", &|slots| {
        fs::create_dir(slots).unwrap();
        std::os::unix::fs::chown(slots, Some(65_534), None).unwrap();
    });
}

/// Plays a part on a small file system of its own, which is gone with its process. `after` may change it.
#[track_caller]
fn on_a_small_disk(part: &str, after: &str) {
    let folder = Folder::new();
    let helper = helper(part, folder.runtime.path());
    let script = format!("mount -t tmpfs -o size=64k,mode=700 none \"$RUNTIME\" && {after} || exit 77; exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]).arg(helper.get_program());
    command.args(helper.get_args()).env("PART", part).env("RUNTIME", folder.runtime.path());
    let Ok(kid) = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn() else {
        return skipped("there is no unshare(1)");
    };
    let (started, mut kid) = (Instant::now(), Kid(kid));
    let status = loop {
        if let Some(status) = kid.0.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut said = String::new();
    std::io::Read::read_to_string(&mut kid.0.stderr.take().unwrap(), &mut said).unwrap();
    match status.code() {
        Some(0) => {}
        Some(101) => panic!("{said}"),
        _ => skipped(&format!("no file system can be mounted here: {said}")),
    }
}

#[test]
fn a_full_disk_costs_the_description_and_not_the_slot() {
    on_a_small_disk("fill-disk", "true");
}

fn fill_disk(runtime: &RuntimeDir) {
    let long = "x".repeat(5000);
    let held = taken(&mut join(runtime, 1, &long).unwrap());
    drop(held);
    let filler = runtime.path().join("filler");
    let mut file = File::create(&filler).unwrap();
    let mut use_up_room = || while file.write_all(&[0; 4096]).is_ok() {};
    use_up_room();

    let mut waiter = join(runtime, 1, &"y".repeat(9000)).unwrap();
    let listing = list(&system(), runtime).unwrap();
    assert_eq!((listing.waiting[0].process, &listing.waiting[0].description), (None, &None));
    let slot = taken(&mut waiter);
    let holder = &list(&system(), runtime).unwrap().holders[0];
    assert!(holder.is_alive && holder.description.is_none(), "what is written fits into the old block: {holder:?}");
    use_up_room();
    let mut other = join(runtime, 2, "other").unwrap();
    let second = taken(&mut other);
    assert_eq!(list(&system(), runtime).unwrap().holders[1].process, None);
    assert!(!second.describe("still full"));
    fs::remove_file(filler).unwrap();
    drop(file);
    assert!(second.describe("room again") && slot.describe("room again"));
}

#[test]
fn a_read_only_disk_is_an_error_that_names_it() {
    on_a_small_disk("read-only", "mount -o remount,ro \"$RUNTIME\"");
    on_a_small_disk("read-only", "mkdir -m 700 \"$RUNTIME/slots\" && mount -o remount,ro \"$RUNTIME\"");
}

fn read_only(runtime: &RuntimeDir) {
    let error = join(runtime, 1, "").unwrap_err();
    assert_eq!((error.code(), error.errno()), ("E_IO", Some(libc::EROFS)), "{error}");
    assert!(error.to_string().starts_with(runtime.path().to_str().unwrap()), "{error}");
    assert_eq!(list(&system(), runtime).unwrap(), Listing::default());
}
