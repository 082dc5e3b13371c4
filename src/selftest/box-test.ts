/** The proof: a process that wants far more than its box has dies in it, and nothing else does. */
import { once } from "node:events";
import { Socket } from "node:net";
import { poolLimits } from "../admission/pool.js";
import { measureMemory } from "../memory.js";
import { startJob } from "../job/start.js";
import type { UsableMode } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import type { Native } from "../native.js";

const BOX_MB = 64;
const WANTED_MB = 800;
const KILLED_EXIT_CODE = 137;

/**
 * `tail` keeps an input without line ends whole in memory. The shell is the part that must live: it sees
 * how `tail` ended and says so.
 */
const SCRIPT = `head -c ${WANTED_MB}m /dev/zero | tail > /dev/null 2>&1; echo "saw $?"`;

export interface BoxTest {
  mode: Mode;
  /** Who killed the greedy process; `undefined` when nobody did. */
  killedBy: "kernel" | "headroom" | undefined;
  /** The box: its cgroup, or the mode where it has none. */
  where: string;
  count: number;
  shellSurvived: boolean;
  /** No process of this one's own cgroup was killed meanwhile. */
  untouched: boolean;
  tookMs: number;
  /** What went wrong, where something did. */
  problem: string | undefined;
}

export const runBoxTest = async (native: Native, modes: UsableMode[], runtimeDir: string | null): Promise<BoxTest> => {
  const began = performance.now();
  const killsBefore = native.ownOomKills();
  const job = startJob(native, modes, {
    argv: ["sh", "-c", SCRIPT].map((word) => Buffer.from(word)),
    text: "headroom selftest",
    kind: "custom",
    memoryMb: BOX_MB,
    swapMb: 0,
    pool: poolLimits(measureMemory(native)),
    stdio: ["null", "pipe", "null"],
    runtimeDir,
    collectsOrphans: false,
  });
  if (!job.started) {
    return { ...NOTHING_RAN, tookMs: performance.now() - began, problem: [...job.warnings, job.message].join("; ") };
  }
  const [output, ended] = await Promise.all([readAll(job.pipeFds[1]), job.ended]);
  const count = (ended?.oom_kills ?? 0) + (ended?.cap_kills ?? 0);
  const shellSurvived = output.trim() === `saw ${KILLED_EXIT_CODE}`;
  return {
    mode: job.mode,
    killedBy: ended && ended.cap_kills > 0 ? "headroom" : ended && ended.oom_kills > 0 ? "kernel" : undefined,
    where: job.cgroup ?? job.mode,
    count,
    shellSurvived,
    untouched: native.ownOomKills() === killsBefore,
    tookMs: performance.now() - began,
    problem: job.warnings.length > 0 ? job.warnings.join("; ") : describeProblem(count, output, shellSurvived),
  };
};

const NOTHING_RAN = {
  mode: "off",
  killedBy: undefined,
  where: "nowhere",
  count: 0,
  shellSurvived: false,
  untouched: true,
} as const;

const describeProblem = (count: number, output: string, shellSurvived: boolean): string | undefined => {
  if (count === 0) return `nothing was killed at ${BOX_MB} MB`;
  return shellSurvived
    ? undefined
    : `the shell did not see its child killed, it wrote ${JSON.stringify(output.trim())}`;
};

const readAll = async (fd: number | null | undefined): Promise<string> => {
  if (fd === null || fd === undefined) return "";
  const socket = new Socket({ fd, readable: true, writable: false });
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    text += String(chunk);
  });
  await once(socket, "close");
  return text;
};

export const BOX_TEST_SIZES: { boxMb: number; wantedMb: number } = { boxMb: BOX_MB, wantedMb: WANTED_MB };
