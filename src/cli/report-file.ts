/** The file of `--report`. Checked before the job starts: nobody wants to learn after ten minutes that it cannot be written. */
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { HeadroomError } from "../errors.js";
import type { HeadroomReport } from "../outcome/report.js";

/**
 * How the report reaches its place.
 *
 * `replace`: a regular file, new or old, replaced as a whole. `through`: a link, written where it points to.
 * `append`: a pipe or a device, written without truncating. A number: one of our own descriptors, which
 * /dev/stdout and the like stand for; opened anew it would have a position of its own.
 */
type Way = "replace" | "through" | "append" | number;

const OPEN_FLAGS: Record<"through" | "append", number> = {
  through: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NONBLOCK,
  append: constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK,
};

export class ReportFile {
  readonly #path: string;
  readonly #way: Way;

  private constructor(path: string, way: Way) {
    this.#path = path;
    this.#way = way;
  }

  /** Checks the place. An older report there goes, as with a shell's `>`: it must not be taken for this job's. */
  static prepare(path: string): ReportFile {
    try {
      const way = findWay(path);
      if (way === "replace") {
        accessSync(dirname(path), constants.W_OK | constants.X_OK);
        rmSync(path, { force: true });
      }
      return new ReportFile(path, way);
    } catch (cause) {
      throw new HeadroomError(
        "E_REPORT",
        `the report cannot be written to ${JSON.stringify(path)}: ${describe(cause)}`,
        {
          fix: "Give --report a file in a directory that exists and that you may write to.",
          cause,
        },
      );
    }
  }

  /**
   * Writes the whole report: a reader of a regular file sees all of it or none. Answers what went wrong,
   * if anything: the job's own exit code matters more than its report.
   */
  write(report: HeadroomReport): HeadroomError | undefined {
    const text = `${JSON.stringify(report, undefined, 2)}\n`;
    try {
      if (typeof this.#way === "number") writeSync(this.#way, text);
      else if (this.#way === "replace") this.#replace(text);
      else this.#writeInPlace(text, OPEN_FLAGS[this.#way]);
      return undefined;
    } catch (cause) {
      const isUnread = isSystemError(cause) && cause.code === "ENXIO";
      const why = isUnread ? "nobody reads from it" : describe(cause);
      return new HeadroomError("E_REPORT", `the report could not be written to ${this.#path}: ${why}`, { cause });
    }
  }

  #replace(text: string): void {
    const temporary = `${this.#path}.${process.pid}.tmp`;
    try {
      writeFileSync(temporary, text);
      renameSync(temporary, this.#path);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
  }

  #writeInPlace(text: string, flags: number): void {
    const fd = openSync(this.#path, flags, 0o666);
    try {
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
  }
}

const findWay = (path: string): Way => {
  if (path === "") throw new Error("the name is empty");
  const descriptor = ownDescriptor(path);
  if (descriptor !== undefined) {
    fstatSync(descriptor);
    return descriptor;
  }
  const target = statSync(path, { throwIfNoEntry: false });
  if (target?.isDirectory()) throw new Error("it is a directory");
  // What stands there is often a link to an open descriptor; to replace it would break it for everybody.
  if (/^\/(dev|proc)\//.test(path) || (target && !target.isFile())) {
    accessSync(path, constants.W_OK);
    return "append";
  }
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? "through" : "replace";
};

const ownDescriptor = (path: string): number | undefined => {
  if (path === "/dev/stdout") return 1;
  if (path === "/dev/stderr") return 2;
  const [, number] = /^\/(?:dev\/fd|proc\/self\/fd)\/(\d{1,6})$/.exec(path) ?? [];
  return number === undefined ? undefined : Number(number);
};

const isSystemError = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && "code" in error;

const describe = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
