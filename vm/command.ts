/**
 * Running a host command to its end with its output passed on line by line.
 */
import { spawn } from "node:child_process";
import type { Readable } from "node:stream";

export interface CommandOptions {
  /** Told every line of stdout and stderr. */
  onLine?: (line: string) => void;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
}

/** Runs a command; throws with the last lines of its output unless it exits with 0. Returns its output. */
export const run = async (command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> => {
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const lines: string[] = [];
  const keep = (line: string): void => {
    lines.push(line);
    options.onLine?.(line);
  };
  splitLines(child.stdout, keep);
  splitLines(child.stderr, keep);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, exitSignal) => resolve([exitCode, exitSignal]));
  });
  if (code !== 0) throw new Error(`${command} ended with ${signal ?? code}:\n${lines.slice(-30).join("\n")}`);
  return lines.join("\n");
};

/** Calls `onLine` for every line of a stream, the last one also without its line end. */
export const splitLines = (stream: Readable, onLine: (line: string) => void): void => {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line.replace(/\r+$/, ""));
  });
  stream.once("end", () => {
    if (rest) onLine(rest);
  });
};
