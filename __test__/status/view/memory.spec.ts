import test from "ava";
import { UNICODE_GLYPHS, type Look } from "../../../src/status/view/look.js";
import type { Line } from "../../../src/status/view/line.js";
import { alarm, memoryBar, memoryLegend, memoryParts, memorySection } from "../../../src/status/view/memory.js";
import { madeUpJob, madeUpSnapshot } from "../../support/snapshots.js";

const look: Look = { paint: (_style, text) => text, glyphs: UNICODE_GLYPHS };
const text = (line: Line | undefined): string => (line ?? []).map((piece) => piece.text).join("");
const memory = (available_mb: number, total_mb = 1000) => ({
  available_mb,
  total_mb,
  swap_free_mb: 0,
  swap_total_mb: 0,
});

const withAvailable = (available_mb: number) => madeUpSnapshot({ memory: memory(available_mb) });

test("the bar shows others, jobs and what is available, with marks where only reserve and critical rest are left", (t) => {
  const snapshot = madeUpSnapshot({ memory: memory(600), jobs: [madeUpJob({ now_mb: 100 })] });
  t.is(text(memoryBar(snapshot, 20, look)), "██████▓▓░░░░░░│░░░┃░");
});

test("the marks are seen where memory is used up, too", (t) => {
  const snapshot = madeUpSnapshot({ memory: memory(0) });
  t.is(text(memoryBar(snapshot, 20, look)), "██████████████│███┃█");
});

test("marks that fall together stand side by side", (t) => {
  const snapshot = madeUpSnapshot({ memory: memory(1000), limits: { ...madeUpSnapshot().limits, reserve_mb: 110 } });
  t.is(text(memoryBar(snapshot, 10, look)), "░░░░░░░░│┃");
});

test("a job is seen however little it has", (t) => {
  const snapshot = madeUpSnapshot({ memory: memory(500), jobs: [madeUpJob({ now_mb: 1 })] });
  t.true(text(memoryBar(snapshot, 20, look)).includes("▓"));
});

test("jobs never have more than what is in use: their page cache is available as well", (t) => {
  const parts = memoryParts(madeUpSnapshot({ memory: memory(900), jobs: [madeUpJob({ now_mb: 400 })] }));
  t.deepEqual(parts, { others: 0, jobs: 100, available: 900, total: 1000 });
});

test("yellow within the reserve, red below the critical line, and both in words", (t) => {
  t.deepEqual(
    [500, 200, 50].map((available) => alarm(withAvailable(available))),
    [undefined, "yellow", "red"],
  );
  t.regex(memoryLegend(withAvailable(50), 200, look).map(text).join(), /below critical/);
  t.regex(memoryLegend(withAvailable(200), 200, look).map(text).join(), /below the reserve/);
});

test("swap stands beside the bar; none is said", (t) => {
  const swap = { available_mb: 500, total_mb: 1000, swap_free_mb: 300, swap_total_mb: 1000 };
  t.regex(text(memorySection(madeUpSnapshot({ memory: swap }), 80, 3, look)[0]), /swap ███████░░░ 700 of 1,000 MB/);
  t.regex(text(memorySection(madeUpSnapshot({ memory: memory(500) }), 80, 3, look)[0]), /no swap/);
});

test("with one line only, the amount stands beside the bar, or instead of it", (t) => {
  const snapshot = madeUpSnapshot({ memory: memory(500) });
  t.regex(text(memorySection(snapshot, 40, 1, look)[0]), /^memory .*░.* 500 of 1,000 MB/);
  t.is(text(memorySection(snapshot, 26, 1, look)[0]), "memory  500 of 1,000 MB");
});
