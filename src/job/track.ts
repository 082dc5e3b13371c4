/** Boxes what another process starts: a box first, then a search for the shell that belongs in it. */
import { jobOomScoreAdj } from "../admission/oom-score.js";
import type { PoolLimits } from "../admission/pool.js";
import { mbToBytes } from "../memory.js";
import type { UsableMode } from "../modes/choose.js";
import type { Mode } from "../modes/mode.js";
import type { Native } from "../native.js";
import { followJob, type EndedEvent, type JobEvent } from "./events.js";

export interface TrackRequest {
  /** The process that will start the shell. */
  agentPid: number;
  /** What the shell's command line will contain; empty where that is not known. */
  texts: string[];
  /** The command as people read it, secrets masked. */
  text: string;
  kind: string;
  cwd: string;
  memoryMb: number;
  /** −1 is unlimited. */
  swapMb: number;
  pool: PoolLimits;
  runtimeDir: string;
  onEvent?: (event: JobEvent) => void;
}

export interface TrackedJob {
  id: string;
  mode: Mode;
  /** The call is over: nobody is looked for any more. The job goes on as long as its shell does. */
  finish(): void;
  /** Settles when the shell has ended, or was never found. */
  ended: Promise<EndedEvent | undefined>;
}

export interface Tracking {
  /** `undefined`: no box could be made; the command goes on without one. */
  job: TrackedJob | undefined;
  /** What went wrong on the way, one line each. */
  warnings: string[];
}

/** Tries the candidates in their order. */
export const trackJob = (native: Native, candidates: readonly UsableMode[], request: TrackRequest): Tracking => {
  const warnings: string[] = [];
  for (const [index, { mode, base }] of candidates.entries()) {
    const { memoryMb, swapMb, pool, agentPid, texts, runtimeDir, text, kind, cwd } = request;
    const start = native.trackJob(
      {
        mode,
        base,
        memoryBytes: mbToBytes(memoryMb),
        swapBytes: swapMb < 0 ? null : mbToBytes(swapMb),
        poolMemoryBytes: mbToBytes(pool.memoryMb),
        poolSwapBytes: pool.swapMb < 0 ? null : mbToBytes(pool.swapMb),
      },
      {
        agentPid,
        texts,
        cwd,
        oomScoreAdj: jobOomScoreAdj(native.oomScoreAdjOf(agentPid) ?? 0),
        runtimeDir,
        commandText: text,
        kind,
      },
    );
    if (start.recordProblem) warnings.push(`the job is not on record: ${start.recordProblem}`);
    if (start.id !== null && start.eventsFd !== null) {
      const { id } = start;
      const job = {
        id,
        mode,
        finish: () => native.finishTracking(id),
        ended: followJob(start.eventsFd, request.onEvent),
      };
      return { job, warnings };
    }
    const next = candidates[index + 1];
    warnings.push(`mode ${mode} failed (${start.message})${next === undefined ? "" : `; using ${next.mode}`}`);
  }
  return { job: undefined, warnings };
};
