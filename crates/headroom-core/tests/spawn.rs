//! `spawn()`: a command starts inside its box, with nothing of its starter's but what it was given.

mod support;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use headroom_core::boxing::JobBox;
use headroom_core::cgroup::Version;
use headroom_core::job::{Command, SpawnError, Stdio, spawn};
use headroom_core::process::{Ending, OomScore, own_oom_score_adj};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use support::{Spawn, TestBase, command, every_box, fixture, roomy, shell, skipped, system, userspace_box, wait_until};

fn read_all(pipe: Option<OwnedFd>) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::from(pipe.unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Runs a command to its end; answers what it wrote and how it ended.
fn run(mut command: Command, job_box: &JobBox) -> (Vec<u8>, Ending) {
    command.stdio[1] = Stdio::Pipe;
    let started = spawn(&command, job_box).unwrap();
    let process = Spawn(started.pid);
    let [_, stdout, _] = started.pipes;
    (read_all(stdout), process.ending())
}

fn output(command: Command, job_box: &JobBox) -> String {
    let (bytes, ending) = run(command, job_box);
    assert_eq!(ending, Ending::ExitCode(0));
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_exit_code_and_the_ending_signal_are_the_commands_own() {
    for in_box in every_box(roomy()) {
        for (script, ending) in [
            ("exit 0", Ending::ExitCode(0)),
            ("exit 37", Ending::ExitCode(37)),
            ("kill -TERM $$", Ending::Signal(libc::SIGTERM)),
            ("kill -KILL $$", Ending::Signal(libc::SIGKILL)),
        ] {
            assert_eq!(run(shell(script), &in_box.job_box).1, ending, "{script}");
        }
    }
}

#[test]
fn words_are_passed_as_they_are() {
    for in_box in every_box(roomy()) {
        let mut printf = command(&["printf", "%s|", "", "a b", "*", "$HOME", "\"'\\", "two\nlines"]);
        printf.argv.push(OsStr::from_bytes(b"caf\xe9").to_owned());
        let (bytes, ending) = run(printf, &in_box.job_box);
        assert_eq!(bytes, b"|a b|*|$HOME|\"'\\|two\nlines|caf\xe9|");
        assert_eq!(ending, Ending::ExitCode(0));
    }
}

#[test]
fn the_three_streams_are_pipes_where_pipes_were_asked_for() {
    for in_box in every_box(roomy()) {
        let mut both = shell("cat; echo problem >&2");
        both.stdio = [Stdio::Pipe; 3];
        let started = spawn(&both, &in_box.job_box).unwrap();
        let process = Spawn(started.pid);
        let [stdin, stdout, stderr] = started.pipes;
        let mut stdin = File::from(stdin.unwrap());
        stdin.write_all(b"into the box and back").unwrap();
        drop(stdin);
        assert_eq!(read_all(stdout), b"into the box and back");
        assert_eq!(read_all(stderr), b"problem\n");
        assert_eq!(process.ending(), Ending::ExitCode(0));
    }
}

#[test]
fn streams_that_go_nowhere_or_are_inherited_have_no_pipe() {
    let job_box = userspace_box(roomy());
    for stream in [Stdio::Null, Stdio::Inherit] {
        let mut quiet = command(&["true"]);
        quiet.stdio = [stream; 3];
        let started = spawn(&quiet, &job_box).unwrap();
        let process = Spawn(started.pid);
        assert!(started.pipes.iter().all(Option::is_none));
        assert_eq!(process.ending(), Ending::ExitCode(0));
    }
    assert_eq!(output(shell("cat; readlink /proc/self/fd/0"), &job_box), "/dev/null\n");
}

#[test]
fn an_inherited_stream_is_our_own() {
    let own = fs::read_link("/proc/self/fd/2").unwrap();
    let mut look = command(&["readlink", "/proc/self/fd/2"]);
    look.stdio[2] = Stdio::Inherit;
    assert_eq!(output(look, &userspace_box(roomy())).trim(), own.to_string_lossy());
}

/// Descriptors that this process was itself given to pass on.
fn passed_on_to_us() -> BTreeSet<String> {
    let is_passed_on = |name: &String| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("02000000");
        i32::from_str_radix(flags.trim(), 8).unwrap() & libc::O_CLOEXEC == 0
    };
    let names = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(is_passed_on).collect()
}

#[test]
fn no_descriptor_of_ours_is_open_in_the_child() {
    let mut expected = passed_on_to_us();
    expected.extend(["0", "1", "2"].map(str::to_owned));
    for in_box in every_box(roomy()) {
        let script = r"for fd in /proc/self/fd/*; do echo ${fd##*/}; done";
        let names = output(shell(script), &in_box.job_box);
        let mut open: BTreeSet<String> = names.split_whitespace().map(str::to_owned).collect();
        // The shell lists its folder through a descriptor of its own, the lowest one that is free.
        let listing = (3..1000).map(|fd| fd.to_string()).find(|fd| !expected.contains(fd)).unwrap();
        open.remove(&listing);
        assert_eq!(open, expected);
    }
}

#[test]
fn the_command_runs_in_its_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    for in_box in every_box(roomy()) {
        let mut pwd = command(&["pwd", "-P"]);
        pwd.cwd = Some(real.clone());
        assert_eq!(output(pwd, &in_box.job_box).trim_end(), real.to_str().unwrap());
        let own = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(output(command(&["pwd", "-P"]), &in_box.job_box).trim_end(), own.to_str().unwrap());
    }
}

#[test]
fn a_missing_working_directory_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for in_box in every_box(roomy()) {
        for cwd in [folder.path().join("absent"), file.clone()] {
            let mut lost = command(&["true"]);
            lost.cwd = Some(cwd.clone());
            match spawn(&lost, &in_box.job_box).unwrap_err() {
                SpawnError::WorkingDirectory { cwd: named, .. } => assert_eq!(named, cwd),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Runs with the powers of an ordinary user, as far as permissions of files go. Root's are a thread's own.
fn without_power_over_files<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let powerless = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, sets).unwrap();
            act()
        });
        powerless.join().unwrap()
    })
}

#[test]
fn a_working_directory_that_may_not_be_entered_is_told_as_such() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let mut lost = command(&["true"]);
    lost.cwd = Some(closed.clone());
    let job_box = userspace_box(roomy());
    let answer = without_power_over_files(|| spawn(&lost, &job_box));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    match answer.map(|started| Spawn(started.pid).ending()) {
        Err(SpawnError::WorkingDirectory { cwd, source }) => {
            assert_eq!((cwd, source.raw_os_error()), (closed, Some(libc::EACCES)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_that_does_not_exist_is_not_found() {
    for in_box in every_box(roomy()) {
        for program in ["headroom-no-such-program", "/nonexistent/program", "/dev/null/program"] {
            match spawn(&command(&[program]), &in_box.job_box).unwrap_err() {
                SpawnError::NotFound { program: named } => assert_eq!(named, program),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_file_that_may_not_be_executed_is_not_executable() {
    for in_box in every_box(roomy()) {
        for program in [fixture("bin/not-executable"), fixture("bin")] {
            match spawn(&command(&[program.to_str().unwrap()]), &in_box.job_box).unwrap_err() {
                SpawnError::NotExecutable { program: named, source } => {
                    assert_eq!(
                        (named.as_str(), source.raw_os_error()),
                        (program.to_str().unwrap(), Some(libc::EACCES))
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
    let script = fixture("bin/no-shebang");
    for in_box in every_box(roomy()) {
        let said = output(command(&[script.to_str().unwrap(), "a", "b c"]), &in_box.job_box);
        assert_eq!(said, "no interpreter line, arguments: a b c\n");
    }
}

#[test]
fn a_program_is_looked_up_on_the_path_of_the_child() {
    let job_box = userspace_box(roomy());
    let with_path = |program: &str| {
        let mut look_up = command(&[program]);
        look_up.env = vec![("PATH".into(), fixture("bin").into())];
        look_up
    };
    assert_eq!(output(with_path("no-shebang"), &job_box), "no interpreter line, arguments: \n");
    assert!(
        matches!(spawn(&with_path("true"), &job_box), Err(SpawnError::NotFound { .. })),
        "our own PATH is not used"
    );
    assert!(matches!(spawn(&with_path("not-executable"), &job_box), Err(SpawnError::NotExecutable { .. })));
}

#[test]
fn a_command_without_words_or_with_a_zero_byte_in_one_starts_nothing() {
    let job_box = userspace_box(roomy());
    assert!(matches!(spawn(&command(&[]), &job_box), Err(SpawnError::Other(_))));
    assert!(matches!(spawn(&command(&["true", "a\0b"]), &job_box), Err(SpawnError::Other(_))));
}

#[test]
fn the_environment_is_passed_whole_and_nothing_else() {
    let cat = fs::canonicalize(output(shell("command -v cat"), &userspace_box(roomy())).trim_end()).unwrap();
    let env: Vec<(OsString, OsString)> = vec![
        ("PLAIN".into(), "value".into()),
        ("EMPTY".into(), "".into()),
        ("EQUALS".into(), "a=b=c".into()),
        ("LINES".into(), "one\ntwo".into()),
        ("LONG".into(), "x".repeat(100_000).into()),
        (OsString::from_vec(b"N\xc3M\xe9".to_vec()), OsString::from_vec(b"\xff\xfe value".to_vec())),
    ];
    for in_box in every_box(roomy()) {
        let mut look = command(&[cat.to_str().unwrap(), "/proc/self/environ"]);
        look.env.clone_from(&env);
        let (bytes, ending) = run(look, &in_box.job_box);
        assert_eq!(ending, Ending::ExitCode(0));
        let got: BTreeSet<&[u8]> = bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).collect();
        let expected: Vec<Vec<u8>> = env.iter().map(|(n, v)| [n.as_bytes(), b"=", v.as_bytes()].concat()).collect();
        assert_eq!(got, expected.iter().map(Vec::as_slice).collect());
    }
}

fn signal_mask(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

fn ignores(mask: u64, signal: i32) -> bool {
    mask & (1 << (signal - 1)) != 0
}

/// Sets what this process does at a signal: ignore it or the default.
fn set_action(signal: i32, action: libc::sighandler_t) {
    // SAFETY: installs no handler; `signal` is a valid number.
    assert_ne!(unsafe { libc::signal(signal, action) }, libc::SIG_ERR);
}

#[test]
fn ignored_signals_stay_ignored_but_those_that_the_host_ignores_for_itself() {
    // As nohup does, and as Node and the Rust runtime do.
    for signal in [libc::SIGHUP, libc::SIGXFSZ, libc::SIGPIPE] {
        set_action(signal, libc::SIG_IGN);
    }
    for in_box in every_box(roomy()) {
        let status = output(command(&["cat", "/proc/self/status"]), &in_box.job_box);
        let ignored = signal_mask(&status, "SigIgn:");
        assert!(ignores(ignored, libc::SIGHUP), "{ignored:x}");
        assert!(!ignores(ignored, libc::SIGPIPE), "{ignored:x}");
        assert!(!ignores(ignored, libc::SIGXFSZ), "{ignored:x}");
        assert_eq!(signal_mask(&status, "SigBlk:"), 0);
        assert_eq!(signal_mask(&status, "SigCgt:"), 0);
    }
    for signal in [libc::SIGHUP, libc::SIGXFSZ] {
        set_action(signal, libc::SIG_DFL);
    }
}

#[test]
fn a_command_whose_reader_is_gone_ends_as_in_a_shell() {
    for in_box in every_box(roomy()) {
        assert_eq!(output(shell("yes | head -n 1"), &in_box.job_box), "y\n");
        let mut yes = command(&["yes"]);
        yes.stdio[1] = Stdio::Pipe;
        let started = spawn(&yes, &in_box.job_box).unwrap();
        let process = Spawn(started.pid);
        drop(started.pipes);
        assert_eq!(process.ending(), Ending::Signal(libc::SIGPIPE));
    }
}

#[test]
fn the_score_is_raised_in_the_child_and_not_in_us() {
    let own = own_oom_score_adj(&system()).unwrap();
    let score = OomScore::raise(own, own + 50);
    if score.is_none() {
        return skipped("this process has the highest score there is");
    }
    for in_box in every_box(roomy()) {
        let mut look = command(&["cat", "/proc/self/oom_score_adj"]);
        look.oom_score = score;
        assert_eq!(output(look, &in_box.job_box).trim(), (own + 50).min(1000).to_string());
        assert_eq!(own_oom_score_adj(&system()).unwrap(), own);
    }
}

#[test]
fn a_score_that_would_be_lowered_is_left_as_it_is() {
    let own = own_oom_score_adj(&system()).unwrap();
    let mut look = command(&["cat", "/proc/self/oom_score_adj"]);
    look.oom_score = OomScore::raise(own, own - 50);
    assert_eq!(output(look, &userspace_box(roomy())).trim(), own.to_string());
}

#[test]
fn the_child_is_inside_its_box_from_its_first_act_on() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    let name = job_box.id().cgroup_name();
    let said = output(shell("cat /proc/self/cgroup"), &job_box);
    assert!(said.lines().any(|line| line.split('/').any(|part| part == name)), "{said}");

    let mut cat = command(&["cat"]);
    cat.stdio[0] = Stdio::Pipe;
    let started = spawn(&cat, &job_box).unwrap();
    let process = Spawn(started.pid);
    let membership = system().membership(started.pid).unwrap().unwrap();
    assert!(membership.has_component(&name) && job_box.holds(&membership), "{membership:?}");
    assert_eq!(job_box.pids().unwrap(), [started.pid]);
    assert!(!job_box.holds(&system().own_membership().unwrap()), "we ourselves stay outside");
    drop(started.pipes);
    assert_eq!(process.ending(), Ending::ExitCode(0));
}

#[test]
fn orphans_of_a_command_whose_first_act_is_to_fork_are_inside() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    let root = Spawn(spawn(&shell("( (exec sleep 1000) & ); ( (exec sleep 1000) & )"), &job_box).unwrap().pid);
    assert_eq!(root.ending(), Ending::ExitCode(0));
    let proc = system();
    wait_until("both orphans have become sleep", || {
        let names = job_box.pids().unwrap().into_iter().filter_map(|pid| proc.stat(pid).unwrap());
        names.filter(|stat| stat.name == "sleep").count() == 2
    });
    for pid in job_box.pids().unwrap() {
        let stat = proc.stat(pid).unwrap().unwrap();
        assert_ne!(stat.ppid, root.0, "it is an orphan");
        assert!(job_box.holds(&proc.membership(pid).unwrap().unwrap()));
    }
    assert!(job_box.kill_all().unwrap());
}

#[test]
fn a_box_that_was_removed_starts_nothing_and_is_told_as_such() {
    let Some(base) = TestBase::kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    let job_box = base.make_box(roomy());
    assert!(job_box.remove().unwrap());
    let mut touch = command(&["touch", "started"]);
    touch.cwd = Some(folder.path().to_path_buf());
    let answer = spawn(&touch, &job_box).map(|started| Spawn(started.pid).ending());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the command was started");
    assert!(matches!(answer, Err(SpawnError::Box { .. })), "{answer:?}");
}

#[test]
fn a_box_that_may_not_be_entered_starts_nothing_and_is_told_as_such() {
    let Some(base) = TestBase::kernel() else { return };
    if base.version() == Version::V1 {
        return skipped("v1 lets everybody in who may open the file");
    }
    let job_box = base.make_box(roomy());
    let folder = tempfile::tempdir().unwrap();
    let mut touch = command(&["touch", "started"]);
    touch.cwd = Some(folder.path().to_path_buf());
    // A v2 cgroup whose children have controllers takes no process.
    let seat = &job_box.cgroup().unwrap().children().unwrap()[0];
    seat.make_child("below").unwrap();
    seat.dir().write("cgroup.subtree_control", "+memory").unwrap();
    let answer = spawn(&touch, &job_box).map(|started| Spawn(started.pid).ending());
    assert!(
        matches!(&answer, Err(SpawnError::Box { source }) if source.raw_os_error() == Some(libc::EBUSY)),
        "{answer:?}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the command was started");
}

#[test]
fn a_failed_start_leaves_no_process_behind() {
    let Some(base) = TestBase::kernel() else { return };
    let job_box = base.make_box(roomy());
    assert!(matches!(spawn(&command(&["headroom-no-such-program"]), &job_box), Err(SpawnError::NotFound { .. })));
    assert_eq!(job_box.pids().unwrap(), [] as [i32; 0]);
    assert!(job_box.remove().unwrap());
}

#[test]
fn reasons_are_told_in_words() {
    let job_box = userspace_box(roomy());
    let missing = spawn(&command(&["headroom-no-such-program"]), &job_box).unwrap_err();
    assert_eq!(missing.to_string(), "headroom-no-such-program: command not found");
    let mut lost = command(&["true"]);
    lost.cwd = Some("/nonexistent".into());
    assert!(spawn(&lost, &job_box).unwrap_err().to_string().starts_with("/nonexistent: No such file"));
}
