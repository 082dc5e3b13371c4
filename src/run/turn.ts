/** The turn of a `run`: in the line, or around it. */
import { setTimeout as sleep } from "node:timers/promises";
import { admit } from "../admission/admit.js";
import { automaticCapMb } from "../admission/cap.js";
import { nativeSlots } from "../admission/native-slots.js";
import { takeTurn, type RecordedJob, type Turn, type TurnRequest, type TurnWorld } from "../admission/turn.js";
import { monotonicMs } from "../clock.js";
import { bytesToMb, measureMemory } from "../memory.js";
import { nativeMessage, type Native } from "../native.js";
import type { ResolvedSettings } from "../settings/auto.js";

export interface RunTurn {
  native: Native;
  runtimeDir: string | null;
  resolved: ResolvedSettings;
  queueTimeoutS: number;
  request: TurnRequest;
  /** Not in the line: asked for, or inside a job that is in it already. */
  isAlone: boolean;
  /** Jobs that this process has taken over, and that take a turn without a slot. */
  lostSlots?: ReadonlySet<string>;
  /** It waits for memory alone. */
  hasNoSlot?: boolean;
  /** Ends the waiting: the turn is given up, and what was awaited is rejected. */
  signal?: AbortSignal;
  onWaiting: (reason: string) => void;
  warn: (line: string) => void;
}

/** Jobs of every process of this user that hold memory. */
export const recordedJobs = (
  native: Native,
  runtimeDir: string | null,
  lostSlots: ReadonlySet<string> = new Set(),
): RecordedJob[] => {
  if (runtimeDir === null) return [];
  try {
    return native.listJobs(runtimeDir, false).map(({ id, command, memoryBytes, nowBytes }) => ({
      id,
      command,
      hasLostSlot: lostSlots.has(id),
      capMb: bytesToMb(memoryBytes),
      nowMb: bytesToMb(nowBytes),
    }));
  } catch {
    // Records that cannot be read must not stop a job.
    return [];
  }
};

export const runTurn = async (run: RunTurn): Promise<Turn> => {
  const { native, runtimeDir, resolved, request, signal } = run;
  if (run.isAlone) return aroundTheLine(run);
  const slots = runtimeDir === null || run.hasNoSlot ? undefined : nativeSlots(native, runtimeDir);
  const world: TurnWorld = {
    slots,
    measureMemory: () => measureMemory(native),
    recordedJobs: () => recordedJobs(native, runtimeDir, run.lostSlots),
    largestProcesses: () =>
      native
        .listProcesses()
        .toSorted((a, b) => b.rssBytes - a.rssBytes)
        .map(({ pid, name, rssBytes }) => ({ pid, name, rssMb: bytesToMb(rssBytes) })),
    nowMs: monotonicMs,
    sleep: async (ms) => sleep(ms, undefined, signal === undefined ? {} : { signal }),
    onWaiting: run.onWaiting,
  };
  const limits = {
    maxHeavyJobs: resolved.max_heavy_jobs,
    reserveMb: resolved.reserve_mb,
    minStartMb: resolved.min_start_mb,
    jobMemoryMaxMb: resolved.job_memory_max_mb,
    queueTimeoutS: run.queueTimeoutS,
  };
  try {
    return await takeTurn(request, limits, world);
  } catch (error) {
    if (signal?.aborted) throw error;
    // A line that cannot be kept is no reason not to run.
    run.warn(`jobs do not take turns: ${nativeMessage(error)}`);
    return takeTurn(request, limits, { ...world, slots: undefined });
  }
};

/** What is free now, whoever else runs. */
const aroundTheLine = ({ native, runtimeDir, resolved, request }: RunTurn): Turn => {
  const memory = measureMemory(native);
  const admission = admit({
    memory,
    jobs: recordedJobs(native, runtimeDir),
    reserveMb: resolved.reserve_mb,
    minStartMb: resolved.min_start_mb,
    jobMemoryMaxMb: resolved.job_memory_max_mb,
    ...(request.askedMb === undefined ? {} : { askedMb: request.askedMb }),
  });
  const capMb = request.askedMb ?? (admission.admitted ? admission.capMb : automaticCapMb(memory));
  return { admitted: true, capMb, queuedMs: 0, place: undefined };
};
