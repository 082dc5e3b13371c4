/** Memory pressure of the last minute, second by second. */
import type { PressureStatus } from "./snapshot.js";

/** Shares of one second in which some tasks, or all of them, waited for memory. */
export interface PressureSecond {
  some_percent: number;
  full_percent: number;
}

export interface History {
  /** Oldest first, at most a minute. */
  seconds: readonly PressureSecond[];
  /** What was measured last; what comes next is told by the difference. */
  last?: { atMs: number; someMs: number; fullMs: number };
}

export const EMPTY_HISTORY: History = { seconds: [] };

export const HISTORY_SECONDS = 60;

/** The history with one more measurement. `atMs` is of a clock that never jumps. */
export const remember = (history: History, pressure: PressureStatus | null, atMs: number): History => {
  if (pressure === null) return EMPTY_HISTORY;
  const last = { atMs, someMs: pressure.some_total_ms, fullMs: pressure.full_total_ms };
  const before = history.last;
  if (before === undefined) return { seconds: history.seconds, last };
  const elapsedMs = atMs - before.atMs;
  // Drawn again at once, after a resize: the second that runs is measured when it is over.
  if (elapsedMs < 500) return history;
  const second = {
    some_percent: percentOf(last.someMs - before.someMs, elapsedMs),
    full_percent: percentOf(last.fullMs - before.fullMs, elapsedMs),
  };
  // After a pause the gap is filled with its average, so that a cell stays a second.
  const count = Math.min(HISTORY_SECONDS, Math.max(1, Math.round(elapsedMs / 1000)));
  const seconds = [...history.seconds, ...Array.from({ length: count }, () => second)].slice(-HISTORY_SECONDS);
  return { seconds, last };
};

const percentOf = (partMs: number, wholeMs: number): number => Math.min(100, Math.max(0, (100 * partMs) / wholeMs));
