/** A daemon of its own for a test, and an agent that asks it as the plugin does. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExecutionContext } from "ava";
import type { HeadroomReport } from "../../src/outcome/report.js";
import { isAlive } from "./leftovers.js";
import { CLI } from "./run-cli.js";

export interface DaemonWorld {
  folder: string;
  runtimeDir: string;
  socket: string;
  environment: Record<string, string>;
  /** Starts a daemon; settles when it listens. */
  start: (idleS?: number) => Promise<ChildProcess>;
}

/** Everything in it is removed, and its daemons are ended, with the test. */
export const daemonWorld = (t: ExecutionContext): DaemonWorld => {
  const folder = mkdtempSync(join(tmpdir(), "headroom-world-"));
  const runtimeDir = join(folder, "hermes-headroom");
  const socket = join(runtimeDir, "daemon.sock");
  mkdirSync(join(folder, "home"));
  const environment = { ...process.env, XDG_RUNTIME_DIR: folder, HERMES_HOME: join(folder, "home"), NO_COLOR: "1" };
  const daemons: ChildProcess[] = [];
  t.teardown(async () => {
    for (const daemon of daemons) {
      if (daemon.exitCode === null && daemon.signalCode === null) {
        daemon.kill("SIGTERM");
        await once(daemon, "exit");
      }
    }
    rmSync(folder, { recursive: true, force: true });
  });
  const start = async (idleS = 300): Promise<ChildProcess> => {
    const words = [CLI, "daemon", "--foreground", "--idle", String(idleS)];
    const daemon = spawn(process.execPath, words, { env: environment, stdio: ["ignore", "inherit", "inherit"] });
    daemons.push(daemon);
    const answers = async (): Promise<boolean> => {
      const client = await Agent.connect(socket).catch(() => undefined);
      client?.close();
      return client?.hello["pid"] === daemon.pid;
    };
    for (let tries = 0; tries < 500 && !(await answers()); tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return daemon;
  };
  return { folder, runtimeDir, socket, environment: environment as Record<string, string>, start };
};

type Answer = Record<string, unknown>;

/** One connection. */
export class Agent {
  hello: Answer = {};
  /** What came without being asked for. */
  readonly notifications: { method: string; params: Answer }[] = [];
  readonly #socket: Socket;
  readonly #waiting = new Map<unknown, (message: Answer) => void>();
  #asked = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    let rest = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#read(JSON.parse(line) as Answer);
    });
    socket.on("error", () => {});
  }

  static async connect(path: string, hello: Answer = {}): Promise<Agent> {
    const socket = connect(path);
    await once(socket, "connect");
    const agent = new Agent(socket);
    const home = process.env["HOME"] ?? "/";
    agent.hello = await agent.ask("hello", { protocol: 1, version: "0.1.0", hermes_home: home, ...hello });
    return agent;
  }

  /** The result, or the error. */
  async ask(method: string, params: Answer = {}): Promise<Answer> {
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => resolve((error ?? result) as Answer));
      this.#socket.once("close", () => reject(new Error("the connection was closed")));
      this.#socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(message: Answer): void {
    if ("id" in message) this.#waiting.get(message["id"])?.(message);
    else this.notifications.push(message as unknown as { method: string; params: Answer });
  }
}

/** A shell as Hermes starts it; its exit code and what it printed. */
export const hermesShell = async (
  t: ExecutionContext,
  command: string,
  cwd: string,
): Promise<{ code: number; output: string }> => {
  const quoted = command.replaceAll("'", `'\\''`);
  const text = `cd ${cwd} || exit 126\neval '${quoted}'\ncode=$?\nexport -p > /dev/null\nexit $code`;
  const child = spawn("bash", ["-c", text], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  t.teardown(() => {
    if (child.pid !== undefined && isAlive(child.pid)) process.kill(-child.pid, "SIGKILL");
  });
  let output = "";
  child.stdout.on("data", (chunk) => (output += String(chunk)));
  child.stderr.on("data", (chunk) => (output += String(chunk)));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return { code: code ?? (signal === "SIGKILL" ? -9 : -1), output };
};

export interface HeavyResult {
  admitted: Answer;
  code: number | undefined;
  output: string;
  headroom: HeadroomReport | null;
}

/** A whole heavy call, from admission to the account. */
export const heavyCall = async (
  t: ExecutionContext,
  { socket, folder, environment }: DaemonWorld,
  command: string,
  more: Answer = {},
): Promise<HeavyResult> => {
  const own = Object.entries(environment).filter(([name]) => name.startsWith("HEADROOM_"));
  const agent = await Agent.connect(socket, {
    hermes_home: environment["HERMES_HOME"],
    environment: Object.fromEntries(own),
  });
  try {
    const asked = { command, cwd: folder, session_id: "chat", call_id: command, tool: "terminal", ...more };
    const admitted = await agent.ask("admit", { ...asked, agent_pid: process.pid });
    if (admitted["admitted"] !== true) return { admitted, code: undefined, output: "", headroom: null };
    const { code, output } = await hermesShell(t, command, folder);
    const end = await agent.ask("end", { job: admitted["job"], call_id: command, exit_code: code });
    return { admitted, code, output, headroom: end["headroom"] as HeadroomReport | null };
  } finally {
    agent.close();
  }
};
