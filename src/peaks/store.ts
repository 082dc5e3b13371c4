/**
 * Learned peaks: what a command has needed before, in `peaks.json` of the data directory. Written as a whole
 * and renamed into place; two writers at once lose at most one sample, never the file.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { prepareDataDirectory } from "../events/log.js";
import { codeOf, fileProblem } from "../files.js";

export interface PeakSample {
  /** MiB. */
  peak_mb: number;
  /** It was killed at its cap, so it needs more than that. */
  killed: boolean;
  /** Milliseconds since 1970. */
  at: number;
}

const isSample = (value: unknown): value is PeakSample => {
  if (typeof value !== "object" || value === null) return false;
  const { peak_mb, killed, at } = value as Partial<Record<keyof PeakSample, unknown>>;
  return typeof peak_mb === "number" && peak_mb >= 0 && typeof killed === "boolean" && typeof at === "number";
};

/** The entries of a store; `undefined` when the value is none. Written out: every `run` reads it. */
const entriesOf = (value: unknown): Record<string, PeakSample[]> | undefined => {
  if (typeof value !== "object" || value === null || !("version" in value) || value.version !== 1) return undefined;
  const entries: unknown = "entries" in value ? value.entries : undefined;
  if (typeof entries !== "object" || entries === null || Array.isArray(entries)) return undefined;
  const isWhole = Object.values(entries).every((samples) => Array.isArray(samples) && samples.every(isSample));
  return isWhole ? (entries as Record<string, PeakSample[]>) : undefined;
};

/** What is known about a command. */
export interface LearnedPeak {
  /** The largest of the last peaks, MiB. */
  peak_mb: number;
  samples: number;
  /** How many of them were killed at their cap. */
  killed: number;
}

const FILE = "peaks.json";
const KEPT_SAMPLES = 5;
const KEPT_ENTRIES = 500;
const LARGEST_BYTES = 2 * 1_048_576;

export class PeakStore {
  readonly #directory: string;
  readonly #path: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.#path = join(directory, FILE);
  }

  /** `undefined` when nothing is known. Never throws. */
  recall(project: string, command: string): LearnedPeak | undefined {
    const { entries } = this.#read();
    const samples = entries[keyOf(project, command)] ?? [];
    if (samples.length === 0) return undefined;
    return {
      peak_mb: Math.max(...samples.map(({ peak_mb }) => peak_mb)),
      samples: samples.length,
      killed: samples.filter(({ killed }) => killed).length,
    };
  }

  /** A text when it could not be kept, or when what was there had to go. Never throws. */
  remember(project: string, command: string, sample: PeakSample): string | undefined {
    const unusable = prepareDataDirectory(this.#directory);
    if (unusable !== undefined) return unusable;
    const { entries, fault } = this.#read();
    // Whoever cannot read it now may be able to later.
    if (fault === "unread") return `${this.#path} cannot be read now: this peak is not kept`;
    const key = keyOf(project, command);
    const samples = [...(entries[key] ?? []), sample].slice(-KEPT_SAMPLES);
    // The one that was used last stands last.
    delete entries[key];
    const kept = Object.fromEntries([...Object.entries(entries), [key, samples]].slice(-KEPT_ENTRIES));
    const temporary = `${this.#path}.${process.pid}`;
    try {
      // Of a process of the same number that died while it wrote.
      rmSync(temporary, { force: true });
      writeFileSync(temporary, JSON.stringify({ version: 1, entries: kept }), { mode: 0o600, flag: "wx" });
      const problem = fault === "no store" ? this.#setAside() : undefined;
      renameSync(temporary, this.#path);
      return problem;
    } catch (error) {
      try {
        rmSync(temporary, { force: true });
      } catch {
        // It is told below what is wrong there.
      }
      return fileProblem(this.#path, "written", error);
    }
  }

  /** What is no store is kept beside the new one, once. */
  #setAside(): string {
    try {
      renameSync(this.#path, `${this.#path}.bad`);
      return `${this.#path} was no store of peaks: it is now ${FILE}.bad, and a new one was begun; delete it if you do not need it`;
    } catch {
      return `${this.#path} was no store of peaks, and was overwritten`;
    }
  }

  #read(): { entries: Record<string, PeakSample[]>; fault?: "no store" | "unread" } {
    try {
      const fd = openSync(this.#path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const stat = fstatSync(fd);
        if (!stat.isFile() || stat.size > LARGEST_BYTES) return { entries: {}, fault: "no store" };
        const entries = parseEntries(readFileSync(fd, "utf8"));
        return entries === undefined ? { entries: {}, fault: "no store" } : { entries };
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      if (codeOf(error) === "ENOENT") return { entries: {} };
      // A link, a socket, a file of somebody else's are none; out of descriptors or memory is another matter.
      return {
        entries: {},
        fault: ["ELOOP", "ENXIO", "EACCES", "EPERM"].includes(codeOf(error)) ? "no store" : "unread",
      };
    }
  }
}

const parseEntries = (text: string): Record<string, PeakSample[]> | undefined => {
  try {
    return entriesOf(JSON.parse(text));
  } catch {
    return undefined;
  }
};

const keyOf = (project: string, command: string): string => `${project}\n${command}`;
