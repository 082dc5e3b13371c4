/** Waits for a job's turn: a slot, then memory. First come, first served, for both. */
import type { MemorySnapshot } from "../memory.js";
import { admit, type Admission, type RunningJob } from "./admit.js";
import type { SlotDescription, SlotPlace, Slots, SlotUser } from "./slots.js";

/** A job on record, as far as admission goes. */
export interface RecordedJob extends RunningJob {
  /** The process that started it; `null` once that is gone, and its number perhaps another one's. */
  ownerPid: number | null;
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
  /** Milliseconds, never going back, the same clock for every process. */
  nowMs: () => number;
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
  const describe = (cap_mb: number | null, reason: string | null): SlotDescription => ({
    pid: request.pid,
    command: request.command,
    kind: request.kind,
    since_ms: began,
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
      const older = olderPending(world.slots?.list().holders ?? [], request.pid, began);
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
 * promised the same memory. One that is stopped is passed over: it measures anew when it goes on.
 */
const olderPending = (
  holders: readonly SlotUser[],
  pid: number,
  since: number,
): (SlotUser & { isKnown: true }) | undefined =>
  holders
    .filter((holder) => holder.isKnown)
    .find(
      (holder) =>
        holder.pid !== pid &&
        holder.cap_mb === null &&
        !holder.isStopped &&
        (holder.since_ms < since || (holder.since_ms === since && holder.pid < pid)),
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
    const job = holder.pid === null ? undefined : recorded.find(({ ownerPid }) => ownerPid === holder.pid);
    if (holder.since_ms !== null) facts.push(`for ${minutes(nowMs() - holder.since_ms)}`);
    if (job !== undefined) facts.push(`${job.nowMb} of ${job.capMb} MB`);
    else if (holder.cap_mb !== null) facts.push(`cap ${holder.cap_mb} MB`);
    return facts.length > 0 ? `${what} (${facts.join(", ")})` : what;
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
