/**
 * What a gateway talks to, on loopback: a model that does what the last message says, and a chat service (ntfy's
 * wire form) with as many users as one likes.
 *
 * Each line `run COMMAND` of a message makes the model call the terminal once, one line after the other; so do
 * `behind COMMAND` (in the background) and `code PYTHON`. `wait:5 COMMAND` is `run` with a timeout of 5 s. Then it
 * answers `done` and the first of these lines; anything else is answered with `heard MESSAGE`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ModelMessage {
  role: string;
  content: unknown;
}

/** One reply in the chat, and when it came (performance.now()). */
export interface Reply {
  at: number;
  text: string;
}

export class Chat {
  readonly replies: Reply[] = [];
  /** What the tools gave the model, in order. */
  readonly toolResults: string[] = [];
  /** Messages of every request that had tools. */
  readonly requests: ModelMessage[][] = [];
  /** Gateways that listen now. */
  readonly #streams = new Set<ServerResponse>();
  #messages = 0;
  #calls = 0;
  #port = 0;
  #server: Server | undefined;

  get port(): number {
    return this.#port;
  }

  get isConnected(): boolean {
    return this.#streams.size > 0;
  }

  async listen(): Promise<void> {
    const server = createServer((request, response) => void this.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
    server.unref();
    this.#server = server;
  }

  close(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }

  send(user: string, message: string): void {
    this.#messages += 1;
    const line = { id: `m${this.#messages}-${Date.now()}`, time: Math.floor(Date.now() / 1000), event: "message" };
    for (const stream of this.#streams) stream.write(`${JSON.stringify({ ...line, topic: user, message })}\n`);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const path = (request.url ?? "").split("?")[0] ?? "";
    if (path.endsWith("/json") && request.method === "GET") {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write(`${JSON.stringify({ id: "open", event: "open", topic: "in" })}\n`);
      this.#streams.add(response);
      response.once("close", () => this.#streams.delete(response));
    } else if (path.endsWith("/models")) {
      answer(response, { object: "list", data: [{ id: "fake-model", object: "model", context_length: 200_000 }] });
    } else if (path.endsWith("/chat/completions")) {
      this.#complete(JSON.parse(body) as { messages: ModelMessage[]; stream?: boolean; tools?: unknown[] }, response);
    } else if (request.method === "POST") {
      this.replies.push({ at: performance.now(), text: body });
      answer(response, { id: `r${this.replies.length}` });
    } else {
      response.writeHead(404).end();
    }
  }

  #complete(
    { messages, stream, tools = [] }: { messages: ModelMessage[]; stream?: boolean; tools?: unknown[] },
    response: ServerResponse,
  ): void {
    if (tools.length > 0) this.requests.push(messages);
    const lastUser = messages.findLastIndex(({ role }) => role === "user");
    const asked = textOf(messages[lastUser]?.content);
    const results = messages.slice(lastUser + 1).filter(({ role }) => role === "tool");
    const calls = callsIn(asked);
    const next = tools.length > 0 ? calls[results.length] : undefined;
    if (results.length > 0) this.toolResults.push(textOf(results.at(-1)?.content));
    const text = calls[0] === undefined ? `heard ${asked.split("\n")[0]}` : `done ${calls[0].line}`;
    this.#calls += 1;
    const call = { id: `call_${this.#calls}`, type: "function", function: next?.function };
    const message = next
      ? { role: "assistant", content: null, tool_calls: [{ index: 0, ...call }] }
      : { role: "assistant", content: text };
    const base = { id: `cc-${Date.now()}`, created: Math.floor(Date.now() / 1000), model: "fake-model" };
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
    const finish_reason = next ? "tool_calls" : "stop";
    if (!stream) {
      answer(response, { ...base, object: "chat.completion", usage, choices: [{ index: 0, message, finish_reason }] });
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream", connection: "close" });
    const chunks = [
      { choices: [{ index: 0, delta: message, finish_reason: null }] },
      { choices: [{ index: 0, delta: {}, finish_reason }] },
      { choices: [], usage },
    ];
    for (const chunk of chunks) {
      response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", ...chunk })}\n\n`);
    }
    response.end("data: [DONE]\n\n");
  }
}

interface ScriptedCall {
  line: string;
  function: { name: string; arguments: string };
}

const CALL = /^(?:\[[^\]]*\] )?(run|behind|code|wait:(\d+)) (.*)$/;

const callsIn = (asked: string): ScriptedCall[] =>
  asked.split("\n").flatMap((text) => {
    const [, word = "", seconds = "240", line = ""] = CALL.exec(text) ?? [];
    if (word === "") return [];
    if (word === "code")
      return [{ line, function: { name: "execute_code", arguments: JSON.stringify({ code: line }) } }];
    const how = word === "behind" ? { background: true } : { timeout: Number(seconds) };
    return [{ line, function: { name: "terminal", arguments: JSON.stringify({ command: line, ...how }) } }];
  });

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((part) => String((part as { text?: unknown }).text ?? "")).join("")
      : "";

const answer = (response: ServerResponse, value: unknown): void => {
  const body = JSON.stringify(value);
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
};
