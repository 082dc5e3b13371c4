import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { followJob, type EndedEvent, type JobEvent } from "../../src/job/events.js";
import type { UsableMode } from "../../src/modes/choose.js";
import { eventually, isAlive } from "../support/leftovers.js";
import { holdingModes, kernelModes, native } from "../support/modes.js";

const MB = 1024 * 1024;

const track = ({ mode, base }: UsableMode, texts: string[], agentPid = process.pid) =>
  native.trackJob(
    { mode, base, memoryBytes: 256 * MB, swapBytes: 0, poolMemoryBytes: 4096 * MB, poolSwapBytes: 0 },
    { agentPid, texts, cwd: "/", oomScoreAdj: 900 },
    { runtimeDir: null, commandText: "test", kind: "custom", collectsOrphans: false },
  );

const follow = (eventsFd: number | null): { events: JobEvent[]; ended: Promise<EndedEvent | undefined> } => {
  const events: JobEvent[] = [];
  return { events, ended: followJob(eventsFd ?? -1, (event) => events.push(event)) };
};

const folder = (t: ExecutionContext): string => {
  const path = mkdtempSync(join(tmpdir(), "headroom-tracked-"));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

/** Starts a command as an agent does: a shell in a session of its own. */
const startAsAgent = (text: string): number => {
  const child = spawn("bash", ["-c", `cd /; eval '${text}'`], { detached: true, stdio: "ignore" });
  return child.pid ?? -1;
};

for (const mode of holdingModes) {
  test(`${mode.mode}: a command of this process is found and told`, async (t) => {
    const dir = folder(t);
    const go = join(dir, "go");
    t.teardown(() => writeFileSync(go, ""));
    const text = `while ! [ -e ${go} ]; do sleep 0.02; done`;
    const start = track(mode, [text]);
    t.is(start.failure, null);
    t.is(start.pid, null);
    const { events, ended } = follow(start.eventsFd);
    const pid = startAsAgent(text);
    t.true(await eventually(() => events.length > 0, 60_000));
    const [entered] = events;
    t.like(entered, { event: "entered", pid, scoped: false });
    if (kernelModes.includes(mode)) {
      t.true(readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(`headroom-job-${start.id}`));
    }
    t.is(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim(), "900");
    t.true(native.finishTrackedJob(start.id ?? ""));
    writeFileSync(go, "");
    t.like(await ended, { ending: null, escaped: 0, left_running: [] });
    t.false(isAlive(pid));
    t.false(native.finishTrackedJob(start.id ?? ""));
    t.false(existsSync(start.cgroup ?? "/nowhere"));
  });
}

test("a call that starts nothing is told to be over", async (t) => {
  const start = track({ mode: "userspace", base: null }, ["never started"]);
  const { events, ended } = follow(start.eventsFd);
  t.true(native.finishTrackedJob(start.id ?? ""));
  t.truthy(await ended);
  t.like(events[0], { event: "not_entered", pid: null });
});

test("an agent that is gone is a failure, not an exception", (t) => {
  // No process has this number: it is above the largest that Linux gives.
  const start = track({ mode: "userspace", base: null }, ["x"], 2 ** 22 + 1);
  t.is(start.failure, "failed");
  t.is(start.eventsFd, null);
  t.throws(() => native.finishTrackedJob("no job"), { message: /^E_ARGUMENT: / });
});
