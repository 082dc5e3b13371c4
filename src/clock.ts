/** The clock to reckon with: the same for every process of this boot, and it never jumps. */

/** Milliseconds, never going back (CLOCK_MONOTONIC). */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
