/** What would happen to a command, without running it. */
import { classify, type Classification, type Match } from "../classify/classify.js";
import type { Patterns } from "../classify/patterns.js";
import { diskFiles } from "../classify/scripts/files.js";
import { lighten } from "../lighten/lighten.js";
import { heapMb, workersFor } from "../lighten/limits.js";
import type { Mode } from "../modes/mode.js";
import type { Kind } from "../tools/schema.js";

export interface ExplainOptions {
  /** Where the text would run; without it no script is looked up. */
  cwd?: string | undefined;
  cpus: number;
  capMb: number;
  swapMb: number;
  mode: Mode;
  /** The environment that the text would run in, as far as it is known. */
  environment?: Readonly<Record<string, string | undefined>>;
  patterns?: Patterns;
  /** False where lightening is switched off. */
  lightens?: boolean;
  /** What a command needed before, MiB; `undefined` when that is not known. */
  learnedPeakMb?: (cwd: string, classified: Classification) => number | undefined;
}

/** Sizes in MiB. */
export interface Explanation {
  command: string;
  heavy: boolean;
  kind: Kind | null;
  matches: Match[];
  /** The cap that it would get now. */
  cap_mb: number;
  swap_cap_mb: number;
  /** The heap cap for Node; `null` where V8's own default is as low. */
  heap_mb: number | null;
  /** Workers that the cap affords, 768 MB each. */
  workers: number;
  /** The text that would run; equal to `command` when nothing changes. */
  lightened: string;
  /** One line a change. */
  changes: string[];
  /** False when nothing of it would run in a box: light commands, and work that leaves the process tree. */
  capped: boolean;
  /** What it needed before; `null` when that is not known. */
  learned_peak_mb: number | null;
  mode: Mode;
  /** Why nothing may be edited, when that is so. */
  problem?: string;
}

export const explain = (command: string, options: ExplainOptions): Explanation => {
  const classified = classify(command, {
    cwd: options.cwd,
    ...(options.cwd === undefined ? {} : { files: diskFiles }),
    ...(options.patterns === undefined ? {} : { patterns: options.patterns }),
  });
  const { capMb, cpus } = options;
  const result =
    options.lightens === false
      ? { text: command, changes: [] }
      : lighten(command, classified, {
          capMb,
          cpus,
          ...(options.environment === undefined ? {} : { environment: options.environment }),
        });
  return {
    command,
    heavy: classified.heavy,
    kind: classified.kind,
    matches: classified.matches,
    cap_mb: capMb,
    swap_cap_mb: options.swapMb,
    heap_mb: heapMb({ capMb, cpus }) ?? null,
    workers: workersFor({ capMb, cpus }),
    lightened: result.text,
    changes: result.changes,
    capped: isCapped(classified),
    learned_peak_mb: learnedPeak(classified, options) ?? null,
    mode: options.mode,
    ...(classified.problem === undefined ? {} : { problem: classified.problem }),
  };
};

const learnedPeak = (classified: Classification, { cwd, learnedPeakMb }: ExplainOptions): number | undefined =>
  classified.heavy && cwd !== undefined ? learnedPeakMb?.(cwd, classified) : undefined;

const isCapped = ({ heavy, matches, runs }: Classification): boolean =>
  heavy && (matches.some(({ kind }) => kind === "custom") || runs.some(({ elsewhere }) => !elsewhere));
