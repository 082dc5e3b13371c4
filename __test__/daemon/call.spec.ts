/** One call's account, with a job that ends when the test says so. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { classify } from "../../src/classify/classify.js";
import { CallTable } from "../../src/daemon/call-table.js";
import { HeavyCall, type CallFacts } from "../../src/daemon/call.js";
import { CallStore } from "../../src/daemon/store.js";
import type { EndedEvent } from "../../src/job/events.js";
import { JobDiary } from "../../src/run/diary.js";
import { readEvents } from "../../src/events/read.js";
import { Sessions } from "../../src/sessions/sessions.js";

const FACTS: CallFacts = {
  job: "1-2-3",
  call_id: "call_1",
  session_id: "chat",
  hermes_home: "/nowhere",
  command: "npm test",
  work: { kind: "test", nextStep: "run one test file at a time" },
  cwd: "/project",
  cap_mb: 300,
  swap_cap_mb: 256,
  mode: "cgroup1",
  queued_s: 0,
  lightened: [],
  learned_peak_mb: null,
  background: false,
  process: null,
};

const ENDED: EndedEvent = {
  ending: null,
  peak: { bytes: 200 * 1024 * 1024, source: "max_usage" },
  cap_hit: false,
  oom_kills: 0,
  cap_kills: 0,
  victims: [],
  left_running: [],
  escaped: 0,
  ended_by_signal: null,
  pool_stopped: false,
  took_ms: 12_000,
};
const KILLED: EndedEvent = { ...ENDED, cap_hit: true, oom_kills: 1 };

const scene = (t: ExecutionContext) => {
  const folder = mkdtempSync(join(tmpdir(), "headroom-call-"));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const sessions = new Sessions();
  const store = new CallStore(folder);
  let idle = 0;
  const table = new CallTable(sessions, store, () => (idle += 1));
  const begin = (change: Partial<CallFacts> = {}) => {
    const facts = { ...FACTS, ...change };
    let settle: ((event: EndedEvent) => void) | undefined;
    const ended = new Promise<EndedEvent | undefined>((resolve) => (settle = resolve));
    const end = (event: EndedEvent): void => settle?.(event);
    let left = 0;
    let finished = 0;
    const environment = { HERMES_HOME: folder };
    const call = new HeavyCall({
      facts,
      place: { started: () => {}, leave: () => (left += 1) },
      tracked:
        facts.job === null ? undefined : { id: facts.job, mode: facts.mode, finish: () => (finished += 1), ended },
      diary: new JobDiary(environment, {
        command: facts.command,
        kind: "test",
        cwd: folder,
        classified: classify(facts.command),
      }),
      measure: () => ({ available_mb: 900, total_mb: 1000, swap_free_mb: 0, swap_total_mb: 0 }),
      remark: undefined,
    });
    table.add(call);
    return { call, end, left: () => left, finished: () => finished };
  };
  return {
    folder,
    sessions,
    store,
    table,
    begin,
    idle: () => idle,
    events: () => readEvents(join(folder, "plugin-data/headroom"), 99),
  };
};

test("a job that was killed at its cap is told with the next step, and its slot is free", async (t) => {
  const { begin, table, events, idle } = scene(t);
  const { call, end, left, finished } = begin({ queued_s: 4, lightened: ["capped the heap"] });
  t.is(table.running, 1);
  end(KILLED);
  const report = await call.end({ exitCode: 137 });
  t.like(report, {
    memory_cap_mb: 300,
    mode: "cgroup1",
    isolated: true,
    peak_mb: 200,
    oom_killed: true,
    killed_by: "kernel",
    queued_s: 4,
    lightened: ["capped the heap"],
  });
  t.regex(report.note ?? "", /`npm test` hit its 300 MB memory cap.*Next: run one test file at a time\./);
  t.notRegex(report.note ?? "", /hermes-headroom run/);
  t.is(left(), 1);
  t.is(finished(), 1);
  t.is(idle(), 1);
  t.deepEqual(
    events().map(({ event, exit_code }) => [event, exit_code]),
    [
      ["oom", 137],
      ["finished", 137],
    ],
  );
  table.answered(call);
  t.is(table.find("1-2-3", ""), undefined);
});

test("a job that went well has no note", async (t) => {
  const { begin } = scene(t);
  const { call, end } = begin();
  end(ENDED);
  const report = await call.end({ exitCode: 0 });
  t.is(report.note, undefined);
  t.false(report.oom_killed);
});

test("a time limit and an interruption are told as such", async (t) => {
  const { begin } = scene(t);
  const late = begin();
  late.end(ENDED);
  const report = await late.call.end({ exitCode: 124, timedOut: true });
  t.is(report.killed_by, "timeout");
  t.regex(report.note ?? "", /was ended after 12 s, its time limit/);
  const stopped = begin({ job: "1-2-4" });
  stopped.end(ENDED);
  t.is((await stopped.call.end({ exitCode: 130, interrupted: true })).killed_by, "user");
});

test("Node's own words about its heap are enough", async (t) => {
  const { begin } = scene(t);
  const { call, end } = begin({ lightened: ["capped the Node heap at 210 MB (NODE_OPTIONS)"] });
  end(ENDED);
  const outputTail = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory";
  t.regex((await call.end({ exitCode: 1, outputTail })).note ?? "", /ran out of Node's heap.*210 MB here/);
});

test("a background job that is killed leaves one note in its chat; one that goes well leaves none", async (t) => {
  const { begin, table, sessions, store } = scene(t);
  const { call, end } = begin();
  const report = table.goOn(call, "proc_1");
  t.like(report, { memory_cap_mb: 300, oom_killed: false });
  t.is(sessions.pendingJobs("chat"), 1);
  t.like(store.calls()[0], { job: "1-2-3", background: true, process: "proc_1" });
  end(KILLED);
  await call.over;
  t.deepEqual(sessions.takeNotes("chat").length, 1);
  t.is(sessions.pendingJobs("chat"), 0);
  t.deepEqual(store.calls(), []);
  t.is(table.find("1-2-3", ""), undefined);

  const well = begin({ job: "1-2-4" });
  table.goOn(well.call, "proc_2");
  well.end(ENDED);
  await well.call.over;
  t.deepEqual(sessions.takeNotes("chat"), []);
});

test("a note says which background job it is about, and is kept for the next daemon until it is read", async (t) => {
  const { begin, table, sessions, store } = scene(t);
  const { call, end } = begin();
  table.goOn(call, "proc_1");
  end(KILLED);
  await call.over;
  await Promise.resolve();
  t.regex(store.notes()[0]?.[1][0] ?? "", /^Background job proc_1: `npm test` hit its 300 MB/);
  sessions.takeNotes("chat");
  table.keepNotes();
  t.deepEqual(store.notes(), []);
});

test("a call without a box ends when its agent says so", async (t) => {
  const { begin, table } = scene(t);
  const { call, left } = begin({ job: null, mode: "off" });
  t.is(table.find(null, "call_1"), call);
  const report = await call.end({ exitCode: 0 });
  t.like(report, { isolated: false, mode: "off", oom_killed: false });
  t.is(left(), 1);
});

test("an agent that is gone keeps no slot for a call without a box", async (t) => {
  const { begin } = scene(t);
  const { call, left } = begin({ job: null, mode: "off" });
  call.release();
  await call.over;
  t.is(left(), 1);
});

test("what stands in the store and is no call is passed over", (t) => {
  const { folder, store } = scene(t);
  store.keep(FACTS);
  writeFileSync(join(folder, "calls", "2-2-2.call.json"), "{");
  writeFileSync(join(folder, "calls", "3-3-3.call.json"), '{"job":"3-3-3"}');
  writeFileSync(join(folder, "calls", "notes.json"), '[["a",["b"]],["c",3],null]');
  t.deepEqual(store.calls(), [FACTS]);
  t.deepEqual(store.notes(), [["a", ["b"]]]);
  store.forget("1-2-3");
  store.forget("never there");
  t.deepEqual(store.calls(), []);
});
