/** Runs the real command line, as a person would, and collects what it says. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export const ROOT: string = fileURLToPath(new URL("../../", import.meta.url));
export const CLI: string = fileURLToPath(new URL("../../bin/hermes-headroom.js", import.meta.url));

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
}

/** Starts the command line and hands it out while it runs. */
export const startCli = (words: string[], { cwd = ROOT, env = {} }: CliOptions = {}): ChildProcess =>
  spawn(process.execPath, [CLI, ...words], {
    cwd,
    env: { ...process.env, NO_COLOR: "1", ...env },
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
