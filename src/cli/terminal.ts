/**
 * Writing to the terminal. Never through `process.stdout` or `process.stderr`: opening those as streams
 * makes a shared pipe non-blocking for the job as well.
 */
import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { styleText } from "node:util";

export type Style = Parameters<typeof styleText>[0];
export type Paint = (style: Style, text: string) => string;

const STDOUT = 1;
const STDERR = 2;

/** Writes a line to stdout; `false` when nobody reads it any more. */
export const printLine = (line: string): boolean => writeWhole(STDOUT, `${line}\n`);

/** Writes a line to stderr; a closed stderr is nothing to fail for. */
export const printError = (line: string): boolean => writeWhole(STDERR, `${line}\n`);

/** Colours, if stdout is a terminal that wants them (https://no-color.org). */
export const stdoutPaint = (): Paint => paintFor(STDOUT);
export const stderrPaint = (): Paint => paintFor(STDERR);

const paintFor = (fd: number): Paint => {
  const { NO_COLOR, TERM } = process.env;
  const coloured = !NO_COLOR && TERM !== "dumb" && isatty(fd);
  return coloured ? (style, text) => styleText(style, text, { validateStream: false }) : (_style, text) => text;
};

const writeWhole = (fd: number, text: string): boolean => {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) return false;
      // Somebody made the pipe non-blocking and it is full: wait for the reader.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
  return true;
};

/** MB for people: whole MB below 10 GB, then GB with one digit. */
export const formatMb = (mb: number): string =>
  mb < 10_240 ? `${mb.toLocaleString("en-US")} MB` : `${(mb / 1024).toFixed(1)} GB`;

/** Seconds for people. */
export const formatSeconds = (seconds: number): string => {
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};
