/** How much memory a job gets when nobody says how much. */
import type { MemorySnapshot } from "../memory.js";

/** Below this a kernel spends its time reclaiming instead of running the job (systemd #40208). */
export const SMALLEST_CAP_MB = 64;

/** Swap beyond the cap when nobody says otherwise: bounded, or a large swap would undo the cap. */
export const DEFAULT_SWAP_MB = 256;

export const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

/** What stays free for the agent and the system: 15 % of the memory, 256 to 2048 MB. */
export const reserveMb = (totalMb: number): number => clamp(Math.floor(totalMb * 0.15), 256, 2048);

/**
 * The cap that a job gets now: what is free without the reserve. On a machine too small for its own
 * reserve half of it is kept.
 */
export const automaticCapMb = (memory: MemorySnapshot): number => {
  const reserve = reserveMb(memory.total_mb);
  const cap = memory.available_mb - reserve;
  if (cap >= SMALLEST_CAP_MB) return cap;
  return Math.max(SMALLEST_CAP_MB, memory.available_mb - Math.floor(reserve / 2));
};
