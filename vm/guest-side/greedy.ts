/**
 * Three greedy jobs at once beside a heartbeat, inside a guest with swap. The sum of the jobs must stay
 * within the pool, and the heartbeat must not stall. Prints `CHECK …` lines as check.ts does.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { HeadroomReport } from "../../dist/outcome/report.js";
import { check, CLI } from "./support.js";

const HOG = "for round in 1 2; do head -c 900m /dev/zero | tail > /dev/null; done; exit 9";
const JOBS = 3;
const BEAT_MS = 50;
const LONGEST_GAP_MS = 1000;

const scratch = mkdtempSync(join(tmpdir(), "greedy-"));

/**
 * The heartbeat has a thread of its own, as an agent's main loop has: the checks' own work is no stall. Of the longest
 * gap it tells for how long the thread was ready and waited for a processor, and how often the process waited for a
 * page from a disk.
 */
const HEARTBEAT = `
  const { parentPort } = require("node:worker_threads");
  const { readFileSync } = require("node:fs");
  const look = () => ({
    at: performance.now(),
    waited: Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[1]) / 1e6,
    faults: process.resourceUsage().majorPageFault,
  });
  let last = look();
  let longest = { gapMs: 0, waitedMs: 0, faults: 0 };
  setInterval(() => {
    const now = look();
    const gapMs = Math.round(now.at - last.at);
    if (gapMs > longest.gapMs) {
      longest = { gapMs, waitedMs: Math.round(now.waited - last.waited), faults: now.faults - last.faults };
    }
    last = now;
  }, ${BEAT_MS});
  parentPort.on("message", () => parentPort.postMessage(longest));
`;

/** The pool's cgroup, and the most it was seen to hold. */
const watchPool = () => {
  const base = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice";
  const seen = { limitMb: 0, mostMb: 0 };
  const timer = setInterval(() => {
    for (const name of readdirSync(base).filter((entry) => entry.startsWith("headroom-pool-"))) {
      try {
        seen.limitMb = Math.round(Number(readFileSync(join(base, name, "memory.max"), "utf8")) / 1048576);
        seen.mostMb = Math.max(
          seen.mostMb,
          Math.round(Number(readFileSync(join(base, name, "memory.current"), "utf8")) / 1048576),
        );
      } catch {
        // It went meanwhile.
      }
    }
  }, 100);
  return { seen, stop: () => clearInterval(timer) };
};

const startJob = (index: number) => {
  const file = join(scratch, `${index}.json`);
  const child = spawn(
    process.execPath,
    [CLI, "run", "--no-queue", "--memory", "400", "--report", file, "--", "sh", "-c", HOG],
    {
      stdio: "ignore",
    },
  );
  return { file, exited: once(child, "exit") as Promise<[number | null]> };
};

const heartbeat = new Worker(HEARTBEAT, { eval: true });
await once(heartbeat, "online");
const pool = watchPool();
const jobs = Array.from({ length: JOBS }, (_, index) => startJob(index));
const exits = await Promise.all(jobs.map(async ({ exited }) => (await exited)[0]));
pool.stop();
heartbeat.postMessage("tell");
const [longest] = (await once(heartbeat, "message")) as [{ gapMs: number; waitedMs: number; faults: number }];
await heartbeat.terminate();

const reports = jobs.map(({ file }) => JSON.parse(readFileSync(file, "utf8")) as HeadroomReport);
// Three at once make the machine wait for memory: the watchdog may stop some of them for it, never all.
const stopped = reports.map(({ killed_by }) => killed_by === "watchdog");
check(
  "each job ends by itself, or is stopped by the watchdog",
  !stopped.every(Boolean) && exits.every((code, index) => stopped[index] || code === 9),
  JSON.stringify([exits, stopped]),
);
check(
  "each job is told of its kill",
  reports.every((report, index) => stopped[index] || report.oom_killed),
  JSON.stringify(reports.map(({ peak_mb, oom_killed }) => ({ peak_mb, oom_killed }))),
);
const { limitMb, mostMb } = pool.seen;
check("the jobs together stay within the pool", mostMb > 0 && mostMb <= limitMb, `${mostMb} of ${limitMb} MB`);
// Waiting for a processor of an emulated machine is no stall of memory's.
check("the heartbeat does not stall", longest.gapMs - longest.waitedMs <= LONGEST_GAP_MS, longest);
