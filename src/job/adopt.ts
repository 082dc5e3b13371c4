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
  /** What stood among the records and was none, one line each. A part of `problem`. */
  broken: string[];
}

/**
 * Removes abandoned boxes and records, lets paused jobs go on that no watchdog looks after, and lists the jobs that still run. Never throws: old litter must not
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
  const broken = runtimeDir === null ? [] : attempt(() => native.brokenRecords(runtimeDir), []);
  let jobs = runtimeDir === null ? [] : attempt(() => native.listJobs(runtimeDir, true), []);
  // Whose watchdog paused a job may have been killed, and every other one with it.
  if (runtimeDir !== null && jobs.some(({ state }) => state === "paused")) {
    if (attempt(() => native.wakeForgotten(runtimeDir), 0) > 0)
      jobs = attempt(() => native.listJobs(runtimeDir, true), []);
  }
  const stays = runtimeDir === null || broken.length === 0 ? [] : attempt(() => native.brokenRecords(runtimeDir), []);
  const told = broken.map((path) =>
    stays.includes(path)
      ? `${path} is no record of a job: remove it`
      : `${path} was no whole record of a job and is removed; a job that it stood for runs on, and is not shown`,
  );
  problems.push(...told);
  for (const { mode, base } of modes) attempt(() => native.removeAbandonedBoxes(mode, base), []);
  return { jobs, problem: problems.length > 0 ? problems.join("; ") : null, broken: told };
};

/**
 * As `sweepJobs`, and keeps the caps that only headroom enforces for as long as this process lives. Answers what
 * stood among the records and was none.
 */
export const adoptJobs = (native: Native, runtimeDir: string, modes: readonly UsableMode[]): string[] => {
  const { broken } = sweepJobs(native, runtimeDir, modes);
  try {
    native.adoptOrphans(runtimeDir);
  } catch {
    // An orphan that cannot be adopted is no worse off than before.
  }
  return broken;
};
