/**
 * The event log: JSON lines in `<HERMES_HOME>/plugin-data/headroom/events.jsonl`. Several processes write to
 * it at once: a line is one write in append mode, and a rotation is a rename.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { codeOf, fileProblem } from "../files.js";
import { maskSecrets } from "../outcome/mask.js";
import { hermesHome } from "../settings/load.js";

/** Sizes in MiB, times in seconds. */
export interface HeadroomEvent {
  event: "queued" | "started" | "finished" | "refused" | "oom" | "watchdog" | "observe";
  /** The process that writes it. */
  pid: number;
  command?: string;
  kind?: string;
  mode?: string;
  job?: string;
  /** What the watchdog did: `pause`, `push_out`, `resume`, `terminate` or `kill`. */
  action?: string;
  /** What the machine had left then. */
  available_mb?: number;
  cap_mb?: number;
  peak_mb?: number;
  queued_s?: number;
  took_s?: number;
  exit_code?: number;
  killed_by?: string;
  lightened?: string[];
  reason?: string;
}

/** As it stands in the log. */
export type LoggedEvent = { at: string } & HeadroomEvent;

export const EVENTS_FILE = "events.jsonl";
export const ROTATED_KEPT = 3;
const ROTATE_AT_BYTES = 1_048_576;
const LONGEST_LINE = 8192;
const LONGEST_TEXT = 2000;
/** A lock older than that belongs to a process that died while it rotated. */
const STALE_LOCK_MS = 10_000;
/** Deeper paths are nobody's home. */
const DEEPEST = 64;

/**
 * Where data that outlives a boot is kept: with Hermes' own, or where there is no Hermes, in the user's state
 * directory (XDG Base Directory Specification).
 */
export const dataDirectory = (environment: Readonly<Record<string, string | undefined>>): string => {
  const home = hermesHome(environment);
  if (environment["HERMES_HOME"] || existsSync(home)) return join(home, "plugin-data", "headroom");
  const state = environment["XDG_STATE_HOME"] || join(environment["HOME"] || homedir(), ".local", "state");
  return join(state, "hermes-headroom");
};

/** Makes the directory; a text when it cannot be used. */
export const prepareDataDirectory = (directory: string): string | undefined => {
  try {
    makeDirectories(directory);
    const stat = lstatSync(directory);
    if (!stat.isDirectory()) return `${directory} is no directory: move it away`;
    const uid = process.getuid?.();
    if (uid !== undefined && stat.uid !== uid) {
      return `${directory} belongs to another user: let your user have it, or set HERMES_HOME to a directory of yours`;
    }
    return undefined;
  } catch (error) {
    return fileProblem(directory, "used", error);
  }
};

/** One by one: `recursive` never comes back where a file system answers ENOENT to mkdir, as /proc does. */
const makeDirectories = (directory: string): void => {
  const missing: string[] = [];
  for (let path = directory; !existsSync(path) && missing.length < DEEPEST; path = dirname(path)) missing.push(path);
  for (const path of missing.toReversed()) {
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      // Another process was faster.
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
};

/**
 * Appends one event. A text when that failed; never throws. Half a line that a full disk left behind is ended
 * first, so that it spoils no other.
 */
export const appendEvent = (directory: string, event: HeadroomEvent, now: Date = new Date()): string | undefined => {
  const unusable = prepareDataDirectory(directory);
  if (unusable !== undefined) return unusable;
  const path = join(directory, EVENTS_FILE);
  let fd: number | undefined;
  try {
    fd = openSync(
      path,
      constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK,
      0o600,
    );
    const stat = fstatSync(fd);
    if (!stat.isFile()) return `${path} is no regular file: move it away`;
    if (process.getuid !== undefined && stat.uid !== process.getuid()) {
      return `${path} belongs to another user: move it away`;
    }
    const line = Buffer.from((isOpenEnded(fd, stat.size) ? "\n" : "") + lineOf(event, now));
    if (writeSync(fd, line) < line.length) {
      return `${path} cannot be written: there was room for a part of a line only; free some space there`;
    }
    if (stat.size >= ROTATE_AT_BYTES) rotate(directory);
    return undefined;
  } catch (error) {
    return fileProblem(path, "written", error);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
};

const NEWLINE = 10;

/** The last line has no end. */
const isOpenEnded = (fd: number, size: number): boolean => {
  const last = Buffer.alloc(1);
  return size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE;
};

const lineOf = (event: HeadroomEvent, now: Date): string => {
  const clean: LoggedEvent = { at: now.toISOString(), ...event };
  if (clean.command !== undefined) clean.command = maskSecrets(clean.command).slice(0, LONGEST_TEXT);
  if (clean.reason !== undefined) clean.reason = maskSecrets(clean.reason).slice(0, LONGEST_TEXT);
  let line = JSON.stringify(clean);
  if (line.length >= LONGEST_LINE) {
    delete clean.lightened;
    line = JSON.stringify({ ...clean, command: clean.command?.slice(0, 500), reason: clean.reason?.slice(0, 500) });
  }
  return `${line}\n`;
};

/** `events.jsonl` becomes `.1`, `.1` becomes `.2`. One process does it; the others go on writing. */
const rotate = (directory: string): void => {
  const lock = join(directory, `${EVENTS_FILE}.lock`);
  try {
    closeSync(openSync(lock, "wx", 0o600));
  } catch {
    removeStale(lock);
    return;
  }
  try {
    const path = join(directory, EVENTS_FILE);
    // Somebody may have done it between our look and the lock.
    if (lstatSync(path).size < ROTATE_AT_BYTES) return;
    for (let number = ROTATED_KEPT - 1; number >= 1; number -= 1) move(`${path}.${number}`, `${path}.${number + 1}`);
    move(path, `${path}.1`);
  } finally {
    rmSync(lock, { force: true });
  }
};

const move = (from: string, to: string): void => {
  try {
    renameSync(from, to);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
};

const removeStale = (lock: string): void => {
  try {
    // A time to come is none: the clock was put back since.
    if (Math.abs(Date.now() - lstatSync(lock).mtimeMs) > STALE_LOCK_MS) rmSync(lock, { force: true });
  } catch {
    // Gone meanwhile.
  }
};
