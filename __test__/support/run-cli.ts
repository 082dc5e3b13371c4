/** Runs the real command line, as a person would, and collects what it says. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT: string = fileURLToPath(new URL("../../", import.meta.url));
export const CLI: string = fileURLToPath(new URL("../../bin/hermes-headroom.js", import.meta.url));

/** Settings, events and peaks of the tests are their own. */
export const HERMES_HOME: string = mkdtempSync(join(tmpdir(), "headroom-home-"));
process.on("exit", () => rmSync(HERMES_HOME, { recursive: true, force: true }));

export interface CliResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  input?: string;
  /** Tests run beside one another; only those about the queue stand in it. */
  queue?: boolean;
}

const withoutQueue = (word: string, index: number): string[] =>
  index === 0 && word === "run" ? [word, "--no-queue"] : [word];

/** Starts the command line and hands it out while it runs. */
export const startCli = (words: string[], { cwd = ROOT, env = {}, queue = false }: CliOptions = {}): ChildProcess =>
  spawn(process.execPath, [CLI, ...(queue ? words : words.flatMap(withoutQueue))], {
    cwd,
    env: { ...process.env, NO_COLOR: "1", HERMES_HOME, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });

/** Waits for a started command line. */
export const finishCli = async (child: ChildProcess): Promise<CliResult> => {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk) => (stdout += String(chunk)));
  child.stderr?.on("data", (chunk) => (stderr += String(chunk)));
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout, stderr };
};

export const runCli = async (words: string[], options: CliOptions = {}): Promise<CliResult> => {
  const child = startCli(words, options);
  child.stdin?.end(options.input ?? "");
  return finishCli(child);
};
