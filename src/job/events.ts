/** Reads the lines that a job's native thread writes. The wire form is defined in crates/headroom-core/src/job/events.rs. */
import { readJsonLines } from "../json-lines.js";
import type { WatchdogMark } from "../watchdog/events.js";

/** A process that was killed for lack of memory. */
export interface VictimEvent {
  pid: number;
  name: string;
  rss_bytes: number;
}

/** The end of a job's command, in the addon's units. */
export interface EndedEvent {
  ending: { exit_code: number } | { signal: number } | null;
  peak: { bytes: number; source: "memory.peak" | "max_usage" | "sampled" } | null;
  /** The job came up against its own cap. Kills without it mean that memory ran out above the box. */
  cap_hit: boolean;
  oom_kills: number;
  cap_kills: number;
  victims: VictimEvent[];
  left_running: VictimEvent[];
  escaped: number;
  ended_by_signal: number | null;
  /** Somebody stopped systemd's unit that held the job. */
  pool_stopped: boolean;
  /** The watchdog stopped it. */
  watchdog?: WatchdogMark | null;
  took_ms: number;
}

export type JobEvent =
  /** A command that an agent started is in its box; `scoped` when it is in a unit of its own and was left there. */
  | { event: "entered"; pid: number; scoped: boolean; moved: number }
  /** It runs on without a box, or (`pid` null) was never seen. */
  | { event: "not_entered"; pid: number | null; reason: string }
  | ({ event: "cap_kill" } & VictimEvent)
  | { event: "oom_kill"; count: number }
  /** The watchdog, maybe another process's, lets the job stand still, or go on. */
  | { event: "paused"; paused: boolean }
  | ({ event: "ended" } & EndedEvent);

/**
 * Follows a job to its end. The descriptor belongs to this function from now on. `undefined` when the
 * stream ends without the last event, which only a fault of the addon can cause.
 */
export const followJob = async (
  eventsFd: number,
  onEvent: (event: JobEvent) => void = () => {},
): Promise<EndedEvent | undefined> => {
  let ended: EndedEvent | undefined;
  await readJsonLines<JobEvent>(eventsFd, (event) => {
    if (event.event === "ended") ended = event;
    onEvent(event);
  });
  return ended;
};
