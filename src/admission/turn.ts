/** Waits for a job's turn: a slot, then memory. First come, first served, for both. */
import type { MemorySnapshot } from "../memory.js";
import { admit, type Admission, type RunningJob } from "./admit.js";
import type { SlotDescription, SlotPlace, Slots } from "./slots.js";

/** A job on record, as far as admission goes. */
export interface RecordedJob extends RunningJob {
  /** The process that started it. */
  ownerPid: number;
}

export interface TurnRequest {
  /** The command, secrets masked. */
  command: string;
  kind: string;
  pid: number;
  askedMb?: number;
  learnedPeakMb?: number;
}

export interface TurnLimits {
  maxHeavyJobs: number;
  reserveMb: number;
  minStartMb: number;
  /** 0 is no limit. */
  jobMemoryMaxMb: number;
  queueTimeoutS: number;
}

/** What is measured, and the clock. */
export interface TurnWorld {
  /** `undefined`: there is no line to stand in (said elsewhere); only memory counts. */
  slots: Slots | undefined;
  measureMemory: () => MemorySnapshot;
  recordedJobs: () => RecordedJob[];
  /** Largest processes first, for the refusal. */
  largestProcesses: () => { pid: number; name: string; rssMb: number }[];
  /** Milliseconds, never going back. */
  nowMs: () => number;
  /** Milliseconds since 1970. */
  unixMs: () => number;
  sleep: (ms: number) => Promise<void>;
  /** Told once for each new reason to wait. */
  onWaiting: (reason: string) => void;
}

export type Turn =
  | { admitted: true; capMb: number; queuedMs: number; told?: string; place: SlotPlace | undefined }
  | { admitted: false; message: string; queuedMs: number };

const SHORTEST_POLL_MS = 20;
const LONGEST_POLL_MS = 250;
/** Without a job of ours that could end, waiting longer has no hope. */
const HOPELESS_MS = 30_000;
const SHOWN_PROCESSES = 3;

export const takeTurn = async (request: TurnRequest, limits: TurnLimits, world: TurnWorld): Promise<Turn> => {
  const began = world.nowMs();
  const since = world.unixMs();
  const describe = (cap_mb: number | null, reason: string | null): SlotDescription => ({
    pid: request.pid,
    command: request.command,
    kind: request.kind,
    since_ms: since,
    cap_mb,
    reason,
  });
  let place = world.slots?.join(limits.maxHeavyJobs, describe(null, "waits for its turn"));
  let hasSlot = place === undefined;
  let told = "";
  let hopelessSince: number | undefined;
  let pollMs = SHORTEST_POLL_MS;
  const waited = (): number => world.nowMs() - began;
  for (;;) {
    let reason: string;
    if (!hasSlot && place !== undefined) {
      const { taken, ahead } = place.tryTake();
      hasSlot = taken;
      reason = taken ? "" : slotReason(ahead, world.slots?.list().holders ?? []);
    } else {
      reason = "";
    }
    if (hasSlot) {
      const older = olderPending(world.slots?.list().holders ?? [], request.pid, since);
      const admission: Admission =
        older === undefined
          ? admit({ ...admissionInput(request, limits, world), memory: world.measureMemory() })
          : { admitted: false, hasHope: true, reason: `waits behind \`${older.command}\`, which waits for memory` };
      if (admission.admitted) {
        place?.describe(describe(admission.capMb, null));
        return {
          admitted: true,
          capMb: admission.capMb,
          queuedMs: waited(),
          place,
          ...(admission.told === undefined ? {} : { told: admission.told }),
        };
      }
      reason = admission.reason;
      if (admission.hasHope) hopelessSince = undefined;
      else hopelessSince ??= world.nowMs();
      if (hopelessSince !== undefined && world.nowMs() - hopelessSince >= HOPELESS_MS) {
        place?.leave();
        return { admitted: false, queuedMs: waited(), message: refusedForMemory(reason, world) };
      }
    }
    // Numbers that change are no news.
    const news = reason.replaceAll(/\d+/g, "N");
    if (news !== told) {
      told = news;
      place?.describe(describe(null, reason));
      world.onWaiting(reason);
    }
    if (waited() >= limits.queueTimeoutS * 1000) {
      const message = refusedForTime(limits.queueTimeoutS, reason, world);
      place?.leave();
      place = undefined;
      return { admitted: false, queuedMs: waited(), message };
    }
    await world.sleep(pollMs);
    pollMs = Math.min(pollMs * 1.5, LONGEST_POLL_MS);
  }
};

/** Jobs on record, and those that were admitted but have not started yet: their whole cap is to come. */
const admissionInput = (
  { askedMb, learnedPeakMb, pid }: TurnRequest,
  { reserveMb, minStartMb, jobMemoryMaxMb }: TurnLimits,
  { slots, recordedJobs }: TurnWorld,
) => {
  const recorded = recordedJobs();
  const owners = new Set(recorded.map(({ ownerPid }) => ownerPid));
  const starting = (slots?.list().holders ?? [])
    .filter((holder) => holder.pid !== pid && holder.cap_mb !== null && !owners.has(holder.pid))
    .map(({ cap_mb }) => ({ capMb: cap_mb ?? 0, nowMb: 0 }));
  return {
    jobs: [...recorded, ...starting],
    reserveMb,
    minStartMb,
    jobMemoryMaxMb,
    ...(askedMb === undefined ? {} : { askedMb }),
    ...(learnedPeakMb === undefined ? {} : { learnedPeakMb }),
  };
};

/**
 * A holder that came earlier and has no cap yet. It is served first, so two that hold slots can never be
 * promised the same memory.
 */
const olderPending = (holders: readonly SlotDescription[], pid: number, since: number): SlotDescription | undefined =>
  holders.find(
    (holder) =>
      holder.pid !== pid &&
      holder.cap_mb === null &&
      (holder.since_ms < since || (holder.since_ms === since && holder.pid < pid)),
  );

const slotReason = (ahead: number, holders: readonly SlotDescription[]): string => {
  const [holder] = holders;
  const running = holder === undefined ? "" : `: \`${holder.command}\` (pid ${holder.pid}) runs`;
  return ahead > 0 ? `waits for its turn, ${ahead} before it${running}` : `waits for its turn${running}`;
};

const minutes = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
};

const refusedForTime = (timeoutS: number, reason: string, { slots, recordedJobs, unixMs }: TurnWorld): string => {
  const holders = slots?.list().holders.filter(({ cap_mb }) => cap_mb !== null) ?? [];
  const recorded = recordedJobs();
  const named = holders.map((holder) => {
    const job = recorded.find(({ ownerPid }) => ownerPid === holder.pid);
    const memory = job === undefined ? `cap ${holder.cap_mb} MB` : `${job.nowMb} of ${job.capMb} MB`;
    return `\`${holder.command}\` (pid ${holder.pid}, for ${minutes(unixMs() - holder.since_ms)}, ${memory})`;
  });
  const who = named.length > 0 ? ` Running: ${named.join(", ")}.` : "";
  const why = reason.startsWith("waits for memory") ? `: it ${reason}` : "";
  return `refused after ${timeoutS} s in the queue${why}.${who} Nothing was run. Next: wait for that job to end, or stop it, then run the command again`;
};

const refusedForMemory = (reason: string, { largestProcesses }: TurnWorld): string => {
  const largest = largestProcesses()
    .slice(0, SHOWN_PROCESSES)
    .map(({ pid, name, rssMb }) => `${name} (pid ${pid}, ${rssMb} MB)`)
    .join(", ");
  return `refused: it ${reason}, and no job of ours runs whose end could free any. Largest processes: ${largest}. Nothing was run. Next: free memory, or ask for a cap of your own (--memory MB), then run the command again`;
};
