/** What dead starters left behind: removed where nothing runs in it, looked after where something does. */
import type { UsableMode } from "../modes/choose.js";
import { nativeMessage, type Native } from "../native.js";

/** A job of any process of this user. */
export type JobView = ReturnType<Native["listJobs"]>[number];

export interface Sweep {
  /** The jobs that still run. */
  jobs: JobView[];
  /** What could not be read or removed, where something could not. */
  problem: string | null;
}

/**
 * Removes abandoned boxes and records, and lists the jobs that still run. Never throws: old litter must not
 * stop a new job.
 */
export const sweepJobs = (native: Native, runtimeDir: string | null, modes: readonly UsableMode[]): Sweep => {
  const problems: string[] = [];
  const attempt = <T>(action: () => T, otherwise: T): T => {
    try {
      return action();
    } catch (error) {
      problems.push(nativeMessage(error));
      return otherwise;
    }
  };
  const jobs = runtimeDir === null ? [] : attempt(() => native.listJobs(runtimeDir, true), []);
  for (const { mode, base } of modes) attempt(() => native.removeAbandonedBoxes(mode, base), []);
  return { jobs, problem: problems.length > 0 ? problems.join("; ") : null };
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
