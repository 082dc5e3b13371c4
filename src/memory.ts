/** Sizes as people and settings use them: MiB, whole numbers, called MB. */
import type { Native } from "./native.js";

const BYTES_PER_MB = 1024 * 1024;

/** Bytes as whole MB, rounded up: a peak of 0.2 MB is not nothing. */
export const bytesToMb = (bytes: number): number => Math.ceil(bytes / BYTES_PER_MB);

/** Bytes as whole MB, rounded down: room must not be promised that is not there. */
export const bytesToWholeMb = (bytes: number): number => Math.floor(bytes / BYTES_PER_MB);

export const mbToBytes = (mb: number): number => mb * BYTES_PER_MB;

/** The memory that this process could get; limits above it counted in. */
export interface MemorySnapshot {
  available_mb: number;
  total_mb: number;
  swap_free_mb: number;
  swap_total_mb: number;
}

export const measureMemory = (native: Native): MemorySnapshot => {
  const memory = native.measureMemory();
  return {
    available_mb: bytesToWholeMb(memory.availableBytes),
    total_mb: bytesToWholeMb(memory.totalBytes),
    swap_free_mb: bytesToWholeMb(memory.swapFreeBytes),
    swap_total_mb: bytesToWholeMb(memory.swapTotalBytes),
  };
};
