/** A process number that was used again: nothing that is on record of the one is taken for the other's. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { dataDirectory } from "../../src/events/log.js";
import { readEvents } from "../../src/events/read.js";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { eventually } from "../support/leftovers.js";
import { native } from "../support/modes.js";
import { finishCli, runCli, startCli } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-again-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

let worlds = 0;
const world = () => {
  worlds += 1;
  const runtime = join(scratch, String(worlds));
  const records = join(runtime, "hermes-headroom");
  mkdirSync(records, { recursive: true, mode: 0o700 });
  chmodSync(runtime, 0o700);
  return {
    records,
    env: { XDG_RUNTIME_DIR: runtime, HERMES_HOME: join(runtime, "home"), HEADROOM_MAX_HEAVY_JOBS: "1" },
  };
};

const LARGE = "const kept = Buffer.alloc(80e6, 1); console.log(kept.length); setInterval(() => {}, 1e6);";

/** Somebody else's process, larger than the cap below, that has the number by now. */
const stranger = async (t: ExecutionContext): Promise<{ child: ChildProcess; pid: number }> => {
  const child = spawn(process.execPath, ["-e", LARGE], { stdio: ["ignore", "pipe", "ignore"] });
  t.teardown(() => child.kill("SIGKILL"));
  await once(child.stdout!, "data");
  return { child, pid: child.pid ?? 0 };
};

/** A record of a job whose starter and command had this number, in an earlier life of it. */
const putRecord = (records: string, pid: number): string => {
  const id = `${pid}-1-1`;
  const earlier = { pid, start_ticks: 1 };
  const facts = {
    id,
    mode: "userspace",
    cgroup: null,
    memory_bytes: 1_048_576,
    swap_bytes: 0,
    command: "npm test",
    kind: "test",
    cwd: "/",
    owner: earlier,
    root: earlier,
    started_unix_ms: 0,
    boot_id: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    left: false,
  };
  writeFileSync(join(records, `${id}.job.json`), JSON.stringify(facts));
  return id;
};

test("a record of an earlier process is swept, and the process that has its number now is left alone", async (t) => {
  const { records, env } = world();
  const { child, pid } = await stranger(t);
  putRecord(records, pid);
  const { code, stderr } = await runCli(["run", "--memory", "100", "--", "sleep", "2"], { env, queue: true });
  t.deepEqual([code, stderr], [0, ""]);
  t.deepEqual([child.exitCode, child.signalCode], [null, null]);
  putRecord(records, pid);
  const { jobs } = JSON.parse((await runCli(["status", "--json"], { env })).stdout) as StatusSnapshot;
  t.deepEqual(jobs, []);
  t.deepEqual(
    readdirSync(records).filter((name) => name.endsWith(".json")),
    [],
  );
});

test("an orphan is held to its cap; who has its numbers now is neither named nor stopped", async (t) => {
  const { records, env } = world();
  const { child, pid } = await stranger(t);
  const id = putRecord(records, pid);
  // The job itself, marked as its starter marked it.
  const orphan = spawn(process.execPath, ["-e", LARGE], {
    env: { ...process.env, HEADROOM_JOB_ID: id },
    stdio: "ignore",
  });
  t.teardown(() => orphan.kill("SIGKILL"));
  const status = async () => (JSON.parse((await runCli(["status", "--json"], { env })).stdout) as StatusSnapshot).jobs;
  t.true(await eventually(() => native.listJobs(records, false).length === 1));
  const [job, ...others] = await status();
  t.deepEqual([job?.state, job?.pid, job?.who, others.length], ["orphaned", orphan.pid, { pid, name: null }, 0]);
  t.regex((await runCli(["status"], { env })).stdout, new RegExp(`gone \\(${pid}\\)`));
  // This run takes the orphan over, whose cap is 1 MB.
  const { code } = await runCli(["run", "--memory", "100", "--", "sleep", "3"], { env, queue: true });
  t.is(code, 0);
  t.true(await eventually(() => orphan.signalCode === "SIGKILL"));
  t.deepEqual([child.exitCode, child.signalCode], [null, null]);
});

test("slot and ticket of an earlier process are free, whoever has its number now", async (t) => {
  const { records, env } = world();
  const { pid } = await stranger(t);
  const slots = join(records, "slots");
  mkdirSync(slots, { mode: 0o700 });
  const description = JSON.stringify({ command: "old", kind: "test", since_ms: 1, cap_mb: 20_000, reason: null });
  for (const name of ["slot-0", "ticket-00000000000000000000"]) {
    writeFileSync(join(slots, name), `${JSON.stringify({ pid, start_ticks: 1, description })}\n`);
  }
  const { code, stderr } = await runCli(["run", "--memory", "100", "--", "sh", "-c", "exit 6"], { env, queue: true });
  t.deepEqual([code, stderr], [6, ""]);
});

test("a holder whose file names another process is not told by that number", async (t) => {
  const { records, env } = world();
  const { pid } = await stranger(t);
  const holder = startCli(["run", "--memory", "100", "--", "sh", "-c", "read go"], { env, queue: true });
  const ended = finishCli(holder);
  const data = dataDirectory({ HERMES_HOME: env.HERMES_HOME });
  t.true(await eventually(() => readEvents(data, 9).some(({ event }) => event === "started"), 30_000));
  const description = JSON.stringify({ command: "old", kind: "test", since_ms: 1, cap_mb: 100, reason: null });
  const line = `${JSON.stringify({ pid, start_ticks: 1, description })}\n`;
  writeFileSync(join(records, "slots", "slot-0"), line);
  const words = ["run", "--set", "queue_timeout_s=0", "--memory", "100", "--", "true"];
  const { code, stderr } = await runCli(words, { env, queue: true });
  t.is(code, 75);
  t.regex(stderr, /Running: `old` \(for /);
  t.false(stderr.includes(String(pid)), stderr);
  holder.stdin?.end("go\n");
  t.is((await ended).code, 0);
});
