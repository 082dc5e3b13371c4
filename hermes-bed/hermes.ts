/** The other end of converse.py: chats of a real Hermes process. */
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";

/** What a turn of a chat came to. */
export interface Turn {
  final: string | null;
  interrupted: boolean;
  /** What its tools gave the model, in order. */
  tools: ToolResult[];
}

/** A tool's result as the model gets it; `text` where it is no JSON object. */
export interface ToolResult {
  output?: string;
  exit_code?: number;
  error?: string | null;
  status?: string;
  session_id?: string;
  headroom?: Headroom;
  text?: string;
  [key: string]: unknown;
}

export interface Headroom {
  memory_cap_mb: number;
  swap_cap_mb: number;
  isolated: boolean;
  mode: string;
  oom_killed: boolean;
  killed_by?: string;
  queued_s?: number;
  lightened?: string[];
  escaped?: number;
  note?: string;
}

interface Answer {
  id?: number;
  ready?: number;
  error?: string;
  [key: string]: unknown;
}

export class Hermes {
  readonly child: ChildProcessWithoutNullStreams;
  /** The end of what it wrote to its standard error. */
  log = "";
  readonly #waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>();
  #asked = 0;

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.child = child;
    child.stderr.on("data", (chunk) => (this.log = (this.log + String(chunk)).slice(-20_000)));
    child.stdin.on("error", () => {});
    createInterface(child.stdout).on("line", (line) => this.#read(JSON.parse(line) as Answer));
    child.once("exit", (code, signal) => {
      const error = new Error(`Hermes has ended (${code ?? signal}): ${this.log.slice(-2000)}`);
      for (const { reject } of this.#waiting.values()) reject(error);
    });
  }

  /** Settles when its plugins are loaded. */
  static async of(child: ChildProcessWithoutNullStreams): Promise<Hermes> {
    const hermes = new Hermes(child);
    await hermes.#answer(0);
    return hermes;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** One turn: see vm/guest-side/chat.ts for what the model does. */
  async say(session: string, text: string): Promise<Turn> {
    const answer = await this.#ask({ session, say: text });
    return { ...(answer as unknown as Turn), tools: (answer["tools"] as string[]).map(toolResult) };
  }

  /** One tool call without a model. */
  async call(session: string, args: Record<string, unknown>, tool = "terminal"): Promise<ToolResult> {
    const { result } = await this.#ask({ session, call: tool, args });
    return toolResult(String(result));
  }

  interrupt(session: string): void {
    this.#write({ session, interrupt: true });
  }

  async #ask(asked: Record<string, unknown>): Promise<Answer> {
    this.#asked += 1;
    const id = this.#asked;
    const answer = this.#answer(id);
    this.#write({ ...asked, id });
    return answer;
  }

  async #answer(id: number): Promise<Answer> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #write(line: Record<string, unknown>): void {
    this.child.stdin.write(`${JSON.stringify(line)}\n`);
  }

  #read(answer: Answer): void {
    const id = answer.ready === undefined ? (answer.id ?? -1) : 0;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (answer.error === undefined) waiting?.resolve(answer);
    else waiting?.reject(new Error(answer.error));
  }
}

const toolResult = (text: string): ToolResult => {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? (value as ToolResult) : { text };
  } catch {
    return { text };
  }
};
