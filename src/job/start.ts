/** Starts one job in the best box that can be had, stepping down a mode when one fails. */
import { jobOomScoreAdj } from "../admission/oom-score.js";
import type { PoolLimits } from "../admission/pool.js";
import { mbToBytes } from "../memory.js";
import type { UsableMode } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import type { Native } from "../native.js";
import { followJob, type EndedEvent, type JobEvent } from "./events.js";

export interface JobRequest {
  /** The program and its words. */
  argv: Buffer[];
  /** Variables that it gets beside those of this process. */
  variables?: [string, string][];
  /** The command as people read it, secrets masked. */
  text: string;
  kind: string;
  memoryMb: number;
  /** −1 is unlimited. */
  swapMb: number;
  /** What all jobs together may use, where a pool holds them. */
  pool: PoolLimits;
  stdio: [StdioWord, StdioWord, StdioWord];
  /** Where the job goes on record; `null` keeps it off. */
  runtimeDir: string | null;
  /** This process has called `native.collectOrphans()`. */
  collectsOrphans: boolean;
  signals?: InstanceType<Native["SignalPassing"]>;
  onEvent?: (event: JobEvent) => void;
}

export type StdioWord = "inherit" | "null" | "pipe";

export interface StartedJob {
  started: true;
  pid: number;
  id: string;
  mode: Mode;
  cgroup: string | null;
  /** Our ends of the pipes asked for. */
  pipeFds: (number | null)[];
  /** What went wrong on the way, one line each, to be said once. */
  warnings: string[];
  /** Settles when the command has ended. */
  ended: Promise<EndedEvent | undefined>;
}

export interface FailedStart {
  started: false;
  failure: "not-found" | "not-executable" | "working-directory" | "failed";
  message: string;
  warnings: string[];
}

/** Tries the candidates in their order. A failing box is never a reason not to run the command. */
export const startJob = (native: Native, candidates: UsableMode[], request: JobRequest): StartedJob | FailedStart => {
  const warnings: string[] = [];
  let message = "no mode to try";
  for (const [index, candidate] of candidates.entries()) {
    const attempt = startIn(native, candidate, request);
    if (attempt.started) return { ...attempt, warnings: [...warnings, ...attempt.warnings] };
    const { failure } = attempt;
    if (failure !== "box") return { ...attempt, failure, warnings: [...warnings, ...attempt.warnings] };
    message = attempt.message;
    const next = candidates[index + 1];
    if (next) warnings.push(`mode ${candidate.mode} failed (${message}); using ${next.mode}`);
  }
  return { started: false, failure: "failed", message, warnings };
};

type Attempt = StartedJob | (Omit<FailedStart, "failure"> & { failure: FailedStart["failure"] | "box" });

const startIn = (native: Native, { mode, base }: UsableMode, request: JobRequest): Attempt => {
  const start = native.startJob(
    {
      mode,
      base,
      memoryBytes: mbToBytes(request.memoryMb),
      swapBytes: swapBytes(request.swapMb),
      poolMemoryBytes: mbToBytes(request.pool.memoryMb),
      poolSwapBytes: swapBytes(request.pool.swapMb),
    },
    {
      argv: request.argv,
      env: request.variables ?? [],
      cwd: null,
      stdio: request.stdio,
      oomScoreAdj: jobOomScoreAdj(native.ownOomScoreAdj()),
    },
    {
      runtimeDir: request.runtimeDir,
      commandText: request.text,
      kind: request.kind,
      collectsOrphans: request.collectsOrphans,
    },
    request.signals ?? null,
  );
  const warnings = start.recordProblem ? [`the job is not on record: ${start.recordProblem}`] : [];
  if (start.pid === null || start.eventsFd === null) {
    return { started: false, failure: start.failure as FailedStart["failure"], message: start.message ?? "", warnings };
  }
  return {
    started: true,
    pid: start.pid,
    id: start.id ?? "",
    mode,
    cgroup: start.cgroup,
    pipeFds: start.pipeFds as (number | null)[],
    warnings,
    ended: followJob(start.eventsFd, request.onEvent),
  };
};

/** −1 stands for no limit. */
const swapBytes = (mb: number): number | null => (mb < 0 ? null : mbToBytes(mb));
