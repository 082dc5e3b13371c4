/** Keeps a watchdog for as long as this process has a job. */
import { readJsonLines } from "../json-lines.js";
import { mbToBytes } from "../memory.js";
import type { Native } from "../native.js";
import type { WatchdogEvent } from "./events.js";

/** Waiting for memory in this part of a second is more than a moment's squeeze. */
const STALLED_PERCENT = 40;
/** 8 MB a second from a card or disk that does some thousand reads a second: hardly anything else gets through. */
const REFAULTS_PER_S = 2000;
/** An older job may well take that long; an agent that waits for the paused one should not wait much longer. */
const PAUSE_LIMIT_MS = 60_000;

export interface GuardRequest {
  runtimeDir: string;
  criticalMb: number;
  reserveMb: number;
  /** Nothing is done, only told. */
  observe: boolean;
  /** The agent, when it is in another cgroup than this process. */
  agentPid: number | null;
  onEvent: (event: WatchdogEvent) => void;
}

export interface Guard {
  /** Ends the watchdog; settles when everything it told has been heard. */
  stop: () => Promise<void>;
}

/** Throws where the addon cannot start it. */
export const startGuard = (native: Native, request: GuardRequest): Guard => {
  const watchdog = native.Watchdog.start(request.runtimeDir, {
    criticalBytes: mbToBytes(request.criticalMb),
    reserveBytes: mbToBytes(request.reserveMb),
    stalledPercent: STALLED_PERCENT,
    refaultsPerS: REFAULTS_PER_S,
    pauseLimitMs: PAUSE_LIMIT_MS,
    observe: request.observe,
    agentPid: request.agentPid,
  });
  const heard = readJsonLines<WatchdogEvent>(watchdog.eventsFd, request.onEvent);
  return {
    stop: async () => {
      watchdog.stop();
      await heard;
    },
  };
};
