/** One Hermes home: whose settings, events and peaks count for a call. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { loadSettings, type LoadedSettings } from "../settings/load.js";

type Environment = Readonly<Record<string, string | undefined>>;

export class Profile {
  /** What stands for the agent's environment as far as it concerns settings and data. */
  readonly environment: Environment;
  #loaded: LoadedSettings | undefined;
  #version = "";

  /** `variables`: those of the agent that begin with HEADROOM_. */
  constructor(hermesHome: string, variables: Environment) {
    this.environment = { ...variables, HOME: process.env["HOME"], HERMES_HOME: hermesHome };
  }

  /** The settings now in force; the file is read again when it has changed. */
  async settings(): Promise<LoadedSettings> {
    const version = versionOf(join(String(this.environment["HERMES_HOME"]), "config.yaml"));
    if (this.#loaded === undefined || version !== this.#version) {
      this.#loaded = await loadSettings({ environment: this.environment });
      this.#version = version;
    }
    return this.#loaded;
  }
}

const versionOf = (path: string): string => {
  try {
    const { mtimeNs, size, ino } = statSync(path, { bigint: true });
    return `${mtimeNs} ${size} ${ino}`;
  } catch {
    return "none";
  }
};
