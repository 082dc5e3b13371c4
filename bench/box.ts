/**
 * `npm run bench:box`: what a box costs. Create with limits, a process joins, the process leaves, remove,
 * through the addon, in every kernel mode that works here. Words: how many rounds (default 2000).
 */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mbToBytes } from "../src/memory.js";
import { candidates, probeModes } from "../src/modes/choose.js";
import { loadNative } from "../src/native.js";
import { QUANTILES_HEADER, quantiles } from "./quantiles.js";

const native = loadNative();
if (!native) throw new Error("the native addon is needed: npm start");
const rounds = Number(process.argv[2] ?? "2000");
const WARM_UP = 50;

const sleeper = spawn("sleep", ["600"], { stdio: "ignore" });
const { pid } = sleeper;
if (pid === undefined) throw new Error("sleep did not start");

const timed = <T>(durations: number[], action: () => T): T => {
  const began = performance.now();
  const result = action();
  durations.push(performance.now() - began);
  return result;
};

/** Where the sleeper came from, for the way back. */
const homeProcs = (base: string, mode: string): string => {
  if (mode === "cgroup1") return join(base, "cgroup.procs");
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1] ?? "/";
  const inBase = base.indexOf(own);
  return join(inBase >= 0 ? base : `/sys/fs/cgroup${own}`, "cgroup.procs");
};

try {
  process.stdout.write(`${QUANTILES_HEADER}\n`);
  for (const { mode, base } of candidates(probeModes(native), undefined)) {
    if (base === null) continue;
    const home = homeProcs(base, mode);
    const [create, enter, remove, total]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let round = 0; round < rounds + WARM_UP; round += 1) {
      const box = timed(create, () => native.JobBox.create(mode, base, mbToBytes(256), mbToBytes(256)));
      timed(enter, () => box.enter(pid));
      writeFileSync(home, String(pid));
      if (!timed(remove, () => box.remove())) throw new Error("the box was not empty");
      total.push((create.at(-1) ?? 0) + (enter.at(-1) ?? 0) + (remove.at(-1) ?? 0));
    }
    for (const durations of [create, enter, remove, total]) durations.splice(0, WARM_UP);
    process.stdout.write(`${quantiles(`${mode}: create with limits`, create)}\n`);
    process.stdout.write(`${quantiles(`${mode}: join`, enter)}\n`);
    process.stdout.write(`${quantiles(`${mode}: remove`, remove)}\n`);
    process.stdout.write(`${quantiles(`${mode}: create + limit + join + remove`, total)}\n`);
  }
} finally {
  sleeper.kill("SIGKILL");
}
