/** Everything `status` shows, measured once. */
import { admit } from "../admission/admit.js";
import type { Limits } from "../admission/limits.js";
import { nativeSlots } from "../admission/native-slots.js";
import type { SlotUser } from "../admission/slots.js";
import { sweepJobs, type JobView } from "../job/adopt.js";
import { bytesToMb, measureMemory, type MemorySnapshot } from "../memory.js";
import { candidates, probeModes } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import { nativeMessage, type Native } from "../native.js";
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
  /** The process that started it; without a name when it is gone. */
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

/** A job that waits for its turn. `null` is what could not be written down (a full disk). */
export interface WaitingStatus {
  /** The process that waits. */
  pid: number | null;
  command: string | null;
  kind: string | null;
  /** What it waits for. */
  reason: string | null;
  /** 1 is next. */
  position: number;
  waiting_s: number | null;
  /** The process that asked for it; without a name when it cannot be told. */
  who: { pid: number | null; name: string | null };
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

/** `nowMs` is of `monotonicMs`. */
export const takeSnapshot = (native: Native, nowMs: number, options: SnapshotOptions = {}): StatusSnapshot => {
  const memory = measureMemory(native);
  const pressure = native.memoryPressure();
  const modes = options.mode === undefined ? candidates(probeModes(native), undefined) : [];
  const { path: runtimeDir, problem } = native.runtimeDirectory();
  const processes = options.listed ?? native.listProcesses();
  const names = new Map(processes.map(({ pid, name }) => [pid, name]));
  const hermes = startedByHermes(processes);
  const sweep = sweepJobs(native, runtimeDir ?? null, modes);
  const line = waitingJobs(native, runtimeDir ?? null, sweep.jobs, names, nowMs);
  const { job_memory_max_mb, ...limits } = resolveSettings(options.settings ?? defaultSettings(), memory);
  const problems = [sweep.problem, line.problem].filter((text) => text !== null);
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
    jobs: sweep.jobs.toSorted((a, b) => b.ageMs - a.ageMs).map((job) => describeJob(job, names)),
    waiting: line.waiting,
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
    problem: problem ?? (problems.length > 0 ? problems.join("; ") : null),
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
  jobs: readonly JobView[],
  names: ReadonlyMap<number, string>,
  nowMs: number,
): { waiting: WaitingStatus[]; problem: string | null } => {
  if (runtimeDir === null) return { waiting: [], problem: null };
  let found: SlotUser[];
  try {
    const { holders, waiting } = nativeSlots(native, runtimeDir).list();
    const owners = new Set(jobs.map(({ ownerPid }) => ownerPid));
    const isListed = ({ pid }: SlotUser): boolean => pid !== null && owners.has(pid);
    found = [...holders.filter((user) => (user.isKnown ? user.reason !== null : !isListed(user))), ...waiting];
  } catch (error) {
    return { waiting: [], problem: nativeMessage(error) };
  }
  const waiting = found.map(({ pid, command, kind, reason, since_ms, isAlive, isStopped }, index) => ({
    pid,
    command: command === null ? null : withoutControls(command),
    kind: kind === null ? null : withoutControls(kind),
    reason: isStopped
      ? `is stopped, and passed over until it goes on (kill -CONT ${pid})`
      : reason === null
        ? null
        : withoutControls(reason),
    position: index + 1,
    waiting_s: since_ms === null ? null : Math.max(0, Math.round((nowMs - since_ms) / 1000)),
    who: { pid, name: isAlive && pid !== null ? (names.get(pid) ?? null) : null },
  }));
  return { waiting, problem: null };
};

const describeJob = (job: JobView, names: ReadonlyMap<number, string>): JobStatus => ({
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
  age_s: Math.round(job.ageMs / 1000),
  // Its number may be another process's by now.
  who: { pid: job.ownerPid, name: job.state === "running" ? (names.get(job.ownerPid) ?? null) : null },
  processes: job.processes.map(({ pid, name, rssBytes }) => ({ pid, name, rss_mb: bytesToMb(rssBytes) })),
});
