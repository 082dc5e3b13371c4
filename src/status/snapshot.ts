/** Everything `status` shows, measured once. */
import { automaticCapMb } from "../admission/cap.js";
import { automaticLimits, type Limits } from "../admission/limits.js";
import { sweepJobs, type JobView } from "../job/adopt.js";
import { bytesToMb, measureMemory, type MemorySnapshot } from "../memory.js";
import { candidates, probeModes } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import type { Native } from "../native.js";
import { commandText } from "../outcome/command-text.js";
import { startedByHermes } from "./hermes.js";

export interface JobStatus {
  id: string;
  /** `running`, `orphaned` (its starter is gone) or `left_running` (its command has ended). */
  state: string;
  pid: number | null;
  kind: string;
  command: string;
  mode: string;
  cap_mb: number;
  /** −1 is unlimited. */
  swap_cap_mb: number;
  now_mb: number;
  peak_mb: number | null;
  age_s: number;
  /** The process that started it. */
  who: { pid: number; name: string | null };
  processes: { pid: number; name: string; rss_mb: number }[];
}

export interface ProcessStatus {
  pid: number;
  name: string;
  command: string;
  rss_mb: number;
  /** It is Hermes, or Hermes started it. */
  hermes: boolean;
}

/** A job that waits for its turn. */
export interface WaitingStatus {
  /** The process that waits. */
  pid: number;
  command: string;
  kind: string;
  /** What it waits for. */
  reason: string;
  /** 1 is next. */
  position: number;
  waiting_s: number;
  /** The process that asked for it. */
  who: { pid: number; name: string | null };
}

/** The machine's memory pressure. */
export interface PressureStatus {
  some_avg10_percent: number;
  full_avg10_percent: number;
  /** Stalled time since boot. Two of them tell what happened in between, which the averages blur. */
  some_total_ms: number;
  full_total_ms: number;
}

/** The snapshot, as `status --json` prints it. */
export interface StatusSnapshot {
  memory: MemorySnapshot;
  /** `null` where the kernel has no PSI. */
  pressure: PressureStatus | null;
  mode: Mode;
  /** The cap that the next job would get. */
  next_cap_mb: number;
  limits: Limits;
  /** Oldest first. */
  jobs: JobStatus[];
  /** Jobs that wait for their turn; this release has no queue. */
  waiting: WaitingStatus[];
  processes: ProcessStatus[];
  /** What is wrong with the records, where something is. */
  problem: string | null;
}

const LARGEST_SHOWN = 8;

export interface SnapshotOptions {
  /**
   * The mode, where it is known from a snapshot before. Nothing is tried and no abandoned box is looked for
   * then: once is enough for somebody who looks every second.
   */
  mode?: Mode | undefined;
  /** The processes, where they have just been listed: that is most of the work. */
  listed?: ReturnType<Native["listProcesses"]> | undefined;
  /** So many of the largest processes. */
  largest?: number;
}

export const takeSnapshot = (native: Native, nowUnixMs: number, options: SnapshotOptions = {}): StatusSnapshot => {
  const memory = measureMemory(native);
  const pressure = native.memoryPressure();
  const modes = options.mode === undefined ? candidates(probeModes(native), undefined) : [];
  const { path: runtimeDir, problem } = native.runtimeDirectory();
  const processes = options.listed ?? native.listProcesses();
  const names = new Map(processes.map(({ pid, name }) => [pid, name]));
  const hermes = startedByHermes(processes);
  const sweep = sweepJobs(native, runtimeDir ?? null, modes);
  return {
    memory,
    pressure: pressure && {
      some_avg10_percent: pressure.some.avg10Percent,
      full_avg10_percent: pressure.full.avg10Percent,
      some_total_ms: Math.floor(pressure.some.totalUs / 1000),
      full_total_ms: Math.floor(pressure.full.totalUs / 1000),
    },
    mode: options.mode ?? modes[0]?.mode ?? "off",
    next_cap_mb: automaticCapMb(memory),
    limits: automaticLimits(memory.total_mb),
    jobs: sweep.jobs
      .toSorted((a, b) => a.startedUnixMs - b.startedUnixMs)
      .map((job) => describeJob(job, names, nowUnixMs)),
    waiting: [],
    processes: [...processes]
      .toSorted((a, b) => b.rssBytes - a.rssBytes)
      .slice(0, options.largest ?? LARGEST_SHOWN)
      .map(({ pid, name, argv, rssBytes }) => ({
        pid,
        name,
        command: commandText(argv),
        rss_mb: bytesToMb(rssBytes),
        hermes: hermes.has(pid),
      })),
    problem: problem ?? sweep.problem,
  };
};

const describeJob = (job: JobView, names: Map<number, string>, nowUnixMs: number): JobStatus => ({
  id: job.id,
  state: job.state,
  pid: job.pid ?? null,
  kind: job.kind,
  command: job.command,
  mode: job.mode,
  cap_mb: bytesToMb(job.memoryBytes),
  swap_cap_mb: typeof job.swapBytes === "number" ? bytesToMb(job.swapBytes) : -1,
  now_mb: bytesToMb(job.nowBytes),
  peak_mb: job.peak ? bytesToMb(job.peak.bytes) : null,
  age_s: Math.max(0, Math.round((nowUnixMs - job.startedUnixMs) / 1000)),
  who: { pid: job.ownerPid, name: names.get(job.ownerPid) ?? null },
  processes: job.processes.map(({ pid, name, rssBytes }) => ({ pid, name, rss_mb: bytesToMb(rssBytes) })),
});
