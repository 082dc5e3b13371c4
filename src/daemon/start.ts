/** Starts the daemon so that it outlives whoever asks: as a service of systemd's, else on its own. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { HeadroomError } from "../errors.js";
import type { Native } from "../native.js";
import { askDaemon } from "./client.js";

export interface DaemonStart {
  /** It ran before. */
  isOld: boolean;
  pid: number;
  /** The unit it runs in; `null` on its own. */
  unit: string | null;
}

const UNIT = "hermes-headroom-daemon.service";
/** A small machine that is busy takes seconds to start Node twice. */
const PATIENCE_MS = 15_000;
const POLL_MS = 10;
/** All that it needs to find its user's places. */
const PASSED_ON = ["PATH", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "HERMES_HOME", "XDG_STATE_HOME"];

const CLI = fileURLToPath(new URL("../../bin/hermes-headroom.js", import.meta.url));

/** Answers when it listens. Throws where it cannot be had. */
export const startDaemon = async (native: Native, runtimeDir: string): Promise<DaemonStart> => {
  const old = await pidOf(runtimeDir);
  if (old !== undefined) return { isOld: true, pid: old, unit: null };
  const argv = [process.execPath, ...memoryFlags(), CLI, "daemon", "--foreground"];
  const environment = PASSED_ON.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [`${name}=${value}`];
  });
  const description = "hermes-headroom: boxes and turns for an agent's heavy jobs";
  const refused = native.startService({ unit: UNIT, description, argv, environment });
  if (refused !== null) startDetached(argv, environment);
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    // One that is just leaving closes the connection.
    const pid = await pidOf(runtimeDir).catch(() => undefined);
    if (pid !== undefined) return { isOld: false, pid, unit: refused === null ? UNIT : null };
    if (performance.now() > deadline) {
      throw new HeadroomError("E_DAEMON", "the daemon was started and does not answer", {
        fix: "See why: hermes-headroom daemon --foreground",
      });
    }
    await sleep(POLL_MS);
  }
};

/** Node's own memory in a process that mostly waits. */
const memoryFlags = (): string[] => ["--max-semi-space-size=1", "--v8-pool-size=0"];

const pidOf = async (runtimeDir: string): Promise<number | undefined> => {
  const greeted = (await askDaemon(runtimeDir, "hello")) as { pid?: number } | undefined;
  return greeted?.pid;
};

const startDetached = ([program = "", ...words]: string[], environment: string[]): void => {
  const env = Object.fromEntries(environment.map((text) => text.split(/=(.*)/s).slice(0, 2) as [string, string]));
  const child = spawn(program, words, { detached: true, stdio: "ignore", cwd: "/", env });
  child.on("error", () => {
    // Told by the patience that runs out.
  });
  child.unref();
};
