/**
 * A lock between processes: a file made whole under a private name, then hard-linked into place,
 * so that it never exists without its owner's pid and start time. A lock whose owner is gone is taken over.
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 200;
let counter = 0;

/** Runs `work` while holding the lock at `path`; `onWait` is told once if somebody else holds it. */
export const withLock = async <T>(
  path: string,
  work: () => Promise<T>,
  onWait?: (ownerPid: number) => void,
): Promise<T> => {
  const mine = `${process.pid} ${startTicks(process.pid)} ${(counter += 1)}\n`;
  mkdirSync(dirname(path), { recursive: true });
  for (let told = false; !take(path, mine); told = true) {
    const owner = readOwner(path);
    if (owner && !owner.alive) dropStale(path, owner.text);
    else {
      if (!told && owner) onWait?.(owner.pid);
      await sleep(POLL_MS);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
};

const take = (path: string, text: string): boolean => {
  const draft = `${path}.${process.pid}.${counter}`;
  writeFileSync(draft, text);
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
};

const readOwner = (path: string): { pid: number; alive: boolean; text: string } | null => {
  try {
    const text = readFileSync(path, "utf8");
    const [pid = "", ticks = ""] = text.trim().split(" ");
    return { pid: Number(pid), alive: startTicks(Number(pid)) === ticks, text };
  } catch {
    return null;
  }
};

// Renaming first makes sure that two waiters cannot both remove, the second one a fresh lock.
const dropStale = (path: string, text: string): void => {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
    if (readFileSync(aside, "utf8") !== text) linkSync(aside, path);
  } catch {
    // Another waiter was faster.
  } finally {
    rmSync(aside, { force: true });
  }
};

/** Field 22 of /proc/PID/stat, the start time; '' when there is no such process. */
const startTicks = (pid: number): string => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  } catch {
    return "";
  }
};
