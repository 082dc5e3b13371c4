/** What the next daemon must know when this one is gone: calls that run on, notes that nobody has read. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readFacts, type CallFacts } from "./call.js";

const FOLDER = "calls";
const ENDING = ".call.json";
const NOTES_FILE = "notes.json";
const LARGEST_BYTES = 65_536;

/** In a runtime directory that only this user can enter. A disk that is full costs the memory of a call, no more. */
export class CallStore {
  readonly #folder: string;

  constructor(runtimeDir: string) {
    this.#folder = join(runtimeDir, FOLDER);
  }

  keep(facts: CallFacts): void {
    if (facts.job !== null) this.#write(`${facts.job}${ENDING}`, facts);
  }

  forget(job: string): void {
    rmSync(join(this.#folder, `${job}${ENDING}`), { force: true });
  }

  /** What a daemon before this one has kept. */
  calls(): CallFacts[] {
    return this.#names()
      .filter((name) => name.endsWith(ENDING))
      .map((name) => readFacts(this.#read(name)))
      .filter((facts) => facts !== undefined);
  }

  keepNotes(notes: [string, string[]][]): void {
    if (notes.length > 0) this.#write(NOTES_FILE, notes);
    else rmSync(join(this.#folder, NOTES_FILE), { force: true });
  }

  notes(): [string, string[]][] {
    const read = this.#read(NOTES_FILE);
    if (!Array.isArray(read)) return [];
    return read.filter(
      (entry): entry is [string, string[]] =>
        Array.isArray(entry) &&
        typeof entry[0] === "string" &&
        Array.isArray(entry[1]) &&
        entry[1].every((note) => typeof note === "string"),
    );
  }

  #names(): string[] {
    try {
      return readdirSync(this.#folder);
    } catch {
      return [];
    }
  }

  #read(name: string): unknown {
    try {
      const path = join(this.#folder, name);
      const stat = statSync(path);
      if (!stat.isFile() || stat.size > LARGEST_BYTES) return undefined;
      return JSON.parse(readFileSync(path, "utf8"));
    } catch {
      return undefined;
    }
  }

  #write(name: string, value: unknown): void {
    const path = join(this.#folder, name);
    try {
      mkdirSync(this.#folder, { mode: 0o700, recursive: true });
      writeFileSync(`${path}.new`, JSON.stringify(value), { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch {
      // See above.
    }
  }
}
