/** Reads the lines that a job's native thread writes. The wire form is defined in crates/headroom-core/src/job/events.rs. */
import { Socket } from "node:net";

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
  /** The watchdog stopped it; what the machine had left then. */
  watchdog?: { available_mb: number } | null;
  took_ms: number;
}

export type JobEvent =
  | ({ event: "cap_kill" } & VictimEvent)
  | { event: "oom_kill"; count: number }
  | ({ event: "ended" } & EndedEvent);

/**
 * Follows a job to its end. The descriptor belongs to this function from now on. `undefined` when the
 * stream ends without the last event, which only a fault of the addon can cause.
 */
export const followJob = async (
  eventsFd: number,
  onEvent: (event: JobEvent) => void = () => {},
): Promise<EndedEvent | undefined> => {
  const socket = new Socket({ fd: eventsFd, readable: true, writable: false });
  socket.setEncoding("utf8");
  let rest = "";
  let ended: EndedEvent | undefined;
  try {
    for await (const chunk of socket) {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const event = JSON.parse(line) as JobEvent;
        if (event.event === "ended") ended = event;
        onEvent(event);
      }
    }
  } catch {
    // A broken socket ends the stream; what has been read counts.
  }
  return ended;
};
