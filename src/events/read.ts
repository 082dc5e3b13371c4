/** Reads the event log. Anything may stand in it: what is no event is left out, and told. */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, fileProblem } from "../files.js";
import { EVENTS_FILE, ROTATED_KEPT, type HeadroomEvent, type LoggedEvent } from "./log.js";

const POLL_MS = 250;
/** So much is read of the end of a file. */
const LARGEST_READ_BYTES = 4 * 1_048_576;
/** What is longer without an end is no line of ours. */
const LONGEST_LINE_BYTES = 65_536;
const NEWLINE = 10;

export interface PastEvents {
  /** Oldest first. */
  events: LoggedEvent[];
  /** One line each: which file, what is wrong, what to do. */
  problems: string[];
}

const isNumber = (value: unknown): boolean => typeof value === "number";
const isText = (value: unknown): boolean => typeof value === "string";
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);

/** Facts that an event may have. One of another type is left out, the event stays. */
const FACTS: Record<Exclude<keyof HeadroomEvent, "event" | "pid">, (value: unknown) => boolean> = {
  command: isText,
  kind: isText,
  mode: isText,
  job: isText,
  cap_mb: isNumber,
  peak_mb: isNumber,
  queued_s: isNumber,
  took_s: isNumber,
  exit_code: isNumber,
  killed_by: isText,
  lightened: isTexts,
  reason: isText,
  action: isText,
  available_mb: isNumber,
};

const parseLine = (line: string): LoggedEvent | undefined => {
  try {
    const value = JSON.parse(line) as Record<string, unknown> | null;
    if (typeof value !== "object" || value === null) return undefined;
    const { at, event, pid } = value;
    const isEvent = typeof at === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(at) && isText(event) && isNumber(pid);
    if (!isEvent) return undefined;
    for (const [key, fits] of Object.entries(FACTS)) if (key in value && !fits(value[key])) delete value[key];
    return value as unknown as LoggedEvent;
  } catch {
    return undefined;
  }
};

const parseLines = (text: string): { events: LoggedEvent[]; broken: number } => {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const events = lines.map(parseLine).filter((event) => event !== undefined);
  return { events, broken: lines.length - events.length };
};

/** The last so many events, from the rotated files too. Never throws. */
export const readLog = (directory: string, count: number): PastEvents => {
  let events: LoggedEvent[] = [];
  const problems: string[] = [];
  for (let number = 0; number <= ROTATED_KEPT && events.length < count; number += 1) {
    const path = join(directory, number === 0 ? EVENTS_FILE : `${EVENTS_FILE}.${number}`);
    const found = readFile(path);
    events = [...found.events, ...events];
    problems.push(...found.problems);
  }
  return { events: count === 0 ? [] : events.slice(-count), problems };
};

export const readEvents = (directory: string, count: number): LoggedEvent[] => readLog(directory, count).events;

const readFile = (path: string): PastEvents => {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    if (!stat.isFile()) return { events: [], problems: [`${path} is no regular file: move it away`] };
    const start = Math.max(0, stat.size - LARGEST_READ_BYTES);
    const { bytes } = readFrom(fd, start);
    // Half a line, where it does not begin with the file.
    const text = bytes.toString("utf8", start === 0 ? 0 : bytes.indexOf(NEWLINE) + 1);
    const { events, broken } = parseLines(text);
    const problems = [
      ...(start > 0 ? [`${path} is larger than it can get by itself: only its last 4 MB were read; delete it`] : []),
      ...(broken > 0 ? [brokenLines(path, broken)] : []),
    ];
    return { events, problems };
  } catch (error) {
    return { events: [], problems: codeOf(error) === "ENOENT" ? [] : [fileProblem(path, "read", error)] };
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
};

const brokenLines = (path: string, count: number): string =>
  `${path}: ${count === 1 ? "1 line is no event and was" : `${count} lines are no events and were`} left out; nothing else is lost, it can be deleted there`;

/**
 * Events from this call on, until the signal. Follows the log through its rotations, and waits for it to be there.
 * `onProblem` is told once a file.
 */
export const followEvents = (
  directory: string,
  signal: AbortSignal,
  onProblem: (problem: string) => void = () => {},
): AsyncGenerator<LoggedEvent> => {
  const path = join(directory, EVENTS_FILE);
  const first = openLog(path);
  // What was there before is not news.
  return follow(
    path,
    first === undefined ? undefined : { ...first, offset: fstatSync(first.fd).size },
    signal,
    onProblem,
  );
};

interface OpenLog {
  fd: number;
  inode: number;
  offset: number;
}

const openLog = (path: string): OpenLog | undefined => {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    if (stat.isFile()) return { fd, inode: stat.ino, offset: 0 };
    closeSync(fd);
  } catch {
    // There is none yet.
  }
  return undefined;
};

const follow = async function* (
  path: string,
  first: OpenLog | undefined,
  signal: AbortSignal,
  onProblem: (problem: string) => void,
): AsyncGenerator<LoggedEvent> {
  let log = first;
  let rest = Buffer.alloc(0);
  let isTold = false;
  try {
    while (!signal.aborted) {
      // Before the old file is read for the last time: what is written to it later was written before the rename.
      const inode = inodeOf(path);
      if (log !== undefined) {
        // Somebody has emptied it.
        if (fstatSync(log.fd).size < log.offset) log.offset = 0;
        const { bytes, next } = readFrom(log.fd, log.offset);
        const isMore = next - log.offset >= LARGEST_READ_BYTES;
        log.offset = next;
        // By bytes: what is being written may end within a character.
        const text = Buffer.concat([rest, bytes]);
        const end = text.lastIndexOf(NEWLINE) + 1;
        rest = text.subarray(end);
        if (rest.length > LONGEST_LINE_BYTES) rest = Buffer.from("?");
        const { events, broken } = parseLines(text.toString("utf8", 0, end));
        for (const event of events) yield event;
        if (broken > 0 && !isTold) {
          onProblem(brokenLines(path, broken));
          isTold = true;
        }
        if (isMore) continue;
      }
      if (inode !== undefined && inode !== log?.inode) {
        const next = openLog(path);
        if (next !== undefined) {
          if (log !== undefined) closeSync(log.fd);
          log = next;
          rest = Buffer.alloc(0);
          isTold = false;
          continue;
        }
      }
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    if (log !== undefined) closeSync(log.fd);
  }
};

const inodeOf = (path: string): number | undefined => {
  try {
    return statSync(path).ino;
  } catch {
    return undefined;
  }
};

/** So much as is there, and no more than can be kept. */
const readFrom = (fd: number, offset: number): { bytes: Buffer; next: number } => {
  const chunks: Buffer[] = [];
  let next = offset;
  while (next - offset < LARGEST_READ_BYTES) {
    const buffer = Buffer.alloc(65_536);
    const count = readSync(fd, buffer, 0, buffer.length, next);
    if (count === 0) break;
    chunks.push(buffer.subarray(0, count));
    next += count;
  }
  return { bytes: Buffer.concat(chunks), next };
};
