/** `hermes-headroom daemon`: starts it, runs it, ends it. */
import { setTimeout as sleep } from "node:timers/promises";
import { askDaemon } from "../daemon/client.js";
import { HeadroomError } from "../errors.js";
import { loadNative, nativeStatus, type Native } from "../native.js";
import { printError, printLine, stderrPaint } from "./terminal.js";

export interface DaemonOptions {
  foreground?: boolean;
  /** Seconds. */
  idle?: number;
  json?: boolean;
}

const USUAL_IDLE_S = 300;
const STOP_PATIENCE_MS = 5000;

export const daemonCommand = async (options: DaemonOptions): Promise<number> => {
  const { native, runtimeDir } = needed();
  if (!options.foreground) {
    const { startDaemon } = await import("../daemon/start.js");
    const { isOld, pid, unit } = await startDaemon(native, runtimeDir);
    const where = unit === null ? "" : ` as ${unit}`;
    printLine(
      options.json
        ? JSON.stringify({ pid, unit, was_running: isOld })
        : isOld
          ? `The daemon runs already (pid ${pid}).`
          : `The daemon runs (pid ${pid})${where}. It leaves by itself when nobody has needed it for 5 minutes.`,
    );
    return 0;
  }
  const { serve } = await import("../daemon/daemon.js");
  const told = new Set<string>();
  const end = await serve({
    native,
    runtimeDir,
    idleMs: (options.idle ?? USUAL_IDLE_S) * 1000,
    warn: (line) => {
      if (!told.has(line)) printError(`${stderrPaint()("yellow", "headroom:")} ${line}`);
      told.add(line);
    },
  });
  if (end === "taken") printError("hermes-headroom: another daemon serves this user already");
  // What a thread of the addon still looks after lives on in its box; nothing else keeps this process.
  process.exit(0);
};

export const daemonStopCommand = async (options: Pick<DaemonOptions, "json">): Promise<number> => {
  const { runtimeDir } = needed();
  const stopped = await askDaemon(runtimeDir, "stop");
  const wasRunning = stopped !== undefined;
  if (wasRunning) await untilGone(runtimeDir);
  printLine(
    options.json
      ? JSON.stringify({ was_running: wasRunning })
      : wasRunning
        ? "The daemon has stopped. Jobs run on in their boxes."
        : "No daemon runs.",
  );
  return 0;
};

const untilGone = async (runtimeDir: string): Promise<void> => {
  const deadline = performance.now() + STOP_PATIENCE_MS;
  while ((await askDaemon(runtimeDir, "hello").catch(() => undefined)) !== undefined) {
    if (performance.now() > deadline) throw new HeadroomError("E_DAEMON", "the daemon was told to stop and goes on");
    await sleep(20);
  }
};

const needed = (): { native: Native; runtimeDir: string } => {
  const native = loadNative();
  if (!native) {
    const status = nativeStatus();
    throw new HeadroomError(
      "E_NATIVE",
      status.available ? "" : status.detail,
      status.available ? {} : { fix: status.fix },
    );
  }
  const { path, problem } = native.runtimeDirectory();
  if (path === null) throw new HeadroomError("E_DAEMON", `the runtime directory cannot be used: ${problem}`);
  return { native, runtimeDir: path };
};
