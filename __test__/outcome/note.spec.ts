import test from "ava";
import type { EndedEvent } from "../../src/job/events.js";
import { classify } from "../../src/classify/classify.js";
import type { Mode } from "../../src/modes/mode.js";
import { describeWork } from "../../src/outcome/next-step.js";
import { buildNote, quote, type NoteContext } from "../../src/outcome/note.js";
import { buildReport } from "../../src/outcome/report.js";
import type { WatchdogCause, WatchdogMark } from "../../src/watchdog/events.js";

const MB = 1024 * 1024;

const noteFor = (
  change: Partial<EndedEvent>,
  text = "npm test",
  possibleCapMb = 100,
  context: Partial<NoteContext> = {},
  mode: Mode = (change.cap_kills ?? 0) > 0 ? "userspace" : "cgroup2",
): string | undefined => {
  const ended: EndedEvent = {
    ending: { exit_code: 1 },
    peak: { bytes: 300 * MB, source: "memory.peak" },
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
  };
  const report = buildReport({ memoryMb: 300, swapMb: 0, mode }, ended);
  return buildNote(report, ended, { text, work: describeWork(classify(text)), possibleCapMb, ...context });
};

test("a plain failure has no note: its own output says what is wrong", (t) => {
  t.is(noteFor({}), undefined);
});

test("a kill names the command, the cap, the victim, what was spared and the next step", (t) => {
  const note =
    noteFor({ cap_hit: true, oom_kills: 1, victims: [{ pid: 42, name: "node", rss_bytes: 290 * MB }] }) ?? "";
  for (const part of [
    "`npm test`",
    "300 MB",
    "the kernel killed node (pid 42, 290 MB)",
    "Nothing outside",
    "one test file",
  ]) {
    t.true(note.includes(part), part);
  }
});

test("a kill at the cap is told as headroom's", (t) => {
  t.regex(
    noteFor({ cap_hit: true, cap_kills: 1, victims: [{ pid: 1, name: "x", rss_bytes: MB }] }) ?? "",
    /headroom killed x/,
  );
});

test("more memory is offered only when this machine has it", (t) => {
  t.regex(noteFor({ cap_hit: true, oom_kills: 1 }, "npm test", 900) ?? "", /--memory 900/);
  t.notRegex(noteFor({ cap_hit: true, oom_kills: 1 }, "npm test", 300) ?? "", /--memory/);
});

test("a heap that V8 itself gave up on is told, by code or by signal", (t) => {
  t.regex(noteFor({ ending: { exit_code: 134 } }) ?? "", /heap limit/);
  t.regex(noteFor({ ending: { signal: 6 } }) ?? "", /heap limit/);
});

test("an abort far below the cap is no matter of memory", (t) => {
  t.is(noteFor({ ending: { exit_code: 134 }, peak: { bytes: MB, source: "memory.peak" } }), undefined);
});

test("kills that are not known by name are counted", (t) => {
  const victims = [1, 2, 3, 4].map((pid) => ({ pid, name: "w", rss_bytes: MB }));
  t.regex(noteFor({ cap_hit: true, oom_kills: 17, victims }) ?? "", /w \(pid 3, 1 MB\) and 14 more/);
  t.regex(noteFor({ cap_hit: true, oom_kills: 5 }) ?? "", /killed 5 processes/);
});

test("processes that left the box are told", (t) => {
  t.regex(noteFor({ escaped: 1 }) ?? "", /1 process of the job moved out of its box/);
});

test("a job that was ended with its pool is told so, and how to keep the next one", (t) => {
  const stopped = { ending: { signal: 15 }, pool_stopped: true };
  t.regex(
    noteFor(stopped, "npm test", 100, {}, "systemd-user") ?? "",
    /exit code 143.*loginctl enable-linger \S+; then/,
  );
  t.notRegex(noteFor(stopped, "npm test", 100, {}, "systemd-system") ?? "", /linger/);
  t.is(noteFor({ ...stopped, ended_by_signal: 15 }), undefined);
  t.is(noteFor({ ...stopped, ending: { exit_code: 0 } }), undefined);
});

test("leftovers are named", (t) => {
  const left = { ending: { exit_code: 0 }, left_running: [{ pid: 5, name: "gradle", rss_bytes: MB }] };
  t.regex(noteFor(left) ?? "", /gradle \(pid 5, 1 MB\).*cap/);
});

test("a long command is cut and stays on one line", (t) => {
  const quoted = quote(`echo ${"x\n".repeat(500)}`);
  t.true(quoted.length <= 122);
  t.false(quoted.includes("\n"));
});

test("a kill for want of memory above the box is not blamed on the cap", (t) => {
  const note = noteFor({ oom_kills: 1, victims: [{ pid: 42, name: "node", rss_bytes: 20 * MB }] }) ?? "";
  t.notRegex(note, /hit its/);
  t.regex(note, /killed node .* outside of this job's box/);
});

test("a heap that V8 says is full is told from the last lines, whatever the exit code", (t) => {
  const outputTail =
    "<--- Last few GCs --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n";
  const note = noteFor({ ending: { exit_code: 1 } }, "npm test", 100, { outputTail, heapMb: 210 }) ?? "";
  t.regex(note, /ran out of Node's heap under its 300 MB cap.*210 MB here.*Next: run one test file/);
});

const marked = (cause: WatchdogCause): WatchdogMark => ({
  handling: "stopped",
  cause,
  available_bytes: 61 * MB,
  critical_bytes: 96 * MB,
});

test("a stop by the watchdog says what was short and who was spared", (t) => {
  const note = noteFor({ ending: { signal: 15 }, watchdog: marked("available") }) ?? "";
  t.regex(note, /stopped by headroom's watchdog: the machine had only 61 MB.*older jobs were not touched.*Next: wait/);
  const stalled = noteFor({ ending: { signal: 9 }, watchdog: marked({ stalled: 55 }) }) ?? "";
  t.regex(stalled, /waited for memory in 55 % of the last second, with 61 MB left/);
  const refaults = noteFor({ ending: { signal: 9 }, watchdog: marked({ refaults: 3000 }) }) ?? "";
  t.regex(refaults, /read 3000 pages a second again/);
  t.is(noteFor({ ending: { exit_code: 0 }, watchdog: marked("available") }), undefined, "told to end, it ended well");
});

test("a time limit is told as one", (t) => {
  t.regex(
    noteFor({ ending: { signal: 9 } }, "npm test", 100, { timedOutAfterS: 60 }) ?? "",
    /ended after 60 s, its time limit/,
  );
});

test("what it needed before is told where the cap was lower", (t) => {
  t.regex(
    noteFor({ cap_hit: true, oom_kills: 1 }, "npm test", 100, { learnedPeakMb: 1400 }) ?? "",
    /It needed 1400 MB before\.$/,
  );
  t.notRegex(noteFor({ cap_hit: true, oom_kills: 1 }, "npm test", 100, { learnedPeakMb: 200 }) ?? "", /before/);
});
