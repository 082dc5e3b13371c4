/** Real `run`s that take turns. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "ava";
import { readEvents } from "../../src/events/read.js";
import type { HeadroomReport } from "../../src/outcome/report.js";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { eventually } from "../support/leftovers.js";
import { finishCli, runCli, startCli } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-turns-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

/** A line, records and events of their own, so that other tests' jobs do not count. */
const world = (name: string) => {
  const runtime = mkdtempSync(join(scratch, `${name}-`));
  return { XDG_RUNTIME_DIR: runtime, HERMES_HOME: join(runtime, "home") };
};

const inMode = (mode: string): string[] => [
  "run",
  "--set",
  `mode=${mode}`,
  "--",
  "sh",
  "-c",
  'echo "[$HEADROOM_JOB_ID]"',
];

for (const limit of [1, 2]) {
  test.serial(
    `eight at once with ${limit} slot${limit > 1 ? "s" : ""}: never more, in the order of arrival`,
    async (t) => {
      const env = { ...world(`limit${limit}`), HEADROOM_MAX_HEAVY_JOBS: String(limit) };
      const log = join(env.XDG_RUNTIME_DIR, "log");
      writeFileSync(log, "");
      const job = (number: number): string => `echo "+${number}" >> ${log}; sleep 0.8; echo "-${number}" >> ${log}`;
      const directory = join(env.HERMES_HOME, "plugin-data/headroom");
      const arrived = (): number => new Set(readEvents(directory, 99).map(({ pid }) => pid)).size;
      const children = [];
      for (let number = 0; number < 8; number += 1) {
        const words = ["run", "--memory", "100", "--json", "--", "sh", "-c", job(number)];
        children.push(finishCli(startCli(words, { env, queue: true })));
        // The next one comes when this one stands in the line: starting a process takes its time.
        t.true(await eventually(() => arrived() > number, 30_000));
      }
      const results = await Promise.all(children);
      t.deepEqual(
        results.map(({ code }) => code),
        Array.from({ length: 8 }, () => 0),
      );
      const lines = readFileSync(log, "utf8").trim().split("\n");
      let running = 0;
      let most = 0;
      for (const line of lines) {
        running += line.startsWith("+") ? 1 : -1;
        most = Math.max(most, running);
      }
      t.is(running, 0);
      t.true(most <= limit, lines.join(" "));
      // Two that get their slots in one moment may be a step apart in the log.
      const starts = lines.filter((line) => line.startsWith("+")).map(Number);
      t.true(
        starts.every((number, index) => Math.abs(number - index) < limit),
        lines.join(" "),
      );
    },
  );
}

test.serial("a holder that is killed gives its slot to the next", async (t) => {
  const env = { ...world("killed"), HEADROOM_MAX_HEAVY_JOBS: "1" };
  const first = startCli(["run", "--memory", "100", "--", "sleep", "60"], { env, queue: true });
  const firstEnded = finishCli(first);
  t.true(
    await eventually(() =>
      readEvents(join(env.HERMES_HOME, "plugin-data/headroom"), 9).some(({ event }) => event === "started"),
    ),
  );
  const second = finishCli(
    startCli(["run", "--memory", "100", "--json", "--", "echo", "second"], { env, queue: true }),
  );
  first.kill("SIGKILL");
  const { code, stdout } = await second;
  t.deepEqual([code, stdout], [0, "second\n"]);
  // The orphan of the first is ours to end; it holds the pipes open.
  const status = await runCli(["status", "--json"], { env });
  const { jobs } = JSON.parse(status.stdout) as { jobs: { pid: number | null }[] };
  for (const { pid } of jobs) if (pid !== null) process.kill(pid, "SIGKILL");
  await firstEnded;
});

test.serial("a waiter that is stopped lets those behind it go first, and has its turn when it goes on", async (t) => {
  const env = { ...world("stopped"), HEADROOM_MAX_HEAVY_JOBS: "1" };
  const log = join(env.XDG_RUNTIME_DIR, "log");
  const events = () => readEvents(join(env.HERMES_HOME, "plugin-data/headroom"), 99);
  const run = (name: string) =>
    startCli(["run", "--memory", "100", "--", "sh", "-c", `echo ${name} >> ${log}; read go`], { env, queue: true });
  const queued = (count: number) => () => events().filter(({ event }) => event === "queued").length === count;
  const holder = run("holder");
  const holderEnded = finishCli(holder);
  t.true(await eventually(() => events().some(({ event }) => event === "started"), 30_000));
  const stopped = run("stopped");
  t.teardown(() => stopped.kill("SIGKILL"));
  const stoppedEnded = finishCli(stopped);
  t.true(await eventually(queued(1), 30_000));
  stopped.kill("SIGSTOP");
  const next = run("next");
  const nextEnded = finishCli(next);
  t.true(await eventually(queued(2), 30_000));
  const { waiting } = JSON.parse((await runCli(["status", "--json"], { env })).stdout) as StatusSnapshot;
  t.deepEqual(
    waiting.map(({ pid }) => pid),
    [stopped.pid, next.pid],
  );
  t.is(waiting[0]?.reason, `is stopped, and passed over until it goes on (kill -CONT ${stopped.pid})`);
  holder.stdin?.end();
  const names = (): string[] => readFileSync(log, "utf8").trim().split("\n");
  t.true(await eventually(() => names().length === 2, 60_000));
  t.deepEqual(names(), ["holder", "next"]);
  stopped.kill("SIGCONT");
  stopped.stdin?.end();
  next.stdin?.end();
  for (const ended of [holderEnded, nextEnded, stoppedEnded]) t.is((await ended).signal, null);
  t.deepEqual(names(), ["holder", "next", "stopped"]);
});

test.serial("a waiter that is interrupted leaves the line at once and never runs", async (t) => {
  const env = { ...world("interrupted"), HEADROOM_MAX_HEAVY_JOBS: "1" };
  const first = startCli(["run", "--memory", "100", "--", "sleep", "2"], { env, queue: true });
  const firstEnded = finishCli(first);
  const events = () => readEvents(join(env.HERMES_HOME, "plugin-data/headroom"), 9);
  t.true(await eventually(() => events().some(({ event }) => event === "started")));
  const second = startCli(["run", "--memory", "100", "--", "echo", "second"], { env, queue: true });
  const secondEnded = finishCli(second);
  t.true(await eventually(() => events().some(({ event }) => event === "queued")));
  second.kill("SIGINT");
  const { signal, stdout } = await secondEnded;
  t.deepEqual([signal, stdout], ["SIGINT", ""]);
  t.is((await firstEnded).code, 0);
});

test.serial("after the queue's time it is refused with 75, a report and the holder's name", async (t) => {
  const env = { ...world("refused"), HEADROOM_MAX_HEAVY_JOBS: "1" };
  const first = startCli(["run", "--memory", "100", "--", "sleep", "4"], { env, queue: true });
  const firstEnded = finishCli(first);
  const directory = join(env.HERMES_HOME, "plugin-data/headroom");
  t.true(await eventually(() => readEvents(directory, 9).some(({ event }) => event === "started")));
  const file = join(scratch, "refused.json");
  const words = ["run", "--set", "queue_timeout_s=1", "--report", file, "--memory", "100", "--", "echo", "never"];
  const { code, stdout, stderr } = await runCli(words, { env, queue: true });
  t.deepEqual([code, stdout], [75, ""]);
  t.regex(stderr, /`echo never` was refused after 1 s in the queue. Running: `sleep 4` \(pid \d+/);
  const report = JSON.parse(readFileSync(file, "utf8")) as HeadroomReport;
  t.regex(report.note ?? "", /Nothing was run/);
  t.is((await firstEnded).code, 0);
  t.deepEqual(
    readEvents(directory, 9).map(({ event }) => event),
    ["started", "queued", "refused", "finished"],
  );
});

test.serial("a run inside a job does not wait for itself", async (t) => {
  const env = { ...world("inside"), HEADROOM_MAX_HEAVY_JOBS: "1" };
  const inner = `${process.execPath} bin/hermes-headroom.js run --memory 80 -- echo inner`;
  const { code, stdout } = await runCli(["run", "--memory", "300", "--", "sh", "-c", inner], { env, queue: true });
  t.deepEqual([code, stdout], [0, "inner\n"]);
});

test.serial("off does nothing at all, observe only logs", async (t) => {
  const env = world("modes");
  const directory = join(env.HERMES_HOME, "plugin-data/headroom");
  t.deepEqual((await runCli(inMode("off"), { env, queue: true })).stdout, "[]\n");
  t.deepEqual(readEvents(directory, 9), []);
  t.deepEqual((await runCli(inMode("observe"), { env, queue: true })).stdout, "[]\n");
  const [event] = readEvents(directory, 9);
  t.is(event?.event, "observe");
  t.true((event?.cap_mb ?? 0) > 0);
});

test.serial("a bad setting is told in one line and changes nothing", async (t) => {
  const env = { ...world("bad"), HEADROOM_MAX_HEAVY_JOBS: "many" };
  const { code, stderr } = await runCli(["run", "--memory", "100", "--", "true"], { env, queue: true });
  t.is(code, 0);
  t.regex(
    stderr,
    /^headroom: environment HEADROOM_MAX_HEAVY_JOBS: max_heavy_jobs: "many" is not allowed: a whole number from 0 to 64; 0 stays in force\n$/,
  );
});

test.serial("a peak is learnt, and explain tells it", async (t) => {
  const env = world("peaks");
  const project = join(env.XDG_RUNTIME_DIR, "project");
  mkdirSync(project);
  writeFileSync(join(project, "Makefile"), "all:\n\t@./big\n");
  writeFileSync(join(project, "big"), "#!/bin/sh\nhead -c 60m /dev/zero | tail > /dev/null\n", { mode: 0o755 });
  const first = await runCli(["run", "--memory", "200", "--", "make"], { env, cwd: project, queue: true });
  t.is(first.code, 0, first.stderr);
  const { stdout } = await runCli(["explain", "--json", "--", "make -j1"], { env, cwd: project });
  const { learned_peak_mb } = JSON.parse(stdout) as { learned_peak_mb: number | null };
  t.true((learned_peak_mb ?? 0) >= 50 && (learned_peak_mb ?? 0) <= 200, String(learned_peak_mb));
});
