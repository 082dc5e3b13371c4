/** Reads the event log. Lines that are none are left out. */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EVENTS_FILE, ROTATED_KEPT, type LoggedEvent } from "./log.js";

const POLL_MS = 250;
const LARGEST_READ_BYTES = 4 * 1_048_576;

const parseLine = (line: string): LoggedEvent[] => {
  try {
    const value: unknown = JSON.parse(line);
    const isEvent = typeof value === "object" && value !== null && "event" in value && "at" in value;
    return isEvent ? [value as LoggedEvent] : [];
  } catch {
    return [];
  }
};

/** The last so many events, oldest first, from the rotated files too. */
export const readEvents = (directory: string, count: number): LoggedEvent[] => {
  let found: LoggedEvent[] = [];
  for (let number = 0; number <= ROTATED_KEPT && found.length < count; number += 1) {
    found = [...readFile(join(directory, number === 0 ? EVENTS_FILE : `${EVENTS_FILE}.${number}`)), ...found];
  }
  return count === 0 ? [] : found.slice(-count);
};

const readFile = (path: string): LoggedEvent[] => {
  try {
    const stat = statSync(path);
    if (!stat.isFile() || stat.size > LARGEST_READ_BYTES) return [];
    return readFileSync(path, "utf8").split("\n").flatMap(parseLine);
  } catch {
    return [];
  }
};

/** Events from this call on, until the signal. Follows the log through its rotations, and waits for it to be there. */
export const followEvents = (directory: string, signal: AbortSignal): AsyncGenerator<LoggedEvent> => {
  const path = join(directory, EVENTS_FILE);
  const first = openLog(path);
  // What was there before is not news.
  return follow(path, first === undefined ? undefined : { ...first, offset: fstatSync(first.fd).size }, signal);
};

interface OpenLog {
  fd: number;
  inode: number;
  offset: number;
}

const openLog = (path: string): OpenLog | undefined => {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return { fd, inode: fstatSync(fd).ino, offset: 0 };
  } catch {
    return undefined;
  }
};

const follow = async function* (
  path: string,
  first: OpenLog | undefined,
  signal: AbortSignal,
): AsyncGenerator<LoggedEvent> {
  let log = first;
  let rest = "";
  try {
    while (!signal.aborted) {
      // Before the old file is read for the last time: what is written to it later was written before the rename.
      const inode = inodeOf(path);
      if (log !== undefined) {
        const { text, next } = readFrom(log.fd, log.offset);
        log.offset = next;
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const event of lines.flatMap(parseLine)) yield event;
      }
      if (inode !== undefined && inode !== log?.inode) {
        if (log !== undefined) closeSync(log.fd);
        log = openLog(path);
        rest = "";
        continue;
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

const readFrom = (fd: number, offset: number): { text: string; next: number } => {
  const buffer = Buffer.alloc(65_536);
  const chunks: Buffer[] = [];
  let next = offset;
  for (;;) {
    const count = readSync(fd, buffer, 0, buffer.length, next);
    if (count === 0) break;
    chunks.push(Buffer.from(buffer.subarray(0, count)));
    next += count;
  }
  return { text: Buffer.concat(chunks).toString("utf8"), next };
};
