/** Durations as one line. */

const at = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;

export const quantiles = (name: string, durationsMs: readonly number[]): string => {
  const sorted = [...durationsMs].toSorted((a, b) => a - b);
  const cells = [at(sorted, 0.5), at(sorted, 0.9), at(sorted, 0.99), sorted.at(-1) ?? Number.NaN];
  return `${name.padEnd(34)} ${cells.map((ms) => ms.toFixed(3).padStart(9)).join(" ")}`;
};

export const QUANTILES_HEADER: string = `${"milliseconds".padEnd(34)} ${["p50", "p90", "p99", "max"].map((name) => name.padStart(9)).join(" ")}`;
