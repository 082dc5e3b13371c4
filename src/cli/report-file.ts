/** The file of `--report`. Checked before the job starts: nobody wants to learn after ten minutes that it cannot be written. */
import { accessSync, constants, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { HeadroomError } from "../errors.js";
import type { HeadroomReport } from "../outcome/report.js";

export class ReportFile {
  readonly #path: string;
  /** A pipe, a device or a link: written in place, not replaced. */
  readonly #inPlace: boolean;

  private constructor(path: string, inPlace: boolean) {
    this.#path = path;
    this.#inPlace = inPlace;
  }

  static prepare(path: string): ReportFile {
    const directory = dirname(path);
    try {
      const existing = statSync(path, { throwIfNoEntry: false });
      if (existing?.isDirectory()) throw new Error("it is a directory");
      if (existing && !existing.isFile()) return new ReportFile(path, true);
      if (!statSync(directory).isDirectory()) throw new Error(`${directory} is not a directory`);
      accessSync(directory, constants.W_OK | constants.X_OK);
      // An older report must not be taken for this job's.
      rmSync(path, { force: true });
      return new ReportFile(path, false);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new HeadroomError("E_REPORT", `the report cannot be written to ${path}: ${why}`, {
        fix: "Give --report a file in a directory that exists and that you may write to.",
        cause,
      });
    }
  }

  /**
   * Writes the whole report at once: a reader sees all of it or none. Answers what went wrong, if
   * anything: the job's own exit code matters more than its report.
   */
  write(report: HeadroomReport): HeadroomError | undefined {
    const text = `${JSON.stringify(report, undefined, 2)}\n`;
    const temporary = `${this.#path}.${process.pid}.tmp`;
    try {
      if (this.#inPlace) {
        writeFileSync(this.#path, text);
        return undefined;
      }
      writeFileSync(temporary, text);
      renameSync(temporary, this.#path);
      return undefined;
    } catch (cause) {
      rmSync(temporary, { force: true });
      const why = cause instanceof Error ? cause.message : String(cause);
      return new HeadroomError("E_REPORT", `the report could not be written to ${this.#path}: ${why}`, { cause });
    }
  }
}
