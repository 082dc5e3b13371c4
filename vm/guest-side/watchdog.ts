/**
 * The watchdog on a machine that really runs short, inside a guest: two jobs within their caps, and something in
 * no box that grows until memory is critical. Without swap the machine thrashes (files are read again and again)
 * and the JavaScript around the older job, whose watchdog acts, is stuck in a loop. With swap the newer job's pages
 * are pushed out, and it goes on when the older one has ended. Prints `CHECK …` lines as check.ts does.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { HeadroomReport } from "../../dist/outcome/report.js";
import { becomesTrue, check, CLI, readOr } from "./support.js";

const LONGEST_SILENCE_MS = 1000;
const LATEST_SIGNAL_MS = 300;
/** Memory as no swap can squeeze it. */
const BLOCK = `const block = require("node:crypto").randomBytes(1048576);`;
const CRITICAL_MB = 150;

const scratch = mkdtempSync(join(tmpdir(), "watchdog-"));
const env = { ...process.env, HERMES_HOME: join(scratch, "home"), HEADROOM_CRITICAL_MB: String(CRITICAL_MB) };
const kb = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readOr("/proc/meminfo"))?.[1]);
const hasSwap = kb("SwapTotal") > 0;

/**
 * A thread of its own: the agent's heartbeat, and the moments (by the clock since boot) at which memory crosses the
 * line and at which the watchdog has left its first mark, which it does just before it acts.
 */
const OBSERVER = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { readFileSync, readdirSync } = require("node:fs");
  const seen = { crossedMs: null, markedMs: null, handling: null, silenceMs: 0, waitedMs: 0, leastMb: 1e9 };
  // For how long this thread was ready and got no processor: an emulated machine's business, not memory's.
  const waited = () => Number(readFileSync("/proc/thread-self/schedstat", "latin1").split(" ")[1]) / 1e6;
  const began = Number(process.hrtime.bigint() / 1000000n);
  let last = performance.now();
  let lastWaited = waited();
  setInterval(() => {
    const now = performance.now();
    const nowWaited = waited();
    const silenceMs = Math.round(now - last - (nowWaited - lastWaited));
    if (silenceMs > seen.silenceMs) Object.assign(seen, { silenceMs, waitedMs: Math.round(nowWaited - lastWaited) });
    last = now;
    lastWaited = nowWaited;
    const availableMb = Number(/MemAvailable:\\s+(\\d+)/.exec(readFileSync("/proc/meminfo", "latin1"))[1]) / 1024;
    seen.leastMb = Math.min(seen.leastMb, Math.round(availableMb));
    const bootMs = Number(process.hrtime.bigint() / 1000000n);
    if (seen.crossedMs === null && availableMb < workerData.criticalMb) seen.crossedMs = bootMs;
    if (seen.markedMs !== null) return;
    try {
      const name = readdirSync(workerData.runtimeDir).find((entry) => entry.endsWith(".watchdog.json"));
      if (name === undefined) return;
      const mark = JSON.parse(readFileSync(workerData.runtimeDir + "/" + name, "utf8"));
      if (mark.boot_ms < began) return;
      seen.markedMs = mark.boot_ms;
      seen.handling = mark.handling;
    } catch {}
  }, 10);
  parentPort.on("message", () => parentPort.postMessage(seen));
`;

interface Seen {
  crossedMs: number | null;
  markedMs: number | null;
  handling: string | null;
  silenceMs: number;
  waitedMs: number;
  leastMb: number;
}

/** Takes so much memory, says that it has it, and keeps it for some seconds; asked to end, it does so with code 3. */
const held = (mb: number, seconds: number, file: string): string[] => [
  process.execPath,
  "-e",
  `${BLOCK} const kept = Buffer.alloc(${mb} * 1048576, block); process.on("SIGTERM", () => process.exit(3));
   require("node:fs").writeFileSync(${JSON.stringify(file)}, "");
   setTimeout(() => process.exit(kept[0] === block[0] ? 0 : 9), ${seconds * 1000});`,
];

const job = (name: string, capMb: number, words: string[], stuckFrom?: string) => {
  const report = join(scratch, `${name}.json`);
  const stuck = `import { existsSync } from "node:fs";
    const look = setInterval(() => { if (existsSync(${JSON.stringify(stuckFrom)})) { clearInterval(look); for (;;); } }, 5);`;
  const preload = stuckFrom === undefined ? [] : ["--import", `data:text/javascript,${encodeURIComponent(stuck)}`];
  const options = ["--no-queue", "--memory", String(capMb), "--swap", "400", "--report", report];
  const child = spawn(process.execPath, [...preload, CLI, "run", ...options, "--", ...words], {
    env,
    stdio: "inherit",
  });
  return { child, report, exited: once(child, "exit") as Promise<[number | null]> };
};

const runtimeDir = join(process.env["XDG_RUNTIME_DIR"] ?? `/run/user/${process.getuid?.()}`, "hermes-headroom");
const observer = new Worker(OBSERVER, { eval: true, workerData: { criticalMb: CRITICAL_MB, runtimeDir } });
await once(observer, "online");

const olderHolds = join(scratch, "older");
const newerHolds = join(scratch, "newer");
const older = job("old", 300, held(100, hasSwap ? 40 : 120, olderHolds), hasSwap ? undefined : olderHolds);
check("the older job holds its memory", await becomesTrue(60, () => existsSync(olderHolds)), "");
const newer = job("new", 400, held(250, 45, newerHolds));
check("the newer job holds its memory", await becomesTrue(60, () => existsSync(newerHolds)), "");

const others: ChildProcess[] = [];
if (!hasSwap) {
  // Reads everything there is on the disk, again and again: what is thrown out of memory comes back from there.
  const storm = "while :; do find /usr /mnt/host/node_modules -xdev -type f -print0 | xargs -0 cat > /dev/null; done";
  others.push(spawn("sh", ["-c", storm], { stdio: "ignore", detached: true }));
}
// Grows in no box, some MB at a time, until little more than half of the line is left.
const growth = `${BLOCK} const kept = []; const fs = require("node:fs");
  const left = () => Number(/MemAvailable:\\s+(\\d+)/.exec(fs.readFileSync("/proc/meminfo", "latin1"))[1]) / 1024;
  setInterval(() => { if (left() > ${CRITICAL_MB - 20} && kept.length < 300) kept.push(Buffer.alloc(4194304, block)); }, 10);
  setTimeout(() => process.exit(0), ${hasSwap ? 25_000 : 60_000});`;
others.push(spawn(process.execPath, ["-e", growth], { stdio: "ignore", detached: true }));

const [newerCode] = await newer.exited;
observer.postMessage("tell");
const [seen] = (await once(observer, "message")) as [Seen];
await observer.terminate();

const report = JSON.parse(readFileSync(newer.report, "utf8")) as HeadroomReport;
const events = readOr(join(env.HERMES_HOME, "plugin-data/headroom/events.jsonl"))
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line) as { event: string; action?: string; reason?: string });
const actions = events.filter(({ event }) => event === "watchdog").map(({ action, reason }) => `${action}: ${reason}`);

if (hasSwap) {
  const pushed = Number(/pushed (\d+) MB/.exec(actions.join(" "))?.[1] ?? "0");
  check("the newer job is paused", actions[0]?.startsWith("pause:") === true, actions);
  check("its pages are pushed out", pushed >= 100, `${pushed} MB`);
  check(
    "it goes on",
    actions.some((action) => action.startsWith("resume:")),
    actions,
  );
  check("it ends by itself", newerCode === 0 && report.killed_by === undefined, [newerCode, report]);
  check("the older job ends by itself", (await older.exited)[0] === 0, "");
} else {
  const { crossedMs, markedMs } = seen;
  const tookMs = crossedMs === null || markedMs === null ? null : markedMs - crossedMs;
  check("memory was critical", crossedMs !== null, seen);
  check("the watchdog acts in time", tookMs !== null && tookMs <= LATEST_SIGNAL_MS, { tookMs, ...seen });
  check("the newest job is stopped, and told why", report.killed_by === "watchdog", [newerCode, report]);
  check("the oldest lives", older.child.exitCode === null && older.child.signalCode === null, "");
}
check("the agent is never silent for long", seen.silenceMs <= LONGEST_SILENCE_MS, seen);

for (const other of others) {
  try {
    process.kill(-(other.pid ?? 0), "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
if (older.child.exitCode === null) {
  // Stuck, it hears nothing; its job is ended by name of its box, as `status` shows it.
  older.child.kill("SIGKILL");
  await once(older.child, "exit");
  const status = spawn(process.execPath, [CLI, "status", "--json"], { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  status.stdout.on("data", (chunk) => (text += String(chunk)));
  await once(status, "exit");
  const { jobs } = JSON.parse(text) as { jobs: { pid: number | null }[] };
  for (const { pid } of jobs) if (pid !== null) process.kill(pid, "SIGKILL");
  await sleep(500);
}
