import { styleText } from "node:util";
import test from "ava";
import stringWidth from "string-width";
import { EMPTY_HISTORY, type History } from "../../../src/status/history.js";
import type { StatusSnapshot } from "../../../src/status/snapshot.js";
import { ASCII_GLYPHS, UNICODE_GLYPHS, type Look } from "../../../src/status/view/look.js";
import { renderView, type ViewSize, type ViewState } from "../../../src/status/view/view.js";
import { Random } from "../../support/random.js";
import { madeUpJob, madeUpProcess, madeUpSnapshot, madeUpWaiting } from "../../support/snapshots.js";

const plain: Look = { paint: (_style, text) => text, glyphs: UNICODE_GLYPHS };
const ascii: Look = { ...plain, glyphs: ASCII_GLYPHS };
const coloured: Look = {
  paint: (style, text) => styleText(style, text, { validateStream: false }),
  glyphs: UNICODE_GLYPHS,
};

const STATE: ViewState = { clock: "12:34:56", isPaused: false, order: "age", hasKeys: true };
const SMALL: ViewSize = { columns: 80, rows: 24 };

const view = (
  snapshot: StatusSnapshot,
  {
    size = SMALL,
    look = plain,
    state = {},
    history = EMPTY_HISTORY,
  }: {
    size?: ViewSize;
    look?: Look;
    state?: Partial<ViewState>;
    history?: History;
  } = {},
): string[] => renderView(snapshot, history, size, look, { ...STATE, ...state });

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

const EVIL = [
  "echo 日本語".padEnd(400, "漢"),
  "👨‍👩‍👧‍👦🏳️‍🌈❤️".repeat(40),
  "a\u001B[2J\u001B[31mred\u0007\r\nnext\tline\u202Etxet",
  `${"e\u0301".repeat(200)}${"\u200B".repeat(50)}`,
  "\uD800 lone surrogate \u{1F600}",
  "",
];

const CASES: Record<string, StatusSnapshot> = {
  "no job": madeUpSnapshot(),
  "one job": madeUpSnapshot({ jobs: [madeUpJob()] }),
  "twelve jobs": madeUpSnapshot({ jobs: times(12, (index) => madeUpJob({ pid: 1000 + index, now_mb: index * 60 })) }),
  "five waiting": madeUpSnapshot({ jobs: [madeUpJob()], waiting: times(5, (index) => madeUpWaiting(index + 1)) }),
  "no swap": madeUpSnapshot({ memory: { available_mb: 1200, total_mb: 2000, swap_free_mb: 0, swap_total_mb: 0 } }),
  "no PSI": madeUpSnapshot({ pressure: null }),
  "below critical": madeUpSnapshot({
    memory: { available_mb: 40, total_mb: 1000, swap_free_mb: 0, swap_total_mb: 500 },
    jobs: [madeUpJob({ now_mb: 900, peak_mb: 950 })],
  }),
  "strange texts": madeUpSnapshot({
    jobs: EVIL.map((command, index) =>
      madeUpJob({ pid: index, command, kind: command, state: command, who: { pid: 1, name: command } }),
    ),
    waiting: EVIL.map((text, index) => madeUpWaiting(index, { command: text, reason: text, kind: text })),
    processes: EVIL.map((text, index) => madeUpProcess(index, { command: text, name: text, hermes: index % 2 === 0 })),
    problem: EVIL.join(" "),
  }),
  "nothing but zeros": madeUpSnapshot({
    memory: { available_mb: 0, total_mb: 0, swap_free_mb: 0, swap_total_mb: 0 },
    limits: { reserve_mb: 0, critical_mb: 0, max_heavy_jobs: 0, min_start_mb: 0 },
    next_cap_mb: 0,
    pressure: { some_avg10_percent: 0, full_avg10_percent: 0, some_total_ms: 0, full_total_ms: 0 },
    jobs: [madeUpJob({ pid: null, cap_mb: 0, now_mb: 0, peak_mb: null, age_s: 0, who: { pid: 0, name: null } })],
    waiting: [madeUpWaiting(0, { waiting_s: 0, pid: 0 })],
    processes: [madeUpProcess(0, { rss_mb: 0, command: "" })],
  }),
  "a waiter of whom nothing is known": madeUpSnapshot({
    waiting: [
      madeUpWaiting(1, {
        pid: null,
        command: null,
        kind: null,
        reason: null,
        waiting_s: null,
        who: { pid: null, name: null },
      }),
    ],
  }),
  "a crowd": madeUpSnapshot({
    jobs: times(12, (index) => madeUpJob({ pid: 4_000_000 + index, cap_mb: 999_999, now_mb: 888_888, age_s: 9e6 })),
    waiting: times(5, (index) => madeUpWaiting(index + 1)),
    processes: times(60, (index) => madeUpProcess(index + 1)),
    problem: "the runtime directory is a symbolic link",
  }),
};

const SIZES: ViewSize[] = [
  [80, 24],
  [200, 50],
  [40, 10],
  [120, 16],
  [60, 100],
  [20, 4],
  [7, 2],
  [1, 1],
  [0, 0],
].map(([columns = 0, rows = 0]) => ({ columns, rows }));

for (const [name, snapshot] of Object.entries(CASES)) {
  test(`${name}: every line fits into terminals of every size, in colour, without, and in ASCII`, (t) => {
    for (const size of SIZES) {
      for (const look of [plain, coloured, ascii]) {
        for (const state of [{}, { isPaused: true, order: "memory" as const }, { hasKeys: false }]) {
          const lines = view(snapshot, { size, look, state });
          t.true(lines.length <= size.rows, `${lines.length} lines in ${size.rows}`);
          for (const line of lines) t.true(stringWidth(line) <= size.columns, `${size.columns}: ${line}`);
          // oxlint-disable-next-line no-control-regex -- what must not be there
          if (look !== coloured) t.notRegex(lines.join(""), /[\u0000-\u001F\u007F-\u009F\u202A-\u202E]/);
        }
      }
    }
  });
}

test("numbers of any size fit", (t) => {
  const random = new Random(7);
  const next = (): number => random.next();
  const number = (): number => Math.floor(10 ** (next() * 9)) - 1;
  for (let round = 0; round < 300; round += 1) {
    const snapshot = madeUpSnapshot({
      memory: { available_mb: number(), total_mb: number(), swap_free_mb: number(), swap_total_mb: number() },
      limits: { reserve_mb: number(), critical_mb: number(), max_heavy_jobs: number(), min_start_mb: number() },
      jobs: times(round % 5, () =>
        madeUpJob({ now_mb: number(), cap_mb: number(), peak_mb: number(), age_s: number() }),
      ),
    });
    const size = { columns: Math.floor(next() * 210), rows: Math.floor(next() * 60) };
    for (const line of view(snapshot, { size })) t.true(stringWidth(line) <= size.columns);
  }
});

test("in 80×24 one job is shown with everything that is known of it", (t) => {
  const text = view(madeUpSnapshot({ jobs: [madeUpJob()], processes: times(8, madeUpProcess) })).join("\n");
  for (const part of ["4711", "test", "running", "200", "400", "800", "███", "65s", "node 4700", "npm test"]) {
    t.true(text.includes(part), part);
  }
});

test("on a wide terminal a job is one line, command and starter included", (t) => {
  const lines = view(madeUpSnapshot({ jobs: [madeUpJob()] }), { size: { columns: 200, rows: 50 } });
  t.true(lines.some((line) => /4711 test .*running .*200 .*400 .*800 .*65s node 4700 +npm test$/.test(line)));
});

test("jobs that have no room are counted", (t) => {
  const jobs = times(12, (index) => madeUpJob({ pid: 1000 + index }));
  const text = view(madeUpSnapshot({ jobs }), { size: { columns: 40, rows: 10 } }).join("\n");
  const shown = jobs.filter(({ pid }) => text.includes(String(pid))).length;
  t.true(shown > 0);
  t.true(text.includes(`${12 - shown} more`), text);
});

test("sorted by memory the largest job is first, by age the order of the snapshot stays", (t) => {
  const jobs = [madeUpJob({ pid: 11, now_mb: 1 }), madeUpJob({ pid: 22, now_mb: 300 })];
  const order = (by: "age" | "memory"): string[] =>
    view(madeUpSnapshot({ jobs }), { state: { order: by } }).flatMap((line) => /^ +(11|22) /.exec(line)?.[1] ?? []);
  t.deepEqual(order("age"), ["11", "22"]);
  t.deepEqual(order("memory"), ["22", "11"]);
});

test("the queue shows positions, in order, and what each waits for", (t) => {
  const waiting = [madeUpWaiting(2, { reason: "waits for a slot" }), madeUpWaiting(1)];
  const text = view(madeUpSnapshot({ waiting })).join("\n");
  t.regex(text, /1 +5001 [^]*waits for memory: 300 MB free[^]*2 +5002 [^]*waits for a slot/);
});

test("processes of Hermes and of jobs are marked, and the marks are explained", (t) => {
  const processes = [madeUpProcess(1, { hermes: true }), madeUpProcess(2), madeUpProcess(3)];
  const jobs = [madeUpJob({ processes: [{ pid: 2, name: "node", rss_mb: 10 }] })];
  const text = view(madeUpSnapshot({ processes, jobs })).join("\n");
  t.regex(text, /◆ {2}node server-1|◆ +node server-1/);
  t.regex(text, /▓ node server-2/);
  t.regex(text, /4,997 {4}node server-3/);
  t.regex(text, /◆ Hermes, or started by it +▓ of a job/);
});

test("a problem with the records is told even in a tiny terminal", (t) => {
  const snapshot = madeUpSnapshot({ problem: "is a symbolic link", jobs: [madeUpJob()] });
  t.regex(view(snapshot, { size: { columns: 40, rows: 10 } }).join("\n"), /records: is a symbolic link/);
});

test("a paused view says so, and how to go on; without keys none are named", (t) => {
  t.regex(view(madeUpSnapshot(), { state: { isPaused: true } }).at(-1) ?? "", /PAUSED.*p go on/);
  t.is(view(madeUpSnapshot(), { state: { hasKeys: false } }).at(-1), "Ctrl-C quits");
});

test("the hints are in the terminal's last line", (t) => {
  t.is(view(madeUpSnapshot()).length, 24);
  t.regex(view(madeUpSnapshot()).at(-1) ?? "", /q quit/);
});
