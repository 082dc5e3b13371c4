import test from "ava";
import { EMPTY_HISTORY, HISTORY_SECONDS, remember, type History } from "../../src/status/history.js";

const pressure = (some_total_ms: number, full_total_ms: number) => ({
  some_avg10_percent: 0,
  full_avg10_percent: 0,
  some_total_ms,
  full_total_ms,
});

const after = (...measured: [atMs: number, someMs: number, fullMs: number][]): History =>
  measured.reduce((history, [atMs, some, full]) => remember(history, pressure(some, full), atMs), EMPTY_HISTORY);

test("a second is the difference of two totals", (t) => {
  t.deepEqual(after([0, 5000, 900]).seconds, []);
  t.deepEqual(after([0, 5000, 900], [1000, 5250, 900]).seconds, [{ some_percent: 25, full_percent: 0 }]);
});

test("a gap is filled with its average, at most a whole minute", (t) => {
  t.is(after([0, 0, 0], [3000, 300, 0]).seconds.length, 3);
  t.deepEqual(after([0, 0, 0], [3000, 300, 0]).seconds[2], { some_percent: 10, full_percent: 0 });
  t.is(after([0, 0, 0], [3_600_000, 0, 0]).seconds.length, HISTORY_SECONDS);
});

test("only the last minute is kept", (t) => {
  const many = Array.from({ length: 200 }, (_, index): [number, number, number] => [index * 1000, index, index]);
  t.is(after(...many).seconds.length, HISTORY_SECONDS);
});

test("what is measured again at once waits for its second to end", (t) => {
  t.deepEqual(after([0, 0, 0], [10, 10, 10], [1000, 100, 0]).seconds, [{ some_percent: 10, full_percent: 0 }]);
});

test("totals that go back or run ahead of the clock stay within 0 and 100 %", (t) => {
  t.deepEqual(after([0, 500, 0], [1000, 0, 5000]).seconds, [{ some_percent: 0, full_percent: 100 }]);
});

test("without PSI there is no history", (t) => {
  t.is(remember(after([0, 0, 0], [1000, 0, 0]), null, 2000), EMPTY_HISTORY);
});
