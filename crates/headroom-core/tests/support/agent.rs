//! A process that starts commands as an agent does: each by a thread of its own, in a session of its own. It is
//! this test program once more: the file that uses this has a test named `the_agent`, which is nothing but that.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use headroom_core::cgroup::Cgroup;
use headroom_core::process::PidFd;

use super::{PATIENCE, TestBase, system};

const VARIABLE: &str = "HEADROOM_TEST_AGENT";

/// What the test `the_agent` does: nothing, unless it was started as the agent.
#[allow(clippy::print_stdout, reason = "this is how it answers")]
pub fn be_agent() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    for line in std::io::stdin().lines() {
        let argv: Vec<String> = serde_json::from_str(&line.unwrap()).unwrap();
        std::thread::spawn(move || {
            let mut command = Command::new(&argv[0]);
            command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let new_session = || rustix::process::setsid().map(drop).map_err(std::io::Error::from);
            // SAFETY: setsid is async-signal-safe.
            unsafe { command.pre_exec(new_session) };
            let mut child = command.spawn().unwrap();
            println!("started {}", child.id());
            let status = child.wait().unwrap();
            println!("ended {} {}", child.id(), status.code().unwrap_or(-1));
        });
    }
}

/// A running agent; it and what it started and still runs is killed in the end.
pub struct Agent {
    child: Child,
    input: Mutex<ChildStdin>,
    output: Mutex<BufReader<ChildStdout>>,
    ended: Mutex<HashMap<i32, i32>>,
    started: Mutex<Vec<i32>>,
}

impl Agent {
    /// In a cgroup of its own below `base`, as a service is.
    pub fn start(base: Option<&TestBase>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "the_agent", "--nocapture"])
            .env(VARIABLE, format!("agent of {}", std::process::id()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        if let Some(base) = base {
            let parent = Cgroup::open(base.path(), base.version()).unwrap();
            parent.make_child("agent").unwrap().enter(child.id().cast_signed()).unwrap();
        }
        let input = Mutex::new(child.stdin.take().unwrap());
        let output = Mutex::new(BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, ended: Mutex::default(), started: Mutex::default() }
    }

    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Starts a command and does not wait for it. Its number comes with [`Agent::started`].
    pub fn spawn(&self, argv: &[&str]) {
        let mut line = serde_json::to_string(argv).unwrap();
        line.push('\n');
        self.input.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// As the foreground: a shell that reads a snapshot, goes to a folder and evaluates the text.
    pub fn foreground(&self, snapshot: &Path, text: &str) {
        let quoted = text.replace('\'', r#"'"'"'"#);
        self.spawn(&["bash", "-c", &format!("source {}; cd /; eval '{quoted}'; e=$?; exit $e", snapshot.display())]);
    }

    /// The number of the command that was started next.
    pub fn started(&self) -> i32 {
        self.read_until(|line| line.strip_prefix("started ").and_then(|pid| pid.parse().ok()))
    }

    /// The exit code of a command that has ended, −1 after a signal.
    pub fn exit_code(&self, pid: i32) -> i32 {
        if let Some(code) = self.ended.lock().unwrap().get(&pid) {
            return *code;
        }
        self.read_until(|line| {
            let (found, code) = line.strip_prefix("ended ")?.split_once(' ')?;
            (found.parse::<i32>() == Ok(pid)).then(|| code.parse().unwrap())
        })
    }

    fn read_until<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> T {
        let mut output = self.output.lock().unwrap();
        loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "the agent has ended");
            let line = line.trim();
            if let Some(pid) = line.strip_prefix("started ") {
                self.started.lock().unwrap().push(pid.parse().unwrap());
            }
            if let Some((pid, code)) = line.strip_prefix("ended ").and_then(|rest| rest.split_once(' ')) {
                self.ended.lock().unwrap().insert(pid.parse().unwrap(), code.parse().unwrap());
            }
            if let Some(found) = wanted(line) {
                return found;
            }
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let ended = self.ended.lock().unwrap();
        let children: Vec<i32> = system().children(self.pid()).ok().flatten().unwrap_or_default();
        let left = self
            .started
            .lock()
            .unwrap()
            .iter()
            .copied()
            .filter(|pid| !ended.contains_key(pid) && children.contains(pid))
            .collect::<Vec<_>>();
        for pid in left {
            if let Ok(handle) = PidFd::open(pid) {
                let _ended_meanwhile = handle.signal(libc::SIGKILL);
                let _stuck = handle.wait(PATIENCE);
            }
        }
        let _killed_already = self.child.kill();
        let _collected_already = self.child.wait();
    }
}

/// A file with a shell's functions and variables, as an agent takes it.
pub fn snapshot(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("snapshot.sh");
    let lines: Vec<String> = (0..80).map(|n| format!("export SNAPSHOT_{n}=value-{n}\n")).collect();
    fs::write(&path, lines.concat()).unwrap();
    path
}
