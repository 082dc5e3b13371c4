/** Everything `status` shows, measured once. */
import { admit } from "../admission/admit.js";
import type { Limits } from "../admission/limits.js";
import { nativeSlots } from "../admission/native-slots.js";
import type { SlotDescription } from "../admission/slots.js";
import { sweepJobs, type JobView } from "../job/adopt.js";
import { bytesToMb, measureMemory, type MemorySnapshot } from "../memory.js";
import { candidates, probeModes } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import type { Native } from "../native.js";
import { commandText, withoutControls } from "../outcome/command-text.js";
import { resolveSettings, type ResolvedSettings } from "../settings/auto.js";
import { defaultSettings, type Settings } from "../settings/defaults.js";
import { startedByHermes } from "./hermes.js";

export interface JobStatus {
  id: string;
  /** `running`, `paused` (by the watchdog), `orphaned` (its starter is gone) or `left_running` (its command has ended). */
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
  /** The cap that the next job would get; 0 when it would have to wait. */
  next_cap_mb: number;
  limits: Limits;
  /** Oldest first. */
  jobs: JobStatus[];
  /** Jobs that wait for their turn, next first. */
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
  /** Those in force; without them the defaults. */
  settings?: Settings;
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
  const { job_memory_max_mb, ...limits } = resolveSettings(options.settings ?? defaultSettings(), memory);
  return {
    memory,
    pressure: pressure && {
      some_avg10_percent: pressure.some.avg10Percent,
      full_avg10_percent: pressure.full.avg10Percent,
      some_total_ms: Math.floor(pressure.some.totalUs / 1000),
      full_total_ms: Math.floor(pressure.full.totalUs / 1000),
    },
    mode: options.mode ?? modes[0]?.mode ?? "off",
    next_cap_mb: nextCapMb(memory, sweep.jobs, { ...limits, job_memory_max_mb }),
    limits,
    jobs: sweep.jobs
      .toSorted((a, b) => a.startedUnixMs - b.startedUnixMs)
      .map((job) => describeJob(job, names, nowUnixMs)),
    waiting: waitingJobs(native, runtimeDir, names, nowUnixMs),
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

const nextCapMb = (memory: MemorySnapshot, jobs: readonly JobView[], resolved: ResolvedSettings): number => {
  const admission = admit({
    memory,
    jobs: jobs.map(({ memoryBytes, nowBytes }) => ({ capMb: bytesToMb(memoryBytes), nowMb: bytesToMb(nowBytes) })),
    reserveMb: resolved.reserve_mb,
    minStartMb: resolved.min_start_mb,
    jobMemoryMaxMb: resolved.job_memory_max_mb,
  });
  return admission.admitted ? admission.capMb : 0;
};

/** Who has a slot but no memory yet, then the line. */
const waitingJobs = (
  native: Native,
  runtimeDir: string | null,
  names: ReadonlyMap<number, string>,
  nowUnixMs: number,
): WaitingStatus[] => {
  let found: SlotDescription[];
  try {
    const { holders, waiting } =
      runtimeDir === null ? { holders: [], waiting: [] } : nativeSlots(native, runtimeDir).list();
    found = [...holders.filter(({ reason }) => reason !== null), ...waiting];
  } catch {
    // A line that cannot be read is told by whoever wants to stand in it.
    return [];
  }
  return found.map(({ pid, command, kind, reason, since_ms }, index) => ({
    pid,
    command: withoutControls(command),
    kind,
    reason: withoutControls(reason ?? ""),
    position: index + 1,
    waiting_s: Math.max(0, Math.round((nowUnixMs - since_ms) / 1000)),
    who: { pid, name: names.get(pid) ?? null },
  }));
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
