/** What the watchdog's thread tells. The wire form is defined in crates/headroom-core/src/watchdog/watch.rs. */
import { bytesToWholeMb } from "../memory.js";

/** Why it acted: too little memory, or somebody waits for memory. */
export type WatchdogCause = "available" | { stalled: number } | { refaults: number };

/** What it left beside a job's record. */
export interface WatchdogMark {
  handling: "paused" | "stopped";
  cause: WatchdogCause;
  available_bytes: number;
  critical_bytes: number;
}

export interface WatchdogActed {
  event: "acted";
  action: "pause" | "resume" | "terminate" | "kill";
  /** It only says what it would have done. */
  observed: boolean;
  job: string;
  command: string;
  kind: string;
  cause: WatchdogCause | null;
  available_bytes: number;
  critical_bytes: number;
}

export type WatchdogEvent =
  | { event: "guarding"; locked: boolean }
  /** Nobody can have the lock. */
  | { event: "unable"; reason: string }
  | WatchdogActed
  | { event: "pushed_out"; job: string; bytes: number }
  | { event: "danger"; cause: WatchdogCause; available_bytes: number; critical_bytes: number };

type Measured = Pick<WatchdogMark, "available_bytes" | "critical_bytes"> & { cause: WatchdogCause | null };

/** What was the matter, as the second half of a sentence. */
export const describeCause = ({ cause, available_bytes, critical_bytes }: Measured): string => {
  const left = `only ${bytesToWholeMb(available_bytes)} MB of memory left`;
  if (cause !== null && typeof cause === "object") {
    return "stalled" in cause
      ? `waited for memory in ${cause.stalled} % of the last second, with ${bytesToWholeMb(available_bytes)} MB left`
      : `read ${cause.refaults} pages a second again that it had dropped, with ${left}`;
  }
  return `had ${left} (the line is ${bytesToWholeMb(critical_bytes)} MB)`;
};
