import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import type { HeadroomReport } from "../../src/outcome/report.js";
import { eventually, isAlive, jobCgroupsOf, recordsOf } from "../support/leftovers.js";
import { holdingModes, kernelModes } from "../support/modes.js";
import { CLI, finishCli, runCli, startCli } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-run-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

const readReport = (file: string): HeadroomReport => JSON.parse(readFileSync(file, "utf8")) as HeadroomReport;

/** The process number that a job writes first; the process is ended with the test, whatever happens. */
const firstNumber = async (t: ExecutionContext, child: ChildProcess): Promise<number> => {
  const [line] = (await once(child.stdout!, "data")) as [Buffer];
  const pid = Number(String(line));
  t.teardown(() => {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
    if (child.exitCode === null) child.kill("SIGKILL");
  });
  return pid;
};

const HOG = "head -c 900m /dev/zero | tail > /dev/null";

for (const { mode } of holdingModes) {
  const run = (...words: string[]) => ["run", "--mode", mode, ...words];

  test(`${mode}: streams and exit code pass through, and nothing is said when nothing happened`, async (t) => {
    const result = await runCli(run("--", "sh", "-c", "cat; echo err >&2; exit 42"), { input: "in" });
    t.deepEqual(result, { code: 42, signal: null, stdout: "in", stderr: "err\n" });
  });

  test(`${mode}: a job over its cap is explained on stderr and in the report`, async (t) => {
    const file = join(scratch, `${mode}.json`);
    const result = await runCli(run("--memory", "80", "--report", file, "--", "sh", "-c", `${HOG}; exit 5`));
    t.is(result.code, 5);
    t.regex(result.stderr, /headroom: .*80 MB memory cap/);
    const report = readReport(file);
    t.is(report.memory_cap_mb, 80);
    t.is(report.mode, mode);
    t.is(report.isolated, mode !== "userspace");
    t.true(report.oom_killed);
    t.regex(report.note ?? "", /Next: /);
    if (report.isolated) t.true((report.peak_mb ?? 999) <= 80);
  });

  test(`${mode}: a signal reaches the command, and its end is the command's own`, async (t) => {
    for (const [signal, code] of [
      ["SIGTERM", 143],
      ["SIGINT", 130],
      ["SIGHUP", 129],
    ] as const) {
      const child = startCli(run("--", "sh", "-c", "echo ready; exec sleep 30"));
      await once(child.stdout!, "data");
      child.kill(signal);
      t.is((await finishCli(child)).code, code, signal);
    }
  });

  test(`${mode}: a command that handles a signal goes on`, async (t) => {
    const child = startCli(
      run("--", "sh", "-c", "trap 'echo got' USR1; trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"),
    );
    await once(child.stdout!, "data");
    child.kill("SIGUSR1");
    const [line] = (await once(child.stdout!, "data")) as [Buffer];
    t.is(String(line), "got\n");
    child.kill("SIGTERM");
    t.is((await finishCli(child)).code, 9);
  });

  test(`${mode}: processes that outlive the command are named and counted`, async (t) => {
    const file = join(scratch, `${mode}-left.json`);
    const child = startCli(run("--report", file, "--", "sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"));
    const result = await finishCli(child);
    const left = Number(result.stdout);
    t.is(result.code, 0);
    t.regex(result.stderr, /Still running .*sleep/);
    t.is(readReport(file).left_running, 1);
    t.true(isAlive(left));
    const status = JSON.parse((await runCli(["status", "--json"])).stdout) as {
      jobs: { state: string; processes: { pid: number }[] }[];
    };
    t.true(status.jobs.some((job) => job.state === "left_running" && job.processes.some(({ pid }) => pid === left)));
    process.kill(left, "SIGKILL");
    t.true(await eventually(() => !isAlive(left)));
    await runCli(["status", "--json"]);
    t.deepEqual([...jobCgroupsOf(child.pid!), ...recordsOf(child.pid!)], []);
  });

  test(`${mode}: what a killed run leaves is shown, keeps its cap, and is cleaned when it ends`, async (t) => {
    const child = startCli(run("--memory", "100", "--", "sh", "-c", "echo $$; while :; do sleep 0.1; done"));
    const shell = await firstNumber(t, child);
    child.kill("SIGKILL");
    await once(child, "exit");
    t.true(isAlive(shell));
    const status = JSON.parse((await runCli(["status", "--json"])).stdout) as {
      jobs: { state: string; pid: number; cap_mb: number }[];
    };
    const job = status.jobs.find(({ pid }) => pid === shell);
    t.is(job?.state, "orphaned");
    t.is(job?.cap_mb, 100);
    process.kill(shell, "SIGKILL");
    t.true(await eventually(() => !isAlive(shell)));
    await runCli(run("--", "true"));
    t.true(await eventually(() => jobCgroupsOf(child.pid!).length === 0 && recordsOf(child.pid!).length === 0, 2000));
  });
}

for (const { mode } of kernelModes) {
  test(`${mode}: a job of a killed run is still held by the kernel`, async (t) => {
    const file = join(scratch, `${mode}-orphan`);
    const script = `echo $$; read go < ${file}.go; ${HOG}; echo $? > ${file}`;
    await once(spawn("mkfifo", [`${file}.go`]), "exit");
    const child = startCli(["run", "--mode", mode, "--memory", "80", "--", "sh", "-c", script]);
    await firstNumber(t, child);
    child.kill("SIGKILL");
    await once(child, "exit");
    writeFileSync(`${file}.go`, "go\n");
    t.true(await eventually(() => readIfThere(file) === "137\n"));
    await runCli(["status", "--json"]);
    t.true(await eventually(() => jobCgroupsOf(child.pid!).length === 0, 2000));
  });
}

const readIfThere = (file: string): string => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
};

test("userspace: the next run holds the orphan of a killed one to its cap", async (t) => {
  const file = join(scratch, "userspace-orphan");
  // Records of its own: a run of another test would adopt the orphan, and end.
  const dir = mkdtempSync(join(scratch, "adopt-"));
  const env = { XDG_RUNTIME_DIR: dir };
  await once(spawn("mkfifo", [`${file}.go`]), "exit");
  const script = `echo $$; read go < ${file}.go; ${HOG}; echo $? > ${file}`;
  const child = startCli(["run", "--mode", "userspace", "--memory", "80", "--", "sh", "-c", script], { env });
  await firstNumber(t, child);
  child.kill("SIGKILL");
  await once(child, "exit");
  const next = startCli(["run", "--mode", "userspace", "--", "sh", "-c", "echo ready; exec sleep 30"], { env });
  await once(next.stdout!, "data");
  writeFileSync(`${file}.go`, "go\n");
  t.true(await eventually(() => readIfThere(file) === "137\n"));
  next.kill("SIGTERM");
  await finishCli(next);
  await runCli(["status", "--json"], { env });
  const records = readdirSync(join(dir, "hermes-headroom")).filter((name) => name.endsWith(".job.json"));
  t.deepEqual(records, []);
});

test("wrong sizes and modes are refused with exit code 2 and what is allowed", async (t) => {
  for (const [words, text] of [
    [["--memory", "5"], /at least 64 MB/],
    [["--memory", "x"], /whole number of MB/],
    [["--memory", "1e3"], /whole number of MB/],
    [["--memory", "-1"], /at least 64 MB/],
    [["--swap", "-2"], /-1 for no limit/],
    [["--mode", "magic"], /userspace/],
    [["--frobnicate"], /unknown option/],
  ] as const) {
    const result = await runCli(["run", ...words, "--", "true"]);
    t.is(result.code, 2, words.join(" "));
    t.regex(result.stderr, text);
  }
  t.is((await runCli(["run"])).code, 2);
  t.is((await runCli(["frobnicate"])).code, 2);
});

test("commands that cannot start have a shell's exit codes", async (t) => {
  const plain = join(scratch, "plain");
  writeFileSync(plain, "not a program");
  chmodSync(plain, 0o644);
  const missing = await runCli(["run", "--", "no-such-program-at-all"]);
  t.is(missing.code, 127);
  t.regex(missing.stderr, /no-such-program-at-all: command not found/);
  t.is((await runCli(["run", "--", plain])).code, 126);
  t.is((await runCli(["run", "--", scratch])).code, 126);
  t.is((await runCli(["run", "--", join(plain, "below")])).code, 127);
});

test("a script without a first line runs, as in a shell", async (t) => {
  const script = join(scratch, "bare-script");
  writeFileSync(script, "echo ran; exit 3\n");
  chmodSync(script, 0o755);
  const result = await runCli(["run", "--", script]);
  t.deepEqual([result.code, result.stdout], [3, "ran\n"]);
});

test("a working directory that is gone is told, whatever else", async (t) => {
  const gone = join(scratch, "gone");
  mkdirSync(gone);
  const script = `cd ${gone} && rmdir ${gone} && exec ${process.execPath} ${CLI} run --no-queue -- true`;
  const child = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "pipe"] });
  const result = await finishCli(child);
  t.is(result.code, 126);
  t.regex(result.stderr, /current directory no longer exists/);
  t.throws(() => rmdirSync(gone));
});

test("a report that cannot be written is refused before the job starts", async (t) => {
  const result = await runCli(["run", "--report", join(scratch, "no", "such", "r.json"), "--", "echo", "ran"]);
  t.is(result.code, 2);
  t.is(result.stdout, "");
  t.regex(result.stderr, /--report/);
  t.is((await runCli(["run", "--report", scratch, "--", "true"])).code, 2);
});

test("a report goes through a link and leaves the link alone", async (t) => {
  const [target, link, dangling] = ["target.json", "link.json", "dangling.json"].map((name) => join(scratch, name));
  writeFileSync(target!, "old");
  symlinkSync(target!, link!);
  symlinkSync(join(scratch, "made.json"), dangling!);
  for (const path of [link!, dangling!]) {
    t.is((await runCli(["run", "--memory", "99", "--report", path, "--", "true"])).code, 0);
    t.true(lstatSync(path).isSymbolicLink());
    t.is(readReport(path).memory_cap_mb, 99);
  }
});

test("a report to an open descriptor is appended to what is there", async (t) => {
  const file = join(scratch, "appended");
  const script = `exec > ${file}; ${process.execPath} ${CLI} run --no-queue --report /dev/stdout -- echo first; echo last`;
  await finishCli(spawn("sh", ["-c", script], { stdio: ["ignore", "ignore", "inherit"] }));
  const text = readFileSync(file, "utf8");
  t.regex(text, /^first\n\{[^]*\}\nlast\n$/);
});

test("a report to a pipe that nobody reads is a warning, not a wait", async (t) => {
  const pipe = join(scratch, "unread");
  await once(spawn("mkfifo", [pipe]), "exit");
  const result = await runCli(["run", "--report", pipe, "--", "sh", "-c", "exit 3"]);
  t.is(result.code, 3);
  t.regex(result.stderr, /nobody reads/);
});

test("an empty name for the report is refused", async (t) => {
  t.is((await runCli(["run", "--report", "", "--", "true"])).code, 2);
});

test("an old report does not survive a job that could not start", async (t) => {
  const file = join(scratch, "old.json");
  writeFileSync(file, "{}");
  await runCli(["run", "--report", file, "--", "no-such-program-at-all"]);
  t.is(readIfThere(file), "");
});

test("closed streams are no reason to fail", async (t) => {
  const closed = spawn("sh", ["-c", `${process.execPath} ${CLI} run --no-queue -- sh -c 'exit 6' <&- >&- 2>&-`]);
  const [code] = (await once(closed, "exit")) as [number];
  t.is(code, 6);
});

test("a reader that goes away ends the writer, not headroom", async (t) => {
  const script = `${process.execPath} ${CLI} run --no-queue -- sh -c 'while :; do echo line; done' | head -n 1; echo "$?"`;
  const child = spawn("bash", ["-c", `set -o pipefail; ${script}`], { stdio: ["ignore", "pipe", "pipe"] });
  const result = await finishCli(child);
  t.regex(result.stdout, /^line\n/);
  t.is(result.stderr, "");
});

for (const { mode } of holdingModes) {
  test(`${mode}: a daemon by double fork is found`, async (t) => {
    const file = join(scratch, `${mode}-daemon.json`);
    const inner = "sleep 60 > /dev/null 2>&1 & echo $!";
    const child = startCli(["run", "--mode", mode, "--report", file, "--", "sh", "-c", `(setsid sh -c '(${inner})')`]);
    const result = await finishCli(child);
    const daemon = Number(result.stdout);
    t.teardown(() => void (isAlive(daemon) && process.kill(daemon, "SIGKILL")));
    t.is(readReport(file).left_running, 1);
    process.kill(daemon, "SIGKILL");
    t.true(await eventually(() => !isAlive(daemon)));
    await runCli(["status"]);
    t.deepEqual([...jobCgroupsOf(child.pid!), ...recordsOf(child.pid!)], []);
  });

  test(`${mode}: an orphan with an empty environment does not leave its box`, async (t) => {
    const file = join(scratch, `${mode}-orphan.json`);
    const [group, done] = [join(scratch, `${mode}-orphan.pid`), join(scratch, `${mode}-orphan.done`)];
    // tail keeps what it has read until the sleep takes it; the command waits for tail's end, however slow.
    const hog = `echo $$ > ${group}; sleep 0.4; (head -c 900m /dev/zero | tail; echo $? > ${done}) | sleep 30`;
    const orphan = `(env -i PATH="$PATH" setsid sh -c '${hog}' > /dev/null 2>&1 &)`;
    const script = `${orphan}; until [ -s ${done} ]; do sleep 0.1; done; kill -KILL -- "-$(cat ${group})"`;
    await runCli(["run", "--mode", mode, "--memory", "80", "--report", file, "--", "sh", "-c", script]);
    t.true(readReport(file).oom_killed);
  });

  test(`${mode}: what the shell had started before it replaced itself by run is none of the job's`, async (t) => {
    const file = join(scratch, `${mode}-before.json`);
    const run = `${process.execPath} ${CLI} run --no-queue --mode ${mode} --memory 80 --report ${file} -- sleep 1.5`;
    // tail keeps 150 MB, more than the cap, until its reader goes.
    const script = `(head -c 150m /dev/zero | tail | sleep 30) & echo $!; sleep 0.5; exec ${run}`;
    const child = spawn("setsid", ["bash", "-c", script], { stdio: ["ignore", "pipe", "pipe"] });
    t.teardown(() => process.kill(-child.pid!, "SIGKILL"));
    const before = await firstNumber(t, child);
    await once(child, "exit");
    const report = readReport(file);
    t.deepEqual(
      [report.oom_killed, report.victims, report.escaped, report.left_running, report.note],
      [false, undefined, undefined, undefined, undefined],
    );
    t.true(isAlive(before));
  });

  test(`${mode}: a stop and a go reach the command`, async (t) => {
    // Handled, because the default action of SIGTSTP does nothing in an orphaned process group.
    const script = "trap 'echo stop' TSTP; trap 'echo go' CONT; echo $$; while :; do sleep 0.05; done";
    const child = startCli(["run", "--mode", mode, "--", "sh", "-c", script]);
    await firstNumber(t, child);
    let heard = "";
    child.stdout?.on("data", (chunk) => (heard += String(chunk)));
    child.kill("SIGTSTP");
    t.true(await eventually(() => heard.includes("stop")));
    child.kill("SIGCONT");
    t.true(await eventually(() => heard.includes("go")));
    child.kill("SIGTERM");
    t.is((await finishCli(child)).code, 143);
  });
}

test("an interpreter that is missing is told from a command that is missing", async (t) => {
  const script = join(scratch, "crlf");
  writeFileSync(script, "#!/bin/sh\r\necho hi\r\n");
  chmodSync(script, 0o755);
  const result = await runCli(["run", "--", script]);
  t.is(result.code, 127);
  t.regex(result.stderr, /interpreter/);
});

test("an end by code 134 without much memory is not blamed on memory", async (t) => {
  const result = await runCli(["run", "--memory", "500", "--", "sh", "-c", "exit 134"]);
  t.deepEqual([result.code, result.stderr], [134, ""]);
});

test("what lies about in the directory of records blinds and stops nobody", async (t) => {
  const dir = mkdtempSync(join(scratch, "xdg-"));
  chmodSync(dir, 0o700);
  const records = join(dir, "hermes-headroom");
  mkdirSync(records, { mode: 0o700 });
  mkdirSync(join(records, "0-0-0.job.json"));
  await once(spawn("mkfifo", [join(records, "1-2-3.job.json")]), "exit");
  writeFileSync(join(records, "4-5-6.job.json"), "{ not json");
  symlinkSync("/etc/passwd", join(records, "7-8-9.job.json"));
  const env = { XDG_RUNTIME_DIR: dir };
  const child = startCli(["run", "--", "sh", "-c", "echo $$; exec sleep 60"], { env });
  const pid = await firstNumber(t, child);
  const status = JSON.parse((await runCli(["status", "--json"], { env })).stdout) as { jobs: { pid: number }[] };
  t.deepEqual(
    status.jobs.map((job) => job.pid),
    [pid],
  );
  child.kill("SIGTERM");
  t.is((await finishCli(child)).code, 143);
});

test("--json tells the report on stderr, in one line", async (t) => {
  const result = await runCli(["run", "--json", "--memory", "100", "--", "true"]);
  t.is((JSON.parse(result.stderr) as HeadroomReport).memory_cap_mb, 100);
});

test("--mode off holds nothing and says so in the report", async (t) => {
  const file = join(scratch, "off.json");
  t.is((await runCli(["run", "--mode", "off", "--report", file, "--", "true"])).code, 0);
  t.false(readReport(file).isolated);
});

test("a terminal passes through, and Ctrl-C reaches the command once", async (t) => {
  const log = join(scratch, "tty.log");
  const inner = `trap "echo INT >> ${log}" INT; test -t 0 && test -t 1 && echo tty >> ${log}; echo ready; sleep 20; sleep 0.2; exit 7`;
  // Without `exec`, a shell between (dash) would end by the Ctrl-C itself.
  const command = `exec ${process.execPath} ${CLI} run --no-queue -- bash -c '${inner.replaceAll("'", "'\\''")}'`;
  const child = spawn("script", ["-qec", command, "/dev/null"], { stdio: ["pipe", "pipe", "pipe"] });
  let shown = "";
  child.stdout.on("data", (chunk) => (shown += String(chunk)));
  t.true(await eventually(() => shown.includes("ready")));
  child.stdin.on("error", () => {});
  child.stdin.write("\u0003");
  const [code] = (await once(child, "exit")) as [number];
  t.is(code, 7);
  t.deepEqual(readFileSync(log, "utf8").trim().split("\n"), ["tty", "INT"]);
});

test("standard streams stay in blocking mode for the job", async (t) => {
  const pipe = join(scratch, "blocking");
  await once(spawn("mkfifo", [pipe]), "exit");
  const reader = openSync(pipe, "r+");
  const script = `${process.execPath} ${CLI} run --no-queue -- sh -c 'grep flags /proc/self/fdinfo/1 >&2' > ${pipe}`;
  const result = await finishCli(spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "pipe"] }));
  closeSync(reader);
  const flags = Number.parseInt(/flags:\s*(\d+)/.exec(result.stderr)?.[1] ?? "", 8);
  t.is(flags & 0o4000, 0, result.stderr);
});
