/**
 * Writing to the terminal. Never through `process.stdout` or `process.stderr`: opening those as streams
 * makes a shared pipe non-blocking for the job as well.
 */
import { writeSync } from "node:fs";
import { isatty, WriteStream } from "node:tty";
import { styleText } from "node:util";
import { HeadroomError } from "../errors.js";

export type Style = Parameters<typeof styleText>[0];
export type Paint = (style: Style, text: string) => string;

const STDOUT = 1;
const STDERR = 2;

/** Writes a line to stdout. A reader that has gone away (`| head`) is fine, a full disk is an error. */
export const printLine = (line: string): void => {
  writeOut(`${line}\n`);
};

/** Writes to stdout as `printLine` does; `false` when the reader, or the terminal, has gone away. */
export const writeOut = (text: string): boolean => {
  const failure = writeWhole(STDOUT, text);
  if (failure === undefined) return true;
  if (failure.code === "EPIPE" || (failure.code === "EIO" && !isatty(STDOUT))) return false;
  throw new HeadroomError("E_OUTPUT", `stdout cannot be written: ${failure.message}`, { cause: failure });
};

/** A terminal that can be drawn on is on stdout. */
export const canDraw = (): boolean =>
  isatty(STDOUT) && !["dumb", "unknown", "", undefined].includes(process.env["TERM"]);

/** Writes a line to stderr; a closed stderr is nothing to fail for. */
export const printError = (line: string): void => {
  writeWhole(STDERR, `${line}\n`);
};

/** Colours, if stdout is a terminal that wants them (https://no-color.org). */
export const stdoutPaint = (): Paint => paintFor(STDOUT);
export const stderrPaint = (): Paint => paintFor(STDERR);

const paintFor = (fd: number): Paint => {
  const { NO_COLOR, TERM } = process.env;
  const coloured = !NO_COLOR && TERM !== "dumb" && isatty(fd);
  return coloured ? (style, text) => styleText(style, text, { validateStream: false }) : (_style, text) => text;
};

const writeWhole = (fd: number, text: string): NodeJS.ErrnoException | undefined => {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const failure = error as NodeJS.ErrnoException;
      if (failure.code !== "EAGAIN") return failure;
      // Somebody made the pipe non-blocking and it is full: wait for the reader.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
  return undefined;
};

/** MB for people: whole MB below 10 GB, then GB with one digit. */
export const formatMb = (mb: number): string =>
  mb < 10_240 ? `${mb.toLocaleString("en-US")} MB` : `${(mb / 1024).toFixed(1)} GB`;

/** Seconds for people. */
export const formatSeconds = (seconds: number): string => {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

/** Columns of the terminal on stdout; infinite where it is none, so that whoever pipes the output gets all of it. */
export const terminalWidth = (): number => {
  const columns = Number(process.env["COLUMNS"]);
  if (columns > 0) return columns;
  if (!isatty(STDOUT)) return Number.POSITIVE_INFINITY;
  return new WriteStream(STDOUT).columns || DEFAULT_WIDTH;
};

const DEFAULT_WIDTH = 80;

/** Breaks text between words into lines of at most so many columns. A longer word has a line of its own. */
export const wrapText = (text: string, width: number): string[] => {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
};
