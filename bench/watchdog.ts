/**
 * `npm run bench:watchdog`: how soon a job is signalled after memory has crossed the line, and what watching
 * costs while nothing happens; beside earlyoom (https://github.com/rfjakob/earlyoom) in the same run, where that
 * is installed and this user is root. The line is drawn 2 GB below what is available now, and a program fills
 * memory as fast as it can until it is signalled. Words: rounds (default 10), seconds of rest (default 20).
 *
 * headroom is measured as an agent would meet it at its worst: the JavaScript of `run` is stuck in a loop.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { QUANTILES_HEADER, quantiles } from "./quantiles.js";

const rounds = Number(process.argv[2] ?? "10");
const restS = Number(process.argv[3] ?? "20");
const CLI = fileURLToPath(new URL("../bin/hermes-headroom.js", import.meta.url));
const BELOW_KB = 2 * 1024 * 1024;
/** The program gives up there: a bench must not take the machine down when nobody stops it. */
const MOST_MB = 6000;
const NS_PER_MS = 1_000_000;

const availableKb = (): number =>
  Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1] ?? "0");

const scratch = mkdtempSync(join(tmpdir(), "headroom-bench-watchdog-"));

/** Takes memory until it is asked to end, then writes when that was, by the machine's monotonic clock. */
const HOG = `
import os, signal, sys, time
def asked(*_):
    now = time.monotonic_ns()
    with open(sys.argv[1], "w") as file: file.write(str(now))
    os._exit(0)
signal.signal(signal.SIGTERM, asked)
open(sys.argv[1] + ".started", "w").close()
time.sleep(1)
kept = []
for _ in range(${MOST_MB} // 8):
    kept.append(b"x" * (8 << 20))
time.sleep(10)
`;

/** Notes, on a thread of its own, when memory crosses the line. */
const SAMPLER = `
const { parentPort, workerData } = require("node:worker_threads");
const { openSync, readSync } = require("node:fs");
const file = openSync("/proc/meminfo", "r");
const buffer = Buffer.alloc(256);
const deadline = Date.now() + 20_000;
for (;;) {
  readSync(file, buffer, 0, 256, 0);
  const now = process.hrtime.bigint();
  if (Number(/MemAvailable:\\s+(\\d+)/.exec(buffer.toString("latin1"))[1]) < workerData.lineKb) {
    parentPort.postMessage(now);
    break;
  }
  if (Date.now() > deadline) { parentPort.postMessage(null); break; }
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}
`;

interface Watcher {
  name: string;
  /** Starts what watches, and the program under it where they belong together. */
  start: (lineKb: number, program: string[]) => ChildProcess[];
}

/** Once the program runs, the loop is never free again. */
const stuckFrom = (file: string): string =>
  `data:text/javascript,${encodeURIComponent(`import { existsSync } from "node:fs";
const look = setInterval(() => { if (existsSync(${JSON.stringify(file)})) { clearInterval(look); for (;;); } }, 5);`)}`;

const headroom: Watcher = {
  name: "headroom, JavaScript stuck",
  start: (lineKb, program) => {
    const line = String(Math.floor(lineKb / 1024));
    const runtime = mkdtempSync(join(scratch, "runtime-"));
    const words = ["run", "--no-queue", "--memory", String(MOST_MB + 500), "--", ...program];
    const env = {
      ...process.env,
      XDG_RUNTIME_DIR: runtime,
      HERMES_HOME: join(runtime, "home"),
      HEADROOM_CRITICAL_MB: line,
      HEADROOM_RESERVE_MB: line,
    };
    return [
      spawn(process.execPath, ["--import", stuckFrom(`${program.at(-1) ?? ""}.started`), CLI, ...words], {
        env,
        stdio: "ignore",
      }),
    ];
  },
};

const earlyoom: Watcher = {
  name: "earlyoom",
  start: (lineKb, program) => [
    spawn("earlyoom", ["-r", "0", "-M", String(lineKb), "--prefer", "^python3"], { stdio: "ignore" }),
    spawn(program[0] ?? "", program.slice(1), { stdio: "ignore" }),
  ],
};

const endAll = async (children: ChildProcess[]): Promise<void> => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
};

/** Milliseconds from the line to the signal; `undefined` when no signal came. */
const react = async (watcher: Watcher, round: number): Promise<number | undefined> => {
  const lineKb = availableKb() - BELOW_KB;
  const file = join(scratch, `${watcher.name.slice(0, 4)}-${round}`);
  const sampler = new Worker(SAMPLER, { eval: true, workerData: { lineKb } });
  const crossed = once(sampler, "message") as Promise<[bigint | null]>;
  const children = watcher.start(lineKb, ["python3", "-c", HOG, file]);
  const [at] = await crossed;
  for (let tries = 0; tries < 400 && !existsSync(file); tries += 1) await sleep(10);
  await sleep(50);
  await endAll(children);
  for (let tries = 0; tries < 500 && availableKb() < lineKb + BELOW_KB / 2; tries += 1) await sleep(10);
  if (at === null || !existsSync(file)) return undefined;
  return Number(BigInt(readFileSync(file, "utf8")) - at) / NS_PER_MS;
};

/** Time on a processor so far, ms; of one thread by its name, or of the whole process. */
const processorMs = (pid: number, thread?: string): number => {
  const tasks = `/proc/${pid}/task`;
  let sum = 0;
  for (const task of readdirSync(tasks)) {
    const name = readFileSync(join(tasks, task, "comm"), "utf8").trim();
    if (thread !== undefined && name !== thread) continue;
    sum += Number(readFileSync(join(tasks, task, "schedstat"), "utf8").split(" ")[0]) / NS_PER_MS;
  }
  return sum;
};

/** Share of one processor in percent, while nothing happens. */
const atRest = async (watcher: Watcher, thread?: string): Promise<number> => {
  // Far from the line, as on any day.
  const children = watcher.start(Math.floor(availableKb() / 20), ["sleep", String(restS + 30)]);
  await sleep(2500);
  const pid = children[0]?.pid ?? 0;
  const before = processorMs(pid, thread);
  await sleep(restS * 1000);
  const share = (processorMs(pid, thread) - before) / (restS * 10);
  await endAll(children);
  return share;
};

const say = (line: string): void => void process.stdout.write(`${line}\n`);

if (availableKb() < 3 * BELOW_KB) {
  say("skipped: less than 6 GB of memory are available, and the line is drawn 2 GB below that");
  process.exit(0);
}
const hasEarlyoom = process.getuid?.() === 0 && spawnSync("earlyoom", ["-v"]).status === 0;
const watchers = hasEarlyoom ? [headroom, earlyoom] : [headroom];
if (!hasEarlyoom) say("earlyoom is not measured: it is not installed, or this is not root (apt-get install earlyoom)");
const times = new Map<Watcher, number[]>(watchers.map((watcher) => [watcher, []]));
try {
  for (let round = 0; round < rounds; round += 1) {
    // In turns, so that both meet the same machine.
    for (const watcher of watchers) {
      const took = await react(watcher, round);
      if (took === undefined) say(`${watcher.name}: no signal in round ${round + 1}`);
      else times.get(watcher)?.push(took);
    }
  }
  say(`from the line to the signal, ms (${rounds} rounds)`);
  say(QUANTILES_HEADER);
  for (const watcher of watchers) say(quantiles(watcher.name, times.get(watcher) ?? []));
  say(`\nat rest, percent of one processor over ${restS} s`);
  say(`  headroom's thread  ${(await atRest({ ...headroom, start: unstuck }, "headroom-watch")).toFixed(3)}`);
  if (hasEarlyoom) say(`  earlyoom           ${(await atRest(earlyoom)).toFixed(3)}`);
} finally {
  // Who is stuck is killed and leaves its box; the next command removes it.
  spawnSync(process.execPath, [CLI, "status"], { stdio: "ignore" });
  rmSync(scratch, { recursive: true, force: true });
}

/** Without the loop: the threads share nothing, but a busy processor's clock is no clock at rest. */
function unstuck(lineKb: number, program: string[]): ChildProcess[] {
  const runtime = mkdtempSync(join(scratch, "runtime-"));
  const env = {
    ...process.env,
    XDG_RUNTIME_DIR: runtime,
    HERMES_HOME: join(runtime, "home"),
    HEADROOM_CRITICAL_MB: String(Math.floor(lineKb / 1024)),
  };
  return [spawn(process.execPath, [CLI, "run", "--no-queue", "--", ...program], { env, stdio: "ignore" })];
}
