/** The daemon's watchdog: there while a job runs. */
import { measureMemory } from "../memory.js";
import type { Native } from "../native.js";
import { watchRun } from "../run/watch.js";
import { resolveSettings } from "../settings/auto.js";
import type { Guard } from "../watchdog/guard.js";
import { Profile } from "./profile.js";
import { hermesHome } from "../settings/load.js";

export class DaemonWatch {
  readonly #native: Native;
  readonly #runtimeDir: string;
  readonly #warn: (line: string) => void;
  /** Starts and stops follow each other, whoever asks while one is under way. */
  #turn: Promise<void> = Promise.resolve();
  #guard: Guard | undefined;

  constructor(native: Native, runtimeDir: string, warn: (line: string) => void) {
    this.#native = native;
    this.#runtimeDir = runtimeDir;
    this.#warn = warn;
  }

  /** With the settings of whose call is the first one. Never rejects. */
  async start(profile: Profile | undefined, agentPid: number | undefined): Promise<void> {
    return this.#next(async () => {
      if (this.#guard !== undefined) return;
      const whose = profile ?? new Profile(hermesHome(process.env), process.env);
      const { settings } = await whose.settings();
      this.#guard = watchRun({
        native: this.#native,
        runtimeDir: this.#runtimeDir,
        resolved: resolveSettings(settings, measureMemory(this.#native)),
        environment: whose.environment,
        observe: false,
        isInsideJob: false,
        agentPid: agentPid ?? null,
        warn: this.#warn,
      });
    });
  }

  async stop(): Promise<void> {
    return this.#next(async () => {
      const guard = this.#guard;
      this.#guard = undefined;
      await guard?.stop();
    });
  }

  async #next(action: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(action).catch(() => {
      // A watchdog that cannot be had has been told.
    });
    return this.#turn;
  }
}
