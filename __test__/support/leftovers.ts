/** What must not be left behind: job cgroups, records, processes. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { kernelModes, native } from "./modes.js";

/** Names of job cgroups that exist now. */
export const jobCgroups = (): string[] =>
  kernelModes.flatMap(({ base }) =>
    base === null ? [] : readdirSync(base).filter((name) => name.startsWith("headroom-job-")),
  );

/** Job cgroups made by this very process number. */
export const jobCgroupsOf = (pid: number): string[] =>
  jobCgroups().filter((name) => name.startsWith(`headroom-job-${pid}-`));

/** Records made by this very process number. */
export const recordsOf = (pid: number): string[] => {
  const { path } = native.runtimeDirectory();
  return path === null || path === undefined ? [] : readdirSync(path).filter((name) => name.startsWith(`${pid}-`));
};

/** Whether a process lives; a zombie does not. */
export const isAlive = (pid: number): boolean => {
  const file = join("/proc", String(pid), "stat");
  if (!existsSync(file)) return false;
  try {
    const text = readFileSync(file, "utf8");
    return !["Z", "X"].includes(text.slice(text.lastIndexOf(")") + 2)[0] ?? "X");
  } catch {
    return false;
  }
};

/** Waits until something holds, for at most so long. */
export const eventually = async (holds: () => boolean, patienceMs = 10_000): Promise<boolean> => {
  const deadline = Date.now() + patienceMs;
  while (!holds()) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
};
