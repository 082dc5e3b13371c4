/** Real `run`s under a watchdog whose line is drawn above what the machine has left, so that it has to act. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { readEvents } from "../../src/events/read.js";
import { measureMemory } from "../../src/memory.js";
import type { HeadroomReport } from "../../src/outcome/report.js";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { eventually, isAlive } from "../support/leftovers.js";
import { holdingModes, kernelModes, native } from "../support/modes.js";
import { CLI, finishCli, runCli, startCli } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-watchdog-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

/** Records, locks and events of their own, so that nobody else's watchdog acts, and on nobody else's jobs. */
const world = (name: string) => {
  const runtime = mkdtempSync(join(scratch, `${name}-`));
  // Above what is there, and not so far above that there is no time to be polite.
  const critical = Math.floor(measureMemory(native).available_mb * 1.5);
  return {
    XDG_RUNTIME_DIR: runtime,
    HERMES_HOME: join(runtime, "home"),
    HEADROOM_CRITICAL_MB: String(critical),
    HEADROOM_RESERVE_MB: String(critical),
  };
};

type World = ReturnType<typeof world>;

const eventsOf = (env: World) => readEvents(join(env.HERMES_HOME, "plugin-data/headroom"), 99);

const ends = (t: ExecutionContext, child: ChildProcess): void => {
  t.teardown(() => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
  });
};

/** Keeps the runs' own watchdogs standing by until it is stopped. */
const holdOff = (env: World) =>
  native.Watchdog.start(join(env.XDG_RUNTIME_DIR, "hermes-headroom"), {
    criticalBytes: 0,
    reserveBytes: 0,
    stalledPercent: 101,
    refaultsPerS: Number.MAX_SAFE_INTEGER,
    pauseLimitMs: 0,
    observe: false,
    agentPid: null,
  });

const started = (env: World): number => eventsOf(env).filter(({ event }) => event === "started").length;

for (const { mode } of holdingModes) {
  test.serial(`${mode}: the newest of two is paused, then stopped and told why; the oldest goes on`, async (t) => {
    const env = world(mode);
    const other = holdOff(env);
    const words = (file: string) => ["run", "--mode", mode, "--memory", "200", "--report", join(scratch, file), "--"];
    const older = startCli([...words("old.json"), "sh", "-c", "echo $$; exec sleep 100"], { env });
    ends(t, older);
    const [line] = (await once(older.stdout!, "data")) as [Buffer];
    const command = "trap 'echo asked; exit 3' TERM; echo $$; while :; do sleep 0.1; done";
    const newer = startCli([...words("new.json"), "sh", "-c", command], { env });
    ends(t, newer);
    t.true(await eventually(() => started(env) === 2, 20_000));
    other.stop();
    const result = await finishCli(newer);
    t.is(result.code, 3);
    t.regex(result.stdout, /asked/);
    t.regex(result.stderr, /was stopped by headroom's watchdog: the machine had only \d+ MB of memory left/);
    const report = JSON.parse(readFileSync(join(scratch, "new.json"), "utf8")) as HeadroomReport;
    t.is(report.killed_by, "watchdog");
    t.false(report.oom_killed);
    t.true(isAlive(Number(String(line))));
    const acted = eventsOf(env).filter(({ event }) => event === "watchdog");
    t.deepEqual(
      acted.map(({ action }) => action).filter((action) => action !== "push_out"),
      ["pause", "terminate"],
    );
    t.true(
      acted.every(({ available_mb, reason }) => (available_mb ?? 0) > 0 && (reason ?? "").includes("memory left")),
    );
    older.kill("SIGTERM");
    t.is((await finishCli(older)).code, 143);
  });
}

test.serial("it acts while the JavaScript around it is stuck", async (t) => {
  const env = world("stuck");
  const other = holdOff(env);
  // As soon as the job has written its number the loop is never free again.
  const file = join(scratch, "stuck.pid");
  const stuck = `import { existsSync } from "node:fs";
    const look = setInterval(() => { if (existsSync(${JSON.stringify(file)})) { clearInterval(look); for (;;); } }, 1);`;
  const words = ["--import", `data:text/javascript,${encodeURIComponent(stuck)}`, CLI];
  const job = [
    "run",
    "--no-queue",
    "--memory",
    "200",
    "--",
    "sh",
    "-c",
    `trap '' TERM; echo $$ > ${file}; sleep 100; sleep 100`,
  ];
  const child = spawn(process.execPath, [...words, ...job], { env: { ...process.env, ...env }, stdio: "ignore" });
  t.teardown(() => child.kill("SIGKILL"));
  t.true(await eventually(() => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"), 20_000));
  const pid = Number(readFileSync(file, "utf8"));
  other.stop();
  t.true(await eventually(() => !isAlive(pid), 20_000));
  t.is(child.exitCode, null, "it is still stuck");
  child.kill("SIGKILL");
  await once(child, "exit");
  // The next command removes the box of one that was killed.
  await runCli(["status"], { env });
});

test.serial("status shows a paused job as paused", async (t) => {
  const env = world("status");
  const other = holdOff(env);
  const older = startCli(["run", "--memory", "200", "--", "sleep", "100"], { env });
  ends(t, older);
  t.true(await eventually(() => started(env) === 1, 20_000));
  const newer = startCli(["run", "--memory", "200", "--", "sleep", "100"], { env });
  ends(t, newer);
  t.true(await eventually(() => started(env) === 2, 20_000));
  other.stop();
  let states: string[] = [];
  for (let tries = 0; tries < 200 && !states.includes("paused") && newer.exitCode === null; tries += 1) {
    const { stdout } = await runCli(["status", "--json"], { env });
    states = (JSON.parse(stdout) as StatusSnapshot).jobs.map(({ state }) => state);
  }
  t.deepEqual(states, ["running", "paused"]);
  older.kill("SIGTERM");
  newer.kill("SIGTERM");
  await Promise.all([once(older, "exit"), once(newer, "exit")]);
});

test.serial("a job that is continued only to hear that it must end is not told that it goes on", async (t) => {
  const env = world("heard");
  const other = holdOff(env);
  const older = startCli(["run", "--memory", "200", "--", "sleep", "100"], { env });
  ends(t, older);
  t.true(await eventually(() => started(env) === 1, 20_000));
  const newer = startCli(["run", "--memory", "200", "--", "sh", "-c", "trap '' TERM; echo; sleep 100; sleep 100"], {
    env,
  });
  ends(t, newer);
  await once(newer.stdout!, "data");
  other.stop();
  const { code, stderr } = await finishCli(newer);
  t.is(code, 137);
  t.regex(stderr, /paused by the watchdog/);
  t.notRegex(stderr, /goes on: there is room/);
  older.kill("SIGTERM");
  await once(older, "exit");
});

for (const { mode } of holdingModes) {
  test.serial(`${mode}: a paused job goes on when somebody looks and every watchdog was killed`, async (t) => {
    const env = world(`forgotten-${mode}`);
    const other = holdOff(env);
    const file = join(scratch, `forgotten-${mode}`);
    const words = ["run", "--mode", mode, "--memory", "200", "--"];
    const older = startCli([...words, "sleep", "101"], { env });
    ends(t, older);
    t.true(await eventually(() => started(env) === 1, 20_000));
    const newer = startCli([...words, "sh", "-c", `while :; do echo x >> ${file}; sleep 0.05; done`], { env });
    ends(t, newer);
    t.true(await eventually(() => started(env) === 2, 20_000));
    other.stop();
    t.true(await eventually(() => eventsOf(env).some(({ action }) => action === "pause"), 20_000));
    for (const run of [older, newer]) run.kill("SIGKILL");
    const before = readFileSync(file, "utf8").length;
    const { stdout } = await runCli(["status", "--json"], { env });
    const { jobs } = JSON.parse(stdout) as StatusSnapshot;
    t.deepEqual(
      jobs.map(({ state }) => state),
      ["orphaned", "orphaned"],
    );
    t.true(await eventually(() => readFileSync(file, "utf8").length > before + 4, 20_000));
    for (const { processes } of jobs) for (const { pid } of processes) if (isAlive(pid)) process.kill(pid, "SIGKILL");
    await eventually(() => jobs.every(({ processes }) => processes.every(({ pid }) => !isAlive(pid))));
    await runCli(["status"], { env });
  });
}

test.serial("inside a job there is no watchdog of its own: the job's limit is not the machine's", async (t) => {
  const env = world("inside");
  const child = startCli(["run", "--memory", "200", "--", "sleep", "2"], { env: { ...env, HEADROOM_JOB_ID: "1-2-3" } });
  t.is((await finishCli(child)).code, 0);
  t.false(eventsOf(env).some(({ event }) => event === "watchdog"));
});

test.serial("a lock that nobody can have is told, and the job runs", async (t) => {
  const env = world("lock");
  mkdirSync(join(env.XDG_RUNTIME_DIR, "hermes-headroom"), { mode: 0o700 });
  mkdirSync(join(env.XDG_RUNTIME_DIR, "hermes-headroom", "watchdog.lock"));
  const result = await runCli(["run", "--memory", "200", "--", "sh", "-c", "sleep 0.5; exit 4"], { env });
  t.is(result.code, 4);
  t.regex(result.stderr, /^headroom: no watchdog: .*watchdog\.lock is not a regular file: remove it\n$/);
});

test.serial("observe: nothing is done, and what would be done is in the log", async (t) => {
  const env = world("observe");
  const result = await runCli(["run", "--set", "mode=observe", "--", "sh", "-c", "sleep 1; echo fine"], { env });
  t.deepEqual([result.code, result.stdout, result.stderr], [0, "fine\n", ""]);
  const observed = eventsOf(env).find(({ event, reason }) => event === "observe" && reason !== undefined);
  t.regex(observed?.reason ?? "", /the watchdog would have/);
});

test.serial("off: nothing is watched, nothing is logged", async (t) => {
  const env = world("off");
  const result = await runCli(["run", "--set", "mode=off", "--", "sh", "-c", "sleep 1; echo fine"], { env });
  t.deepEqual([result.code, result.stdout, result.stderr], [0, "fine\n", ""]);
  t.deepEqual(eventsOf(env), []);
});

/** Kills what is in a cgroup and below it, and removes it; `false` when some of it is still ending. */
const emptied = (directory: string): boolean => {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory() && !emptied(join(directory, entry.name))) return false;
  }
  const pids = readFileSync(join(directory, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  try {
    rmdirSync(directory);
    return true;
  } catch {
    return false;
  }
};

/** Takes so much memory, says that it has it, and keeps it. */
const held = (mb: number): string => `(head -c ${mb}m /dev/zero; echo; echo ready >&2; sleep 100) | tail -n 1`;

const inCgroup1 = kernelModes.some(({ mode }) => mode === "cgroup1") ? test.serial : test.serial.skip;

inCgroup1("in a small machine: the rest of it grows, the newest job goes, the agent and the oldest live", async (t) => {
  // A memory cgroup stands for a machine with 700 MB: limits above a process count as its memory.
  const base = kernelModes.find(({ mode }) => mode === "cgroup1")?.base ?? "";
  const machine = join(base, `headroom-test-machine-${process.pid}`);
  mkdirSync(machine);
  writeFileSync(join(machine, "memory.limit_in_bytes"), String(700 * 1024 * 1024));
  t.teardown(async () => {
    await eventually(() => emptied(machine), 20_000);
  });
  const runtime = mkdtempSync(join(scratch, "machine-"));
  const env = { ...process.env, XDG_RUNTIME_DIR: runtime, HERMES_HOME: join(runtime, "home"), NO_COLOR: "1" };
  const inside = (words: string[]): ChildProcess => {
    const enter = `echo $$ > ${join(machine, "cgroup.procs")}; exec "$@"`;
    return spawn("sh", ["-c", enter, "sh", ...words], { env, stdio: ["ignore", "pipe", "pipe"] });
  };
  const run = (report: string, script: string) =>
    inside([
      process.execPath,
      CLI,
      "run",
      "--no-queue",
      "--memory",
      "300",
      "--report",
      report,
      "--",
      "sh",
      "-c",
      script,
    ]);
  const ready = async (child: ChildProcess): Promise<void> => {
    let text = "";
    child.stderr?.on("data", (chunk) => (text += String(chunk)));
    t.true(await eventually(() => text.includes("ready"), 20_000), text);
  };
  const agent = inside([process.execPath, "-e", "setInterval(() => console.log(Date.now()), 20)"]);
  const beats: number[] = [];
  agent.stdout?.on("data", (chunk) => beats.push(...String(chunk).trim().split("\n").map(Number)));
  const older = run(join(runtime, "old.json"), held(60));
  await ready(older);
  const newer = run(join(runtime, "new.json"), held(200));
  const newerEnded = finishCli(newer);
  await ready(newer);
  // Neither job is near its cap; what grows is in no box.
  const rest = inside(["sh", "-c", "(head -c 325m /dev/zero; sleep 100) | tail -c 325m"]);
  const { stderr } = await newerEnded;
  const report = JSON.parse(readFileSync(join(runtime, "new.json"), "utf8")) as HeadroomReport;
  t.is(report.killed_by, "watchdog", stderr);
  t.is(older.exitCode, null);
  t.is(agent.exitCode, null);
  t.true(beats.length > 10);
  const gaps = beats.slice(1).map((beat, index) => beat - (beats[index] ?? beat));
  t.log(`longest silence of the agent: ${Math.max(...gaps)} ms`);
  t.is(rest.exitCode, null);
});
