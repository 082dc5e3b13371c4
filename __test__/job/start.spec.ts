import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { Socket } from "node:net";
import test from "ava";
import { startJob, type JobRequest, type StartedJob } from "../../src/job/start.js";
import type { UsableMode } from "../../src/modes/choose.js";
import { isIsolated } from "../../src/modes/mode.js";
import { jobCgroupsOf } from "../support/leftovers.js";
import { holdingModes, kernelModes, native } from "../support/modes.js";

const USERSPACE: UsableMode = { mode: "userspace", base: null };

const request = (script: string, change: Partial<JobRequest> = {}): JobRequest => ({
  argv: ["sh", "-c", script].map((word) => Buffer.from(word)),
  text: "test",
  kind: "custom",
  memoryMb: 256,
  swapMb: 0,
  pool: { memoryMb: 4096, swapMb: 0 },
  stdio: ["null", "pipe", "pipe"],
  runtimeDir: null,
  collectsOrphans: false,
  ...change,
});

const outputOf = async (job: StartedJob): Promise<string> =>
  text(new Socket({ fd: job.pipeFds[1] ?? -1, readable: true, writable: false }));

const argv = (program: string) => ({ argv: [Buffer.from(program)] });

const start = (script: string, mode: UsableMode, change: Partial<JobRequest> = {}): StartedJob => {
  const job = startJob(native, [mode], request(script, change));
  if (!job.started) throw new Error(job.message);
  return job;
};

for (const mode of holdingModes) {
  test(`${mode.mode}: a job ends with its own code and its box is gone`, async (t) => {
    const job = start("exit 7", mode);
    t.deepEqual((await job.ended)?.ending, { exit_code: 7 });
    t.false(jobCgroupsOf(process.pid).includes(`headroom-job-${job.id}`));
  });

  test(`${mode.mode}: a job's end by a signal is told`, async (t) => {
    t.deepEqual((await start("kill -SEGV $$", mode).ended)?.ending, { signal: 11 });
  });

  test(`${mode.mode}: the biggest process dies at the cap, the shell sees 137 and goes on`, async (t) => {
    const job = start("head -c 900m /dev/zero | tail >/dev/null; echo $?", mode, { memoryMb: 80 });
    const [output, ended] = await Promise.all([outputOf(job), job.ended]);
    t.is(output, "137\n");
    t.deepEqual(ended?.ending, { exit_code: 0 });
    t.is((ended?.oom_kills ?? 0) + (ended?.cap_kills ?? 0), 1);
    if (isIsolated(mode.mode)) t.true((ended?.peak?.bytes ?? Infinity) <= 80 * 1024 * 1024);
  });

  test(`${mode.mode}: many processes together reach the cap, and enough of them die`, async (t) => {
    // Each holds 60 MB in a variable: one fits, four do not.
    const worker = "(held=$(head -c 60m /dev/zero | tr '\\0' x); sleep 2) &";
    const job = start(`${worker} ${worker} ${worker} ${worker} wait; echo done`, mode, { memoryMb: 200 });
    const [output, ended] = await Promise.all([outputOf(job), job.ended]);
    t.is(output, "done\n");
    t.true((ended?.oom_kills ?? 0) + (ended?.cap_kills ?? 0) >= 1);
  });

  test(`${mode.mode}: work that fits is left alone`, async (t) => {
    const job = start("head -c 50m /dev/zero | tail | wc -c", mode, { memoryMb: 256 });
    const [output, ended] = await Promise.all([outputOf(job), job.ended]);
    t.is(output.trim(), String(50 * 1024 * 1024));
    t.is((ended?.oom_kills ?? 1) + (ended?.cap_kills ?? 1), 0);
  });

  test(`${mode.mode}: a job's oom_score_adj is raised, the starter's is not`, async (t) => {
    const before = readFileSync("/proc/self/oom_score_adj", "utf8");
    const output = await outputOf(start("cat /proc/self/oom_score_adj", mode));
    t.is(output, "900\n");
    t.is(readFileSync("/proc/self/oom_score_adj", "utf8"), before);
  });

  test.serial(`${mode.mode}: a program that is not there, and one that cannot be executed, are told apart`, (t) => {
    const missing = startJob(native, [mode], request("", argv("no-such-program-at-all")));
    t.false(missing.started);
    if (!missing.started) t.is(missing.failure, "not-found");
    const directory = startJob(native, [mode], request("", argv("/etc")));
    t.false(directory.started);
    if (!directory.started) t.is(directory.failure, "not-executable");
    t.deepEqual(jobCgroupsOf(process.pid), []);
  });
}

for (const mode of kernelModes) {
  test(`${mode.mode}: what a job starts, orphans too, is born in its box`, async (t) => {
    const look = "cat /proc/self/cgroup";
    const job = start(`${look}; (${look}) & ( (${look}) & ) ; setsid ${look}; wait; sleep 0.1`, mode);
    const [output] = await Promise.all([outputOf(job), job.ended]);
    const places = output.split("\n").filter((line) => /^(\d+:([^:]*,)?memory(,[^:]*)?|0:):/.test(line));
    const inside = places.filter((line) => line.includes(`/headroom-job-${job.id}`));
    t.is(inside.length, 4, output);
  });

  test(`${mode.mode}: a run inside a job stays inside the outer job's limits`, async (t) => {
    const look = "cat /proc/self/cgroup";
    const inner = JSON.stringify([
      process.execPath,
      "bin/hermes-headroom.js",
      "run",
      "--memory",
      "100",
      "--",
      "sh",
      "-c",
      look,
    ]);
    const job = start(`${JSON.parse(inner).slice(0, -1).join(" ")} '${look}'`, mode, { memoryMb: 512 });
    const [output, ended] = await Promise.all([outputOf(job), job.ended]);
    t.deepEqual(ended?.ending, { exit_code: 0 });
    const places = output.split("\n").filter((line) => line.includes("headroom-job-"));
    t.true(places.length > 0, output);
    for (const line of places) t.regex(line, new RegExp(`headroom-job-${job.id}/.*headroom-job-`));
  });
}

for (const mode of kernelModes) {
  test(`${mode.mode}: a kill in a box inside a job is the inner box's, not the outer's`, async (t) => {
    const hog = "head -c 500m /dev/zero | tail >/dev/null";
    const inner = `${process.execPath} bin/hermes-headroom.js run --mode ${mode.mode} --memory 80 -- sh -c '${hog}; exit 3'`;
    const job = start(inner, mode, { memoryMb: 500 });
    const ended = await job.ended;
    t.deepEqual(ended?.ending, { exit_code: 3 });
    t.is(ended?.oom_kills, 0);
  });
}

test("a box that cannot be made costs one warning and a mode, not the job", async (t) => {
  const broken: UsableMode = { mode: "cgroup2", base: "/nowhere/at/all" };
  const job = startJob(native, [broken, USERSPACE], request("exit 4"));
  if (!job.started) return t.fail(job.message);
  t.is(job.mode, "userspace");
  t.is(job.warnings.length, 1);
  t.regex(job.warnings[0] ?? "", /cgroup2 failed .* using userspace/);
  t.deepEqual((await job.ended)?.ending, { exit_code: 4 });
});

test("words that are not UTF-8 arrive as they are", async (t) => {
  const words = [...["printf", "%s"].map((word) => Buffer.from(word)), Buffer.from([0x61, 0xff, 0x62])];
  const job = startJob(native, [USERSPACE], request("", { argv: words }));
  if (!job.started) return t.fail(job.message);
  const socket = new Socket({ fd: job.pipeFds[1] ?? -1, readable: true, writable: false });
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  t.deepEqual(Buffer.concat(chunks), Buffer.from([0x61, 0xff, 0x62]));
  await job.ended;
});
