/** What a setting of 0 stands for on this machine. Resolved when a job starts. */
import { reserveMb } from "../admission/cap.js";
import type { MemorySnapshot } from "../memory.js";
import type { Settings } from "./defaults.js";

export interface ResolvedSettings {
  max_heavy_jobs: number;
  reserve_mb: number;
  min_start_mb: number;
  critical_mb: number;
  /** 0 is no limit. */
  job_memory_max_mb: number;
}

const MB_PER_GB = 1024;
const part = (totalMb: number, percent: number, low: number, high: number): number =>
  Math.min(Math.max(Math.floor((totalMb * percent) / 100), low), high);

export const resolveSettings = (settings: Settings, { total_mb }: MemorySnapshot): ResolvedSettings => ({
  max_heavy_jobs: settings.max_heavy_jobs || automaticJobs(total_mb),
  reserve_mb: settings.reserve_mb || reserveMb(total_mb),
  min_start_mb: settings.min_start_mb || part(total_mb, 10, 192, 1024),
  critical_mb: settings.critical_mb || part(total_mb, 5, 96, 512),
  job_memory_max_mb: settings.job_memory_max_mb,
});

/**
 * A machine sold as 4 GB shows a few per cent less, which the kernel and the firmware keep: what counts is
 * the size that is sold.
 */
const automaticJobs = (totalMb: number): number => {
  const soldMb = totalMb * 1.06;
  if (soldMb < 4 * MB_PER_GB) return 1;
  return soldMb < 16 * MB_PER_GB ? 2 : 4;
};
