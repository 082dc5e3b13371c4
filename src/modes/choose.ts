/** Chooses the mode of a job from what was found out about each. */
import { HeadroomError } from "../errors.js";
import type { Native } from "../native.js";
import { obstacleFix } from "./fix.js";
import { isMode, type Mode } from "./mode.js";

/** A mode that works, and where its boxes are made. */
export interface UsableMode {
  mode: Mode;
  /** The cgroup below which boxes are made; `null` in `userspace` and `off`. */
  base: string | null;
}

/** A mode that does not work here. */
export interface UnusableMode {
  mode: Mode;
  obstacle: string;
  detail: string;
  /** What to type or change to get it, where that is known. */
  fix: string | undefined;
}

export interface Modes {
  /** Usable ones, best first; never empty, because `userspace` always works on Linux. */
  usable: UsableMode[];
  /** The others, best first. */
  unusable: UnusableMode[];
}

/** Tries every mode for real (about 2 ms). */
export const probeModes = (native: Native): Modes => {
  const modes: Modes = { usable: [], unusable: [] };
  const verdicts = native.probeModes();
  const hasV1 = verdicts.some(({ mode, obstacle }) => mode === "cgroup1" && obstacle !== "not-mounted");
  for (const { mode, available, base, obstacle, detail } of verdicts) {
    if (!isMode(mode)) continue;
    if (available) {
      modes.usable.push({ mode, base: base ?? null });
    } else {
      const word = obstacle ?? "failed";
      modes.unusable.push({ mode, obstacle: word, detail: detail ?? "", fix: obstacleFix(mode, word, hasV1) });
    }
  }
  return modes;
};

/** What can be done, in the order to try: from the mode asked for downwards, or from the best. `off` is never fallen back to. */
export const candidates = (modes: Modes, wanted: Mode | undefined): UsableMode[] => {
  if (wanted === undefined) return modes.usable.filter(({ mode }) => mode !== "off");
  const start = modes.usable.findIndex(({ mode }) => mode === wanted);
  if (start >= 0) return modes.usable.slice(start).filter(({ mode }) => mode === wanted || mode !== "off");
  const reason = modes.unusable.find(({ mode }) => mode === wanted);
  throw new HeadroomError(
    "E_MODE",
    `mode ${wanted} cannot be used here: ${reason?.detail ?? "unknown"}`,
    reason?.fix === undefined ? {} : { fix: reason.fix },
  );
};

/** Obstacles that mean that something is wrong, rather than not there. */
const FAULTS: readonly string[] = ["no-answer", "unsafe-bus"];

/** One line for each better mode that should work and does not. */
export const faults = ({ usable, unusable }: Modes): string[] =>
  unusable
    .filter(({ obstacle }) => FAULTS.includes(obstacle))
    .map(({ mode, detail }) => `mode ${mode} cannot be used: ${detail}; using ${usable[0]?.mode ?? "none"}`);
