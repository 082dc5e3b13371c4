/** What a setting of 0 stands for on this machine. Resolved when a job starts. */
import { automaticLimits, type Limits } from "../admission/limits.js";
import type { MemorySnapshot } from "../memory.js";
import type { Settings } from "./defaults.js";

export interface ResolvedSettings extends Limits {
  /** 0 is no limit. */
  job_memory_max_mb: number;
}

export const resolveSettings = (
  settings: Settings,
  { total_mb }: Pick<MemorySnapshot, "total_mb">,
): ResolvedSettings => {
  const automatic = automaticLimits(total_mb);
  return {
    max_heavy_jobs: settings.max_heavy_jobs || automatic.max_heavy_jobs,
    reserve_mb: settings.reserve_mb || automatic.reserve_mb,
    min_start_mb: settings.min_start_mb || automatic.min_start_mb,
    critical_mb: settings.critical_mb || automatic.critical_mb,
    job_memory_max_mb: settings.job_memory_max_mb,
  };
};
