/** What the programs in this folder have in common. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export const CLI = "/mnt/host/bin/hermes-headroom.js";

/**
 * Prints `CHECK ok|FAIL NAME: DETAIL` on one line. A failed one leaves the exit code alone: any but 0 says that a
 * program broke off.
 */
export const check = (name: string, ok: boolean, detail: unknown): void => {
  const text = typeof detail === "string" ? detail : JSON.stringify(detail);
  process.stdout.write(`CHECK ${ok ? "ok" : "FAIL"} ${name}: ${(text ?? "").replaceAll("\n", " ")}\n`);
};

/** Asks again and again; `false` when the answer was not yes in time. */
export const becomesTrue = async (seconds: number, isSo: () => boolean): Promise<boolean> => {
  const until = performance.now() + seconds * 1000;
  while (!isSo()) {
    if (performance.now() > until) return false;
    await sleep(200);
  }
  return true;
};

/** A file's text, or something else when it cannot be read (yet). */
export const readOr = (path: string, otherwise = ""): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return otherwise;
  }
};

/** The v2 cgroup of a process, as a path inside the hierarchy; empty when it is gone. */
export const cgroupOf = (pid: number | string): string => /^0::(.*)$/m.exec(readOr(`/proc/${pid}/cgroup`))?.[1] ?? "";
