/** The `headroom` object: what is told about a job that has ended. Field names are stable. */
import type { EndedEvent } from "../job/events.js";
import { bytesToMb } from "../memory.js";
import { isIsolated, type Mode } from "../modes/mode.js";

export interface Victim {
  pid: number;
  name: string;
  rss_mb: number;
}

export interface HeadroomReport {
  /** The job's memory limit. */
  memory_cap_mb: number;
  /** Swap beyond it; −1 is unlimited. */
  swap_cap_mb: number;
  /** A kernel memory limit held the job. */
  isolated: boolean;
  mode: Mode;
  peak_mb?: number;
  peak_source?: "memory.peak" | "max_usage" | "sampled";
  /** How long it waited for its turn. */
  queued_s?: number;
  /** What was changed about the command to make it need less, one line a change. */
  lightened?: string[];
  /** The kernel, or headroom at the cap, killed something in the box. */
  oom_killed: boolean;
  killed_by?: "kernel" | "headroom" | "watchdog" | "timeout" | "user";
  victims?: Victim[];
  /** Processes of the job that were found outside the box. */
  escaped?: number;
  /** Processes still in the box after the command ended. */
  left_running?: number;
  /** What happened and what to do, where there is something to act on. */
  note?: string;
}

export interface JobLimits {
  memoryMb: number;
  swapMb: number;
  mode: Mode;
}

/** The facts, without a note. */
export const buildReport = ({ memoryMb, swapMb, mode }: JobLimits, ended: EndedEvent): HeadroomReport => {
  const killedBy = whoKilled(ended);
  return {
    memory_cap_mb: memoryMb,
    swap_cap_mb: swapMb,
    isolated: isIsolated(mode),
    mode,
    // A job that ended before the first sample has no known peak.
    ...(ended.peak && ended.peak.bytes > 0 && { peak_mb: bytesToMb(ended.peak.bytes), peak_source: ended.peak.source }),
    oom_killed: ended.oom_kills > 0 || ended.cap_kills > 0,
    ...(killedBy && { killed_by: killedBy }),
    ...(ended.victims.length > 0 && {
      victims: ended.victims.map(({ pid, name, rss_bytes }) => ({ pid, name, rss_mb: bytesToMb(rss_bytes) })),
    }),
    ...(ended.escaped > 0 && { escaped: ended.escaped }),
    ...(ended.left_running.length > 0 && { left_running: ended.left_running.length }),
  };
};

const whoKilled = (ended: EndedEvent): HeadroomReport["killed_by"] => {
  if (ended.cap_kills > 0) return "headroom";
  if (ended.oom_kills > 0) return "kernel";
  // Told to end, it may have ended well all the same.
  if (ended.watchdog && exitCodeOf(ended) !== 0) return "watchdog";
  const signal = ended.ending !== null && "signal" in ended.ending ? ended.ending.signal : null;
  return signal !== null && signal === ended.ended_by_signal ? "user" : undefined;
};

/** The exit code a shell would show: the command's own, or 128 and the signal's number. */
export const exitCodeOf = ({ ending }: Pick<EndedEvent, "ending">): number => {
  if (ending === null) return 1;
  return "signal" in ending ? 128 + ending.signal : ending.exit_code;
};
