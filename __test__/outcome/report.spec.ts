import test from "ava";
import type { EndedEvent } from "../../src/job/events.js";
import { buildReport, exitCodeOf } from "../../src/outcome/report.js";

const LIMITS = { memoryMb: 300, swapMb: 256, mode: "cgroup1" } as const;
const MB = 1024 * 1024;

const ended = (change: Partial<EndedEvent> = {}): EndedEvent => ({
  ending: { exit_code: 0 },
  peak: { bytes: 10 * MB, source: "max_usage" },
  cap_hit: false,
  oom_kills: 0,
  cap_kills: 0,
  victims: [],
  left_running: [],
  escaped: 0,
  ended_by_signal: null,
  pool_stopped: false,
  took_ms: 1,
  ...change,
});

test("a job that went well has the facts and nothing else", (t) => {
  t.deepEqual(buildReport(LIMITS, ended()), {
    memory_cap_mb: 300,
    swap_cap_mb: 256,
    isolated: true,
    mode: "cgroup1",
    peak_mb: 10,
    peak_source: "max_usage",
    oom_killed: false,
  });
});

test("a kernel kill names its victims", (t) => {
  const victims = [{ pid: 7, name: "node", rss_bytes: 290 * MB + 1 }];
  const report = buildReport(LIMITS, ended({ oom_kills: 1, victims }));
  t.true(report.oom_killed);
  t.is(report.killed_by, "kernel");
  t.deepEqual(report.victims, [{ pid: 7, name: "node", rss_mb: 291 }]);
});

test("a kill at the cap is headroom's, and no kernel limit held the job", (t) => {
  const report = buildReport({ ...LIMITS, mode: "userspace" }, ended({ cap_kills: 1 }));
  t.true(report.oom_killed);
  t.is(report.killed_by, "headroom");
  t.false(report.isolated);
});

test("a signal that was passed on is the user's, one that came from inside is nobody's", (t) => {
  t.is(buildReport(LIMITS, ended({ ending: { signal: 15 }, ended_by_signal: 15 })).killed_by, "user");
  t.is(buildReport(LIMITS, ended({ ending: { signal: 11 } })).killed_by, undefined);
  t.is(buildReport(LIMITS, ended({ ending: { signal: 11 }, ended_by_signal: 15 })).killed_by, undefined);
  t.is(buildReport(LIMITS, ended({ ending: { exit_code: 0 }, ended_by_signal: 2 })).killed_by, undefined);
});

test("escapes and leftovers are counted only where there are some", (t) => {
  const report = buildReport(LIMITS, ended({ escaped: 2, left_running: [{ pid: 1, name: "d", rss_bytes: 1 }] }));
  t.is(report.escaped, 2);
  t.is(report.left_running, 1);
});

test("exit codes are the command's own, or 128 and the signal", (t) => {
  t.is(exitCodeOf(ended({ ending: { exit_code: 3 } })), 3);
  t.is(exitCodeOf(ended({ ending: { signal: 9 } })), 137);
  t.is(exitCodeOf(ended({ ending: null })), 1);
});
