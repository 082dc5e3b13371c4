/** A place of its own for a real Hermes: home, project, model, chat service, daemon. Nothing of it is left behind. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isAlive } from "../__test__/support/leftovers.js";
import { CLI, type CliResult, finishCli } from "../__test__/support/run-cli.js";
import { Chat } from "../vm/guest-side/chat.js";
import { Hermes } from "./hermes.js";
import type { HermesRelease } from "./releases.js";
import { venvOf } from "./venv.js";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

export interface WorldOptions {
  /** More of config.yaml, at its top level. */
  config?: string;
  environment?: Record<string, string>;
  /** Programs of the project by name: what is in them. */
  programs?: Record<string, string>;
  /** Other plugins, by the directory they are in. */
  plugins?: Record<string, string>;
  /** Without ours. */
  isBare?: true;
}

/** What a test needs of a framework's test. */
export interface Ends {
  teardown: (work: () => void | Promise<void>) => void;
}

const notCompiled = (path: string): boolean => !path.includes("__pycache__");

/** Settings with which a job is small, and one runs at a time. */
const SMALL = { HEADROOM_JOB_MEMORY_MAX_MB: "150", HEADROOM_SWAP_MB: "0", HEADROOM_MAX_HEAVY_JOBS: "1" };

export class World {
  readonly folder: string = mkdtempSync(join(tmpdir(), "headroom-hermes-"));
  readonly hermesHome: string = join(this.folder, ".hermes");
  readonly project: string = join(this.folder, "project");
  readonly runtimeDir: string = join(this.folder, "run/hermes-headroom");
  readonly chat: Chat = new Chat();
  readonly environment: Record<string, string>;
  readonly #python: string;

  readonly #options: WorldOptions;

  private constructor(release: HermesRelease, options: WorldOptions) {
    this.#options = options;
    const venv = venvOf(release);
    this.#python = join(venv, "bin/python");
    this.environment = {
      PATH: `${this.folder}/bin:${venv}/bin:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      HOME: this.folder,
      HERMES_HOME: this.hermesHome,
      TMPDIR: this.folder,
      XDG_RUNTIME_DIR: join(this.folder, "run"),
      LANG: "C.UTF-8",
      SHELL: "/bin/bash",
      HERMES_YOLO_MODE: "1",
      HEADROOM_CLI: CLI,
      PYTHONDONTWRITEBYTECODE: "1",
      BED_FOLDER: this.folder,
      ...SMALL,
      ...options.environment,
    };
  }

  static async make(t: Ends, release: HermesRelease, options: WorldOptions = {}): Promise<World> {
    const world = new World(release, options);
    t.teardown(() => world.#remove());
    await world.#furnish();
    return world;
  }

  async #furnish(): Promise<void> {
    for (const [name, mode] of Object.entries({ run: 0o700, bin: 0o755, project: 0o755 })) {
      mkdirSync(join(this.folder, name), { mode });
    }
    // Hermes' shells are login shells at first, and those set PATH anew.
    writeFileSync(join(this.folder, ".bash_profile"), `PATH='${this.environment["PATH"]}'\n`);
    const plugins: Record<string, string> = { ...this.#options.plugins };
    if (!this.#options.isBare) plugins["headroom"] = join(ROOT, "hermes-plugin");
    for (const [name, from] of Object.entries(plugins)) {
      cpSync(from, join(this.hermesHome, "plugins", name), { recursive: true, filter: notCompiled });
    }
    for (const [name, text] of Object.entries(this.#options.programs ?? {})) this.addProgram(name, text);
    await this.chat.listen();
    this.environment["BED_MODEL_URL"] = `http://127.0.0.1:${this.chat.port}/v1`;
    this.configure(`plugins:\n  enabled: [${Object.keys(plugins).join(", ")}]\n${this.#options.config ?? ""}`);
  }

  /** Writes config.yaml anew; `more` has the plugins. */
  configure(more: string): void {
    mkdirSync(this.hermesHome, { recursive: true });
    writeFileSync(
      join(this.hermesHome, "config.yaml"),
      `model: {default: fake-model, provider: custom, base_url: "${this.environment["BED_MODEL_URL"]}", api_key: dummy, context_length: 200000}
terminal: {backend: local, cwd: "${this.project}"}
memory: {memory_enabled: false, user_profile_enabled: false}
telemetry: {shared_metrics: {enabled: false, send: false, offer_version: 2}}
platform_toolsets: {ntfy: [terminal]}
${more}`,
    );
  }

  /** A program on Hermes' PATH. */
  addProgram(name: string, text: string): void {
    writeFileSync(join(this.folder, "bin", name), text);
    chmodSync(join(this.folder, "bin", name), 0o755);
  }

  addFile(name: string, text: string): void {
    writeFileSync(join(this.project, name), text);
  }

  /** A file of the project, `""` while there is none. */
  read(name: string): string {
    const path = join(this.project, name);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  /** Hermes with the lines of converse.py. */
  async start(): Promise<Hermes> {
    const words = ["-X", "faulthandler", join(ROOT, "hermes-bed/converse.py")];
    const child = spawn(this.#python, words, { cwd: this.project, env: this.environment, stdio: "pipe" });
    return Hermes.of(child);
  }

  /** `hermes WORD…` as a person types it. */
  async hermes(...words: string[]): Promise<CliResult> {
    const child = spawn(this.#python, ["-m", "hermes_cli.main", ...words], {
      cwd: this.project,
      env: this.environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    return finishCli(child);
  }

  /** The real gateway, connected to the chat service. */
  async startGateway(): Promise<ChildProcess> {
    const url = `http://127.0.0.1:${this.chat.port}`;
    const ntfy = { NTFY_SERVER_URL: url, NTFY_TOPIC: "in", NTFY_PUBLISH_TOPIC: "out", NTFY_ALLOWED_USERS: "alice,bob" };
    const gateway = spawn(this.#python, ["-m", "hermes_cli.main", "gateway", "run"], {
      cwd: this.project,
      env: { ...this.environment, ...ntfy },
      stdio: ["ignore", "ignore", "ignore"],
    });
    await until("the gateway is connected", () => this.chat.isConnected, 60_000);
    return gateway;
  }

  /** `hermes-headroom WORD…` of this place. */
  async cli(...words: string[]): Promise<CliResult> {
    const env = { ...this.environment, NO_COLOR: "1" };
    return finishCli(
      spawn(process.execPath, [CLI, ...words], { cwd: this.project, env, stdio: ["ignore", "pipe", "pipe"] }),
    );
  }

  async status(): Promise<{ jobs: { pid: number; command: string }[]; waiting: { command: string }[] }> {
    return JSON.parse((await this.cli("status", "--json")).stdout) as never;
  }

  events(): { event: string; [key: string]: unknown }[] {
    const path = join(this.hermesHome, "plugin-data/headroom/events.jsonl");
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, "utf8").trim().split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as never);
  }

  /** The daemon's process number; `undefined` where none runs. */
  daemonPid(): number | undefined {
    return this.processes().find(({ words }) => words.includes("daemon") && words.includes("--foreground"))?.pid;
  }

  /** Living processes of this place. */
  processes(): { pid: number; words: string[] }[] {
    return readdirSync("/proc").flatMap((name) => {
      const pid = Number(name);
      if (!Number.isInteger(pid) || !isAlive(pid)) return [];
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
        if (!environment.includes(this.folder)) return [];
        return [{ pid, words: readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1) }];
      } catch {
        return []; // it has ended, or is not ours
      }
    });
  }

  async #remove(): Promise<void> {
    // By number, until none is left: what is killed may just have started another.
    for (let tries = 0; tries < 50; tries += 1) {
      const left = this.processes();
      if (left.length === 0) break;
      for (const { pid } of left) kill(pid);
      await sleep(50);
    }
    // Boxes whose processes are gone are removed by whoever looks next.
    await this.cli("status", "--json");
    this.chat.close();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

const kill = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
};

/** Waits for something; throws when it does not come. */
export const until = async (
  what: string,
  holds: () => boolean | Promise<boolean>,
  patienceMs = 30_000,
): Promise<void> => {
  const deadline = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not in ${patienceMs / 1000} s: ${what}`);
    await sleep(25);
  }
};

/** The end of a process that is told to go. */
export const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
};
