/** Waits for a job's turn: a slot, then memory. First come, first served, for both. */
import type { MemorySnapshot } from "../memory.js";
import { admit, type Admission, type RunningJob } from "./admit.js";
import type { SlotDescription, SlotPlace, Slots, SlotUser } from "./slots.js";

/** A job on record, as far as admission goes. */
export interface RecordedJob extends RunningJob {
  id: string;
  /** The command, secrets masked. */
  command: string;
  /** Its turn is not over, and the lock of its slot died with its starter. */
  hasLostSlot: boolean;
}

export interface TurnRequest {
  /** The command, secrets masked. */
  command: string;
  kind: string;
  /** The process that asks, and which of its requests this is. */
  pid: number;
  id: string;
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
  /** Milliseconds, never going back, the same clock for every process. */
  nowMs: () => number;
  sleep: (ms: number) => Promise<void>;
  /** Told once for each new reason to wait. */
  onWaiting: (reason: string) => void;
}

/** A slot that is ours. */
export interface Held {
  /** The job that it was taken for is on record now. */
  started(job: string): void;
  /** Gives it up. More than once is fine. */
  leave(): void;
}

export type Turn =
  | { admitted: true; capMb: number; queuedMs: number; told?: string; place: Held | undefined }
  | { admitted: false; message: string; queuedMs: number };

const SHORTEST_POLL_MS = 20;
const LONGEST_POLL_MS = 250;
/** Without a job of ours that could end, waiting longer has no hope. */
const HOPELESS_MS = 30_000;
const SHOWN_PROCESSES = 3;

export const takeTurn = async (request: TurnRequest, limits: TurnLimits, world: TurnWorld): Promise<Turn> => {
  const began = world.nowMs();
  const describe = (cap_mb: number | null, reason: string | null, job: string | null = null): SlotDescription => ({
    pid: request.pid,
    id: request.id,
    command: request.command,
    kind: request.kind,
    since_ms: began,
    cap_mb,
    reason,
    job,
  });
  const place = world.slots?.join(limits.maxHeavyJobs, describe(null, "waits for its turn"));
  try {
    return await waitInLine(request, limits, world, { began, place, describe });
  } catch (error) {
    // Called off while it waited, or the line cannot be kept.
    place?.leave();
    throw error;
  }
};

interface Line {
  began: number;
  place: SlotPlace | undefined;
  describe: (capMb: number | null, reason: string | null, job?: string | null) => SlotDescription;
}

const waitInLine = async (
  request: TurnRequest,
  limits: TurnLimits,
  world: TurnWorld,
  { began, place, describe }: Line,
): Promise<Turn> => {
  let hasSlot = place === undefined;
  let told = "";
  let hopelessSince: number | undefined;
  let pollMs = SHORTEST_POLL_MS;
  const waited = (): number => world.nowMs() - began;
  for (;;) {
    let reason = "";
    if (!hasSlot && place !== undefined) {
      const { taken, ahead } = place.tryTake();
      hasSlot = taken;
      if (!taken) reason = slotReason(ahead, world.slots?.list().holders ?? []);
    }
    if (hasSlot) {
      const admission = admitNow(request, limits, world, began);
      if (admission.admitted) {
        const { capMb } = admission;
        place?.describe(describe(capMb, null));
        const held = place && {
          started: (job: string) => place.describe(describe(capMb, null, job)),
          leave: () => place.leave(),
        };
        const note = admission.told === undefined ? {} : { told: admission.told };
        return { admitted: true, capMb, queuedMs: waited(), place: held, ...note };
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
      return { admitted: false, queuedMs: waited(), message };
    }
    await world.sleep(pollMs);
    pollMs = Math.min(pollMs * 1.5, LONGEST_POLL_MS);
  }
};

/** Whether one that has a slot may start. */
const admitNow = (request: TurnRequest, limits: TurnLimits, world: TurnWorld, began: number): Admission => {
  const holders = world.slots?.list().holders ?? [];
  const older = olderPending(holders, request.id, began);
  if (older !== undefined) {
    return { admitted: false, hasHope: true, reason: `waits behind \`${older.command}\`, which waits for memory` };
  }
  const recorded = world.recordedJobs();
  const orphans = recorded.filter(({ hasLostSlot }) => hasLostSlot);
  const [orphan] = orphans;
  const others = holders.filter(({ id }) => id !== request.id).length;
  if (world.slots !== undefined && orphan !== undefined && others + orphans.length >= limits.maxHeavyJobs) {
    const reason = `waits for its turn: \`${orphan.command}\` runs on although its starter is gone`;
    return { admitted: false, hasHope: true, reason };
  }
  return admit({ ...admissionInput(request, limits, recorded, holders), memory: world.measureMemory() });
};

/** Jobs on record, and those that were admitted but have not started yet: their whole cap is to come. */
const admissionInput = (
  { askedMb, learnedPeakMb, id }: TurnRequest,
  { reserveMb, minStartMb, jobMemoryMaxMb }: TurnLimits,
  recorded: readonly RecordedJob[],
  holders: readonly SlotUser[],
) => {
  const starting = holders
    .filter((holder) => holder.id !== id && holder.cap_mb !== null && holder.job === null)
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
 * promised the same memory. One that is stopped is passed over: it measures anew when it goes on.
 */
const olderPending = (
  holders: readonly SlotUser[],
  id: string,
  since: number,
): (SlotUser & { isKnown: true }) | undefined =>
  holders
    .filter((holder) => holder.isKnown)
    .find(
      (holder) =>
        holder.id !== id &&
        holder.cap_mb === null &&
        !holder.isStopped &&
        (holder.since_ms < since || (holder.since_ms === since && holder.id < id)),
    );

/** Named as far as it is known. A number that may be another process's by now is none to give to people. */
const nameOf = ({ command, pid, isAlive, isStopped }: SlotUser): { what: string; facts: string[] } => ({
  what: command === null ? "a job whose name could not be written down" : `\`${command}\``,
  facts: [...(isAlive && pid !== null ? [`pid ${pid}`] : []), ...(isStopped ? ["stopped"] : [])],
});

const slotReason = (ahead: number, holders: readonly SlotUser[]): string => {
  const [holder] = holders;
  const { what, facts } = holder === undefined ? { what: "", facts: [] } : nameOf(holder);
  const running = what === "" ? "" : `: ${what}${facts.length > 0 ? ` (${facts.join(", ")})` : ""} runs`;
  return ahead > 0 ? `waits for its turn, ${ahead} before it${running}` : `waits for its turn${running}`;
};

const minutes = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
};

const refusedForTime = (timeoutS: number, reason: string, { slots, recordedJobs, nowMs }: TurnWorld): string => {
  const holders = slots?.list().holders.filter(({ isKnown, cap_mb }) => !isKnown || cap_mb !== null) ?? [];
  const recorded = recordedJobs();
  const named = holders.map((holder) => {
    const { what, facts } = nameOf(holder);
    const job = holder.job === null ? undefined : recorded.find(({ id }) => id === holder.job);
    if (holder.since_ms !== null) facts.push(`for ${minutes(nowMs() - holder.since_ms)}`);
    if (job !== undefined) facts.push(`${job.nowMb} of ${job.capMb} MB`);
    else if (holder.cap_mb !== null) facts.push(`cap ${holder.cap_mb} MB`);
    return facts.length > 0 ? `${what} (${facts.join(", ")})` : what;
  });
  const who = named.length > 0 ? ` Running: ${named.join(", ")}.` : "";
  // Who holds the slots is named anyway.
  const why = reason.startsWith("waits for memory") || named.length === 0 ? `: it ${reason}` : "";
  return `refused after ${timeoutS} s in the queue${why}.${who} Nothing was run. Next: wait for that job to end, or stop it, then run the command again`;
};

const refusedForMemory = (reason: string, { largestProcesses }: TurnWorld): string => {
  const largest = largestProcesses()
    .slice(0, SHOWN_PROCESSES)
    .map(({ pid, name, rssMb }) => `${name} (pid ${pid}, ${rssMb} MB)`)
    .join(", ");
  return `refused: it ${reason}, and no job of ours runs whose end could free any. Largest processes: ${largest}. Nothing was run. Next: free memory, or ask for a cap of your own (--memory MB), then run the command again`;
};
