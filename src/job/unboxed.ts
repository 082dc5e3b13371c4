/** Runs a command without any box, where there is no addon. Streams, signals and exit code pass through. */
import { spawn } from "node:child_process";
import { constants } from "node:os";

const PASSED_ON: NodeJS.Signals[] = ["SIGTERM", "SIGHUP"];
/** The terminal sends these to the command as well. */
const LEFT_TO_THE_TERMINAL: NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];

export const runUnboxed = async ([program = "", ...words]: string[]): Promise<number> =>
  new Promise((resolve) => {
    const child = spawn(program, words, { stdio: "inherit" });
    for (const signal of PASSED_ON) process.on(signal, () => child.kill(signal));
    for (const signal of LEFT_TO_THE_TERMINAL) process.on(signal, () => {});
    child.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ENOENT" ? 127 : 126));
    child.once("exit", (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
