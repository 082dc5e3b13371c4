/** The daemon as a process, asked as an agent asks it, with real jobs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import { readEvents } from "../../src/events/read.js";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { Agent, daemonWorld, heavyCall, hermesShell, type DaemonWorld } from "../support/daemon.js";
import { eventually, isAlive } from "../support/leftovers.js";
import { kernelModes } from "../support/modes.js";
import { finishCli, runCli, startCli } from "../support/run-cli.js";

/** Heavy by its words, and done in no time. */
const HEAVY = "npm test --if-present > /dev/null 2>&1; ";
/** Takes 400 MB and says how that ended. */
const HOG = `${HEAVY} head -c 400m /dev/zero | tail > /dev/null; echo after $?`;
const inKernelMode = kernelModes.length > 0 ? test : test.skip;

const settings = (world: DaemonWorld, values: Record<string, unknown>): void =>
  writeFileSync(
    join(world.environment["HERMES_HOME"] ?? "", "config.yaml"),
    `plugins: {entries: {headroom: {settings: ${JSON.stringify(values)}}}}`,
  );

const events = ({ environment }: DaemonWorld) =>
  readEvents(join(environment["HERMES_HOME"] ?? "", "plugin-data/headroom"), 99);

inKernelMode("a job that outgrows its cap is told, and its shell and agent live", async (t) => {
  const world = daemonWorld(t);
  settings(world, { job_memory_max_mb: 100, swap_mb: 0 });
  await world.start();
  const { code, output, headroom } = await heavyCall(t, world, HOG);
  t.is(code, 0);
  t.regex(output, /after 137/);
  t.like(headroom, { memory_cap_mb: 100, isolated: true, oom_killed: true, killed_by: "kernel" });
  t.regex(headroom?.note ?? "", /hit its 100 MB memory cap/);
  t.is(headroom?.escaped, undefined);
  const kinds = events(world).map(({ event }) => event);
  t.deepEqual(kinds, ["started", "oom", "finished"]);
});

test("a light command is none of its business", async (t) => {
  const world = daemonWorld(t);
  await world.start();
  t.deepEqual((await heavyCall(t, world, "ls -l")).admitted, { heavy: false });
  const agent = await Agent.connect(world.socket);
  t.deepEqual(await agent.ask("prepare", { command: "git status", cwd: "/" }), { heavy: false });
  agent.close();
});

test("a heavy command is rewritten before anybody approves it, and its changes are told with the result", async (t) => {
  const world = daemonWorld(t);
  settings(world, { job_memory_max_mb: 300 });
  await world.start();
  const agent = await Agent.connect(world.socket, { hermes_home: world.environment["HERMES_HOME"] });
  t.true((agent.hello["environment"] as string[]).includes("NODE_OPTIONS"));
  const env = { NODE_OPTIONS: "--max-old-space-size=100" };
  const command = "npx jest > /dev/null 2>&1 < /dev/null || :";
  const kept = await agent.ask("prepare", { command, cwd: world.folder, env });
  t.false(String(kept["command"]).includes("--max-old-space-size=210"), "a lower one is left alone");
  const prepared = await agent.ask("prepare", { command, cwd: world.folder });
  t.regex(String(prepared["command"]), /NODE_OPTIONS=.*--max-old-space-size=210/);
  agent.close();
  const { headroom } = await heavyCall(t, world, String(prepared["command"]));
  t.deepEqual(headroom?.lightened, prepared["changes"] as string[]);
});

test("jobs take turns in the order in which they came; who waits is told why", async (t) => {
  const world = daemonWorld(t);
  settings(world, { max_heavy_jobs: 1 });
  await world.start();
  const log = join(world.folder, "log");
  const job = (name: string): string => `${HEAVY} echo ${name} >> ${log}; sleep 0.3; echo ${name} >> ${log}`;
  const calls = [];
  for (const name of ["a", "b", "c", "d"]) {
    calls.push(heavyCall(t, world, job(name)));
    await eventually(() => events(world).length >= calls.length);
  }
  const results = await Promise.all(calls);
  t.deepEqual(readFileSync(log, "utf8").trim().split("\n"), ["a", "a", "b", "b", "c", "c", "d", "d"]);
  t.true(results.every(({ code }) => code === 0));
});

test("after its time in the queue a job is refused, and the holder is named", async (t) => {
  const world = daemonWorld(t);
  settings(world, { max_heavy_jobs: 1, queue_timeout_s: 1 });
  await world.start();
  const first = heavyCall(t, world, `${HEAVY} sleep 3`);
  await eventually(() => events(world).some(({ event }) => event === "started"));
  const { admitted } = await heavyCall(t, world, `${HEAVY} true`);
  t.like(admitted, { heavy: true, admitted: false });
  t.regex(String(admitted["message"]), /was refused after 1 s in the queue.*Nothing was run/);
  t.like(admitted["headroom"], { oom_killed: false, note: admitted["message"] });
  await first;
});

test("the host's deadline ends the waiting in time", async (t) => {
  const world = daemonWorld(t);
  settings(world, { max_heavy_jobs: 1 });
  await world.start();
  const first = heavyCall(t, world, `${HEAVY} sleep 3`);
  await eventually(() => events(world).some(({ event }) => event === "started"));
  const { admitted } = await heavyCall(t, world, `${HEAVY} true`, { deadline_s: 11 });
  t.regex(String(admitted["message"]), /refused after 1 s in the queue/);
  await first;
});

test("a client that is gone leaves the line at once", async (t) => {
  const world = daemonWorld(t);
  settings(world, { max_heavy_jobs: 1 });
  await world.start();
  const first = heavyCall(t, world, `${HEAVY} sleep 2`);
  await eventually(() => events(world).some(({ event }) => event === "started"));
  const gone = await Agent.connect(world.socket, { hermes_home: world.environment["HERMES_HOME"] });
  const waiting = gone.ask("admit", { command: HEAVY, tool: "terminal", agent_pid: process.pid, call_id: "x" });
  waiting.catch(() => {});
  t.true(await eventually(() => gone.notifications.length > 0));
  t.like(gone.notifications[0], { method: "waiting", params: { call_id: "x" } });
  gone.close();
  const looks = async (): Promise<number> =>
    (JSON.parse((await runCli(["status", "--json"], { env: world.environment })).stdout) as StatusSnapshot).waiting
      .length;
  let left = await looks();
  for (let tries = 0; tries < 50 && left > 0; tries += 1) left = await looks();
  t.is(left, 0);
  await first;
});

test("a background job that is killed leaves a note for its chat's next turn, once", async (t) => {
  const world = daemonWorld(t);
  settings(world, { job_memory_max_mb: 100, swap_mb: 0 });
  await world.start();
  const hello = { hermes_home: world.environment["HERMES_HOME"] };
  const agent = await Agent.connect(world.socket, hello);
  const command = `${HEAVY} sleep 0.3; python3 -c 'kept = [bytearray(1 << 20) for _ in range(400)]' 2> /dev/null; true`;
  const admitted = await agent.ask("admit", {
    command,
    session_id: "chat",
    call_id: "c",
    tool: "terminal",
    background: true,
    agent_pid: process.pid,
  });
  const running = hermesShell(t, command, world.folder);
  const end = await agent.ask("end", { job: admitted["job"], background: true, process: "proc_1" });
  t.like(end["headroom"], { memory_cap_mb: 100, oom_killed: false });
  agent.close();
  await running;
  const other = await Agent.connect(world.socket, hello);
  let notes = (await other.ask("notes", { session_id: "chat" }))["notes"] as string[];
  for (let tries = 0; tries < 100 && notes.length === 0; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    notes = (await other.ask("notes", { session_id: "chat" }))["notes"] as string[];
  }
  t.regex(notes[0] ?? "", /^Background job proc_1: .*hit its 100 MB memory cap/);
  t.deepEqual(await other.ask("notes", { session_id: "chat" }), { notes: [], pending: 0 });
  other.close();
});

for (const { mode } of kernelModes) {
  test(`${mode}: a daemon that is killed loses no job; the next one tells how it ended`, async (t) => {
    const world = daemonWorld(t);
    settings(world, { job_memory_max_mb: 100, swap_mb: 0, max_heavy_jobs: 1 });
    const first = await world.start();
    const hello = { hermes_home: world.environment["HERMES_HOME"] };
    const agent = await Agent.connect(world.socket, hello);
    const go = join(world.folder, "go");
    const inside = join(world.folder, "inside");
    const isInside = `until grep -q headroom-job /proc/self/cgroup; do sleep 0.05; done; : > ${inside}`;
    const command = `${HEAVY} ${isInside}; while [ ! -e ${go} ]; do sleep 0.05; done; head -c 400m /dev/zero | tail > /dev/null; exit 5`;
    const admitted = await agent.ask("admit", { command, tool: "terminal", agent_pid: process.pid, call_id: "c" });
    const running = hermesShell(t, command, world.folder);
    t.true(await eventually(() => existsSync(inside)));
    first.kill("SIGKILL");
    await once(first, "exit");
    await world.start();
    const again = await Agent.connect(world.socket, hello);
    // Its turn is still taken.
    const refused = again.ask("admit", { command: HEAVY, tool: "terminal", agent_pid: process.pid, deadline_s: 11 });
    t.regex(String((await refused)["message"]), /runs on although its starter is gone/);
    writeFileSync(go, "");
    const { code } = await running;
    t.is(code, 5);
    const { headroom } = await again.ask("end", { job: admitted["job"], call_id: "c", exit_code: code });
    t.like(headroom, { memory_cap_mb: 100, oom_killed: true, killed_by: "kernel" });
    again.close();
  });
}

test("ten that start it at once get one daemon", async (t) => {
  const world = daemonWorld(t);
  const starts = Array.from({ length: 10 }, () => startCli(["daemon", "--json"], { env: world.environment }));
  const results = await Promise.all(starts.map(finishCli));
  const pids = new Set(results.map(({ stdout }) => (JSON.parse(stdout) as { pid: number }).pid));
  t.is(pids.size, 1);
  const [pid = 0] = pids;
  t.true(isAlive(pid));
  const stop = await runCli(["daemon", "stop"], { env: world.environment });
  t.regex(stop.stdout, /has stopped/);
  t.true(await eventually(() => !isAlive(pid)));
  t.regex((await runCli(["daemon", "stop"], { env: world.environment })).stdout, /No daemon runs/);
});

test("it leaves when nobody has needed it for a while, and not while a job runs", async (t) => {
  const world = daemonWorld(t);
  const daemon = await world.start(1);
  await heavyCall(t, world, `${HEAVY} sleep 3`);
  t.is(daemon.exitCode, null);
  await once(daemon, "exit");
  t.is(daemon.exitCode, 0);
  t.false(existsSync(world.socket));
});

test("another protocol is refused with what to do", async (t) => {
  const world = daemonWorld(t);
  await world.start();
  const newer = await Agent.connect(world.socket, { protocol: 2, version: "9.0.0" });
  t.like(newer.hello, { code: -32001, data: { code: "E_PROTOCOL" } });
  t.regex((newer.hello["data"] as { fix: string }).fix, /plugin is newer.*npm install/);
  t.like(await newer.ask("prepare", { command: "x" }), { code: -32600 });
  newer.close();
});

test("off does nothing; observe writes down what would be done, and does nothing", async (t) => {
  const world = daemonWorld(t);
  await world.start();
  const hello = { hermes_home: world.environment["HERMES_HOME"] };
  for (const [mode, logged] of [
    ["off", 0],
    ["observe", 1],
  ] as const) {
    settings(world, { mode });
    const agent = await Agent.connect(world.socket, hello);
    t.deepEqual(await agent.ask("prepare", { command: "npm test", cwd: "/" }), { heavy: false });
    t.deepEqual(await agent.ask("admit", { command: "npm test", tool: "terminal", agent_pid: process.pid }), {
      heavy: false,
    });
    agent.close();
    t.is(events(world).filter(({ event }) => event === "observe").length, logged);
  }
});

test("a job elsewhere is queued and not boxed", async (t) => {
  const world = daemonWorld(t);
  await world.start();
  const { admitted, headroom } = await heavyCall(t, world, `${HEAVY} true`, { backend: "docker" });
  t.is(admitted["job"], null);
  t.like(headroom, { isolated: false, mode: "off" });
});

test("wrong parameters are told by name, never by value", async (t) => {
  const world = daemonWorld(t);
  await world.start();
  const agent = await Agent.connect(world.socket);
  const answer = await agent.ask("admit", { command: 7, tool: "secret", agent_pid: -1, cwd: "relative" });
  t.is(answer["code"], -32602);
  t.regex(String(answer["message"]), /command.*agent_pid/);
  t.false(String(answer["message"]).includes("secret"));
  t.like(await agent.ask("no such", {}), { code: -32601 });
  agent.close();
});

test("a light command of another chat meanwhile is not in the box", async (t) => {
  const world = daemonWorld(t);
  mkdirSync(join(world.folder, "x"));
  await world.start();
  const heavy = heavyCall(t, world, `${HEAVY} sleep 0.5; cat /proc/self/cgroup`);
  await eventually(() => events(world).length > 0);
  const light = await hermesShell(t, "cat /proc/self/cgroup", world.folder);
  t.false(light.output.includes("headroom-job"));
  const { output } = await heavy;
  if (kernelModes.length > 0) t.true(output.includes("headroom-job"));
});

test("a stranger's process cannot be the agent", async (t) => {
  const world = daemonWorld(t);
  await world.start();
  const child = spawn("true", { stdio: "ignore" });
  await once(child, "exit");
  const agent = await Agent.connect(world.socket);
  const admitted = await agent.ask("admit", { command: HEAVY, tool: "terminal", agent_pid: child.pid ?? 0 });
  t.is(admitted["job"], null, "it is gone: nothing can be boxed, and the command goes on");
  agent.close();
});

test("what cannot be taken over keeps no daemon from starting", async (t) => {
  const world = daemonWorld(t);
  const calls = join(world.runtimeDir, "calls");
  mkdirSync(calls, { recursive: true, mode: 0o700 });
  const facts = {
    call_id: "c",
    session_id: "s",
    hermes_home: "/nowhere",
    command: "npm test",
    work: { kind: "test", nextStep: "x" },
    cwd: "/",
    cap_mb: 1,
    swap_cap_mb: 0,
    mode: "userspace",
    lightened: [],
  };
  for (const [name, job] of [
    ["1-1-1", "1-1-1"],
    ["2-2-2", "../../elsewhere"],
    ["3-3-3", "no job"],
  ]) {
    writeFileSync(join(calls, `${name}.call.json`), JSON.stringify({ ...facts, job }));
  }
  writeFileSync(join(world.runtimeDir, "1-1-1.job.json"), "{");
  const daemon = await world.start();
  t.is(daemon.exitCode, null);
  t.is((await heavyCall(t, world, `${HEAVY} exit 4`)).code, 4);
});
