import test from "ava";
import stringWidth from "string-width";
import { jobBar } from "../../../src/status/view/jobs.js";
import { shareOut } from "../../../src/status/view/layout.js";
import { cellsOf, composeLine, cutText, flow, harmless, padText } from "../../../src/status/view/line.js";
import { UNICODE_GLYPHS, type Look } from "../../../src/status/view/look.js";
import { age, mb, share } from "../../../src/status/view/numbers.js";
import { pressureSection, sparkline } from "../../../src/status/view/pressure.js";
import { fitsOneLine, renderTable, type Column } from "../../../src/status/view/table.js";
import { madeUpJob, madeUpSnapshot } from "../../support/snapshots.js";

const look: Look = { paint: (style, text) => `<${style}:${text}>`, glyphs: UNICODE_GLYPHS };
const bare: Look = { ...look, paint: (_style, text) => text };

test("text is cut by cells, and says that it was", (t) => {
  t.is(cutText("abcdef", 4, "…"), "abc…");
  t.is(cutText("abcd", 4, "…"), "abcd");
  t.is(cutText("日本語", 4, "…"), "日…");
  t.is(cutText("abc", 0, "…"), "");
});

test("padding counts cells", (t) => {
  t.is(padText("日本", 6), "日本  ");
  t.is(padText("1", 3, "right"), "  1");
});

test("what a terminal would obey, or not show, becomes a question mark", (t) => {
  t.is(harmless("a\u001B[2Jb\nc\u202Ed\u200Be"), "a?[2Jb?c?d?e");
});

test("painting comes after cutting, and nothing follows a cut", (t) => {
  const line = [{ text: "abc", style: "red" as const }, { text: "defgh" }, { text: "x", style: "dim" as const }];
  t.is(composeLine(line, 6, look), "<red:abc>de…");
});

test("pieces flow into as many lines as they need", (t) => {
  const items = ["aaaa", "bbbb", "cccc"].map((text) => [{ text }]);
  const lines = flow(items, 10, "  ").map((line) => line.map(({ text }) => text).join(""));
  t.deepEqual(lines, ["aaaa  bbbb", "cccc"]);
});

test("numbers are short", (t) => {
  t.deepEqual([0, 999, 1000, 1_234_567].map(mb), ["0", "999", "1,000", "1,234,567"]);
  t.deepEqual([0, 99, 100, 6000, 400_000, 9e6].map(age), ["0s", "99s", "1m", "1h", "4d", "104d"]);
  t.deepEqual([share(1, 0), share(1, 2), share(3, 2), share(-1, 2)], [0, 0.5, 1, 0]);
});

test("a job's bar has what it uses, what it used, and the rest of its cap", (t) => {
  t.is(jobBar(madeUpJob({ now_mb: 200, peak_mb: 400, cap_mb: 800 }), bare), "███▒▒░░░░░");
  t.is(jobBar(madeUpJob({ now_mb: 900, peak_mb: null, cap_mb: 800 }), bare), "██████████");
  t.is(jobBar(madeUpJob({ now_mb: 0, peak_mb: null, cap_mb: 0 }), bare), "░░░░░░░░░░");
});

test("a sparkline has the newest at the right, shows any stall, and drops the oldest", (t) => {
  t.is(sparkline([0, 0.5, 5, 100], 6, bare), "  ▁▂▄█");
  t.is(sparkline([100, 0, 0], 2, bare), "▁▁");
});

test("without PSI the pressure line says so", (t) => {
  const [line] = pressureSection(madeUpSnapshot({ pressure: null }), { seconds: [] }, 80, 2, bare);
  t.regex((line ?? []).map(({ text }) => text).join(""), /no PSI in this kernel/);
});

test("lines are shared out in the order of the claims; what needs more than there is gets none", (t) => {
  const granted = shareOut(
    [
      { section: "memory", lines: 1 },
      { section: "jobs", lines: 5 },
      { section: "processes", lines: 4, least: 3 },
      { section: "memory", lines: 3 },
    ],
    8,
  );
  t.is(granted.jobs, 5);
  t.is(granted.processes, 0);
  t.is(granted.memory, 3);
});

interface Row {
  a: string;
  b: string;
  c: string;
}
const COLUMNS: Column<Row>[] = [
  { title: "A", cell: ({ a }) => a, rank: 2 },
  { title: "B", cell: ({ b }) => b, rank: 1, align: "right" },
];
const LAST = { title: "C", cell: ({ c }: Row) => c, least: 4 };
const table = (rows: Row[], width: number, height: number): string[] =>
  renderTable({ columns: COLUMNS, last: LAST, rows }, width, height, bare).map((line) =>
    line.map(({ text }) => text).join(""),
  );

test("a table aligns, gives up its least important column, and counts the rows it has no room for", (t) => {
  const rows = [
    { a: "1", b: "22", c: "xxxx" },
    { a: "333", b: "4", c: "yyyy" },
  ];
  t.deepEqual(table(rows, 20, 9), ["A    B C", "1   22 xxxx", "333  4 yyyy"]);
  t.deepEqual(table(rows, 9, 9), ["A   C", "1   xxxx", "333 yyyy"]);
  t.deepEqual(table(rows, 20, 2), ["A    B C", "   … 2 more"]);
  t.true(fitsOneLine(COLUMNS, LAST, rows, 20));
  t.false(fitsOneLine(COLUMNS, LAST, rows, 9));
});

test("what counts as one cell without measuring is one cell", (t) => {
  for (let code = 0x20; code < 0x2600; code += 1) {
    const character = String.fromCodePoint(code);
    t.is(cellsOf(character), stringWidth(character), code.toString(16));
  }
});
