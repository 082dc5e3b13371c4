/** The wall clock may jump by hours, forth and back: nobody waits longer or shorter, and no age is odd. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { dataDirectory } from "../../src/events/log.js";
import { readEvents } from "../../src/events/read.js";
import type { HeadroomReport } from "../../src/outcome/report.js";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { eventually } from "../support/leftovers.js";
import { finishCli, runCli, startCli, type CliResult } from "../support/run-cli.js";
import { clockOff } from "../support/wall-clock.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-clock-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

interface World {
  env: { XDG_RUNTIME_DIR: string; HERMES_HOME: string; HEADROOM_MAX_HEAVY_JOBS: string };
  data: string;
}

let worlds = 0;
const world = (): World => {
  worlds += 1;
  const runtime = join(scratch, String(worlds));
  mkdirSync(runtime, { mode: 0o700 });
  const home = join(runtime, "home");
  return {
    env: { XDG_RUNTIME_DIR: runtime, HERMES_HOME: home, HEADROOM_MAX_HEAVY_JOBS: "1" },
    data: dataDirectory({ HERMES_HOME: home }),
  };
};

const AN_HOUR_S = 3600;

/** A job that holds the only slot until the test lets it go. */
const hold = async (
  t: ExecutionContext,
  { env, data }: World,
  clock: Record<string, string>,
): Promise<{ release: () => Promise<CliResult> }> => {
  const words = ["run", "--memory", "100", "--", "sh", "-c", "read go; exit 3"];
  const child = startCli(words, { env: { ...env, ...clock }, queue: true });
  const ended = finishCli(child);
  t.teardown(() => child.exitCode === null && child.stdin?.end());
  t.true(await eventually(() => readEvents(data, 9).some(({ event }) => event === "started"), 30_000));
  return {
    release: async () => {
      child.stdin?.end("go\n");
      return ended;
    },
  };
};

const CLOCKS: [name: string, holder: number[], waiter: number[]][] = [
  ["was put back by hours after the holder came", [0], [-7]],
  ["was put forward by hours after the holder came", [0], [7]],
  ["jumps with every look", [0, 9, -9, 30, -500], [-3, 5, 0, -200, 48]],
];

for (const [name, holder, waiter] of CLOCKS) {
  test(`the clock ${name}: waiting, ages, order`, async (t) => {
    const place = world();
    const { env, data } = place;
    const { release } = await hold(t, place, clockOff(...holder));
    const words = ["run", "--json", "--memory", "100", "--", "sh", "-c", "exit 5"];
    const waiting = finishCli(startCli(words, { env: { ...env, ...clockOff(...waiter) }, queue: true }));
    t.true(await eventually(() => readEvents(data, 9).some(({ event }) => event === "queued"), 30_000));

    for (const clock of [clockOff(0), clockOff(...waiter), clockOff(-1000), clockOff(1000)]) {
      const { code, stdout, stderr } = await runCli(["status", "--json"], { env: { ...env, ...clock } });
      t.deepEqual([code, stderr], [0, ""]);
      const { jobs, waiting: line, problem } = JSON.parse(stdout) as StatusSnapshot;
      t.deepEqual([jobs.length, line.length, problem], [1, 1, null]);
      for (const age of [jobs[0]?.age_s, line[0]?.waiting_s]) {
        t.true(typeof age === "number" && age >= 0 && age < AN_HOUR_S, String(age));
      }
    }

    t.is((await release()).code, 3);
    const { code, stderr } = await waiting;
    t.is(code, 5, stderr);
    const report = JSON.parse(stderr) as HeadroomReport;
    t.true((report.queued_s ?? 0) < AN_HOUR_S, String(report.queued_s));
    const shown = await runCli(["events", "--json"], { env });
    const events = shown.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string; queued_s?: number; took_s?: number });
    t.deepEqual(events.map(({ event }) => event).toSorted(), ["finished", "finished", "queued", "started", "started"]);
    t.deepEqual(
      events.slice(0, 2).map(({ event }) => event),
      ["started", "queued"],
    );
    for (const { queued_s = 0, took_s = 0 } of events) {
      for (const age of [queued_s, took_s]) t.true(age >= 0 && age < AN_HOUR_S);
    }
  });

  test(`the clock ${name}: refused after the queue's time, not before`, async (t) => {
    const place = world();
    const { env, data } = place;
    const { release } = await hold(t, place, clockOff(...holder));
    const words = ["run", "--set", "queue_timeout_s=2", "--memory", "100", "--", "echo", "never"];
    const { code, stdout, stderr } = await runCli(words, { env: { ...env, ...clockOff(...waiter) }, queue: true });
    t.deepEqual([code, stdout], [75, ""]);
    const refused = readEvents(data, 9).find(({ event }) => event === "refused");
    t.true((refused?.queued_s ?? 0) >= 2 && (refused?.queued_s ?? 0) < AN_HOUR_S, String(refused?.queued_s));
    t.regex(
      stderr,
      /refused after 2 s in the queue\. Running: `sh -c 'read go; exit 3'` \(pid \d+, for \d+ s, \d+ of 100 MB\)/,
    );
    t.is((await release()).code, 3);
  });
}

test("a log that is followed shows what comes, whatever time it has", async (t) => {
  const { env } = world();
  const follower = startCli(["events", "--follow", "--json"], { env });
  let seen = "";
  follower.stdout?.on("data", (chunk) => (seen += String(chunk)));
  const followed = finishCli(follower);
  const lines = (): string[] => seen.split("\n").filter((line) => line !== "");
  let count = 0;
  for (const clock of [clockOff(0), clockOff(-24), clockOff(24)]) {
    await runCli(["run", "--memory", "100", "--", "true"], { env: { ...env, ...clock } });
    count += 2;
    t.true(await eventually(() => lines().length === count, 30_000), seen);
  }
  follower.kill("SIGTERM");
  await followed;
  t.deepEqual(
    lines().map((line) => (JSON.parse(line) as { event: string }).event),
    ["started", "finished", "started", "finished", "started", "finished"],
  );
});
