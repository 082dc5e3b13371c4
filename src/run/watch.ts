/** The watchdog of a `run`: what it does goes to the event log. */
import { appendEvent, dataDirectory, type HeadroomEvent } from "../events/log.js";
import { bytesToMb, bytesToWholeMb } from "../memory.js";
import type { Native } from "../native.js";
import type { ResolvedSettings } from "../settings/auto.js";
import { describeCause, type WatchdogEvent } from "../watchdog/events.js";
import { startGuard, type Guard } from "../watchdog/guard.js";

export interface RunWatch {
  native: Native;
  runtimeDir: string | null;
  resolved: ResolvedSettings;
  environment: Readonly<Record<string, string | undefined>>;
  observe: boolean;
  /** The limits of its own job's box are not the machine's, and that job is among those it would act on. */
  isInsideJob: boolean;
  /** The agent, when it is not in the cgroup of this process. */
  agentPid?: number | null;
  warn: (line: string) => void;
}

const NO_GUARD: Guard = { stop: async () => {} };

/** A watchdog that cannot be had is told, and is no reason not to run. */
export const watchRun = (run: RunWatch): Guard => {
  const { native, runtimeDir, resolved, observe, warn } = run;
  // Without records it could not know the jobs; that they are missing has been told.
  if (runtimeDir === null || run.isInsideJob) return NO_GUARD;
  const directory = dataDirectory(run.environment);
  try {
    return startGuard(native, {
      runtimeDir,
      criticalMb: resolved.critical_mb,
      reserveMb: resolved.reserve_mb,
      observe,
      agentPid: run.agentPid ?? null,
      onEvent: (event) => {
        if (event.event === "unable") warn(`no watchdog: ${event.reason}`);
        const logged = toLog(event, observe);
        if (logged !== undefined) appendEvent(directory, { pid: process.pid, ...logged });
      },
    });
  } catch (error) {
    warn(`no watchdog: ${error instanceof Error ? error.message : String(error)}`);
    return NO_GUARD;
  }
};

const WORDS = { pause: "paused", resume: "resumed", terminate: "told to end", kill: "killed" } as const;

const toLog = (event: WatchdogEvent, observe: boolean): Omit<HeadroomEvent, "pid"> | undefined => {
  switch (event.event) {
    case "acted": {
      const { action, job, command, kind, available_bytes, observed } = event;
      const facts = { job, command, kind, available_mb: bytesToWholeMb(available_bytes) };
      if (observed) {
        return {
          event: "observe",
          ...facts,
          reason: `the watchdog would have acted: the machine ${describeCause(event)}`,
        };
      }
      const why = action === "resume" ? "there is room again" : `the machine ${describeCause(event)}`;
      return { event: "watchdog", action, ...facts, reason: `${WORDS[action]}: ${why}` };
    }
    case "pushed_out": {
      const { job, bytes } = event;
      if (bytes === 0) return undefined;
      return { event: "watchdog", action: "push_out", job, reason: `pushed ${bytesToMb(bytes)} MB out to swap` };
    }
    case "danger": {
      if (!observe) return undefined;
      const reason = `the watchdog would have looked for a job to stop: the machine ${describeCause(event)}`;
      return { event: "observe", available_mb: bytesToWholeMb(event.available_bytes), reason };
    }
    case "guarding":
    case "unable":
      return undefined;
  }
};
