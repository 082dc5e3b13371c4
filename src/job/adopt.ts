/** What dead starters left behind: removed where nothing runs in it, looked after where something does. */
import type { UsableMode } from "../modes/choose.js";
import type { Native } from "../native.js";

/** A job of any process of this user. */
export type JobView = ReturnType<Native["listJobs"]>[number];

/**
 * Removes abandoned boxes and records; answers the jobs that still run. Never throws: old litter must not
 * stop a new job.
 */
export const sweepJobs = (native: Native, runtimeDir: string | null, modes: readonly UsableMode[]): JobView[] => {
  let jobs: JobView[] = [];
  try {
    if (runtimeDir !== null) jobs = native.listJobs(runtimeDir, true);
    for (const { mode, base } of modes) native.removeAbandonedBoxes(mode, base);
  } catch {
    // The next command tries again.
  }
  return jobs;
};

/** As `sweepJobs`, and keeps the caps that only headroom enforces for as long as this process lives. */
export const adoptJobs = (native: Native, runtimeDir: string, modes: readonly UsableMode[]): void => {
  sweepJobs(native, runtimeDir, modes);
  try {
    native.adoptOrphans(runtimeDir);
  } catch {
    // An orphan that cannot be adopted is no worse off than before.
  }
};
