/** What all jobs together may use. */
import type { MemorySnapshot } from "../memory.js";
import { DEFAULT_SWAP_MB, reserveMb, SMALLEST_CAP_MB } from "./cap.js";

export interface PoolLimits {
  memoryMb: number;
  /** −1 is unlimited. */
  swapMb: number;
}

/**
 * The machine's memory less the reserve; swap bounded as well, because the sum of many jobs' swap can
 * stall a machine on which each job keeps within its own cap (hermes-agent #111326).
 */
export const poolLimits = ({ total_mb, swap_total_mb }: MemorySnapshot): PoolLimits => ({
  memoryMb: Math.max(SMALLEST_CAP_MB, total_mb - reserveMb(total_mb)),
  swapMb: Math.max(DEFAULT_SWAP_MB, Math.floor(swap_total_mb / 2)),
});
