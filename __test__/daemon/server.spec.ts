/** The socket itself, with methods made for the test. */
import { once } from "node:events";
import { lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import type { Dispatch } from "../../src/daemon/connection.js";
import { Fault, FAULTS, LONGEST_FRAME_BYTES } from "../../src/daemon/messages.js";
import { listen, type DaemonServer } from "../../src/daemon/server.js";
import { eventually } from "../support/leftovers.js";
import { native } from "../support/modes.js";

const folder = (t: ExecutionContext): string => {
  const path = mkdtempSync(join(tmpdir(), "headroom-daemon-"));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

const serve = async (t: ExecutionContext, dispatch: Dispatch, at = folder(t)): Promise<DaemonServer> => {
  const server = await listen(native, at, dispatch);
  if (server === undefined) throw new Error("somebody else listens");
  t.teardown(async () => server.close());
  return server;
};

const echo: Dispatch = async (method, params) => ({ method, params });

/** A client that collects lines. */
const client = async (t: ExecutionContext, path: string): Promise<{ socket: Socket; lines: unknown[] }> => {
  const socket = connect(path);
  await once(socket, "connect");
  t.teardown(() => socket.destroy());
  socket.on("error", () => {});
  const lines: unknown[] = [];
  let rest = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    const parts = (rest + String(chunk)).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts.map((line) => JSON.parse(line) as unknown));
  });
  return { socket, lines };
};

const request = (id: number, method: string, params = {}): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;

test("requests are answered as they are done, each with its number", async (t) => {
  let letGo: (() => void) | undefined;
  const slow = new Promise<void>((resolve) => (letGo = resolve));
  const server = await serve(t, async (method) => {
    if (method === "slow") await slow;
    return method;
  });
  const { socket, lines } = await client(t, server.path);
  socket.write(request(1, "slow") + request(2, "fast"));
  t.true(await eventually(() => lines.length === 1));
  letGo?.();
  t.true(await eventually(() => lines.length === 2));
  t.deepEqual(lines, [
    { jsonrpc: "2.0", id: 2, result: "fast" },
    { jsonrpc: "2.0", id: 1, result: "slow" },
  ]);
});

test("the socket is this user's alone", async (t) => {
  const server = await serve(t, echo);
  t.is(lstatSync(server.path).mode & 0o777, 0o600);
});

test("a second one finds the role taken, and gets it when the first has ended", async (t) => {
  const at = folder(t);
  const first = await serve(t, echo, at);
  t.is(await listen(native, at, echo), undefined);
  await first.close();
  const second = await serve(t, echo, at);
  const { socket, lines } = await client(t, second.path);
  socket.write(request(1, "a"));
  t.true(await eventually(() => lines.length === 1));
});

test("the socket of one that was killed is replaced; what is none is left alone", async (t) => {
  const at = folder(t);
  const dead = createServer().listen(join(at, "daemon.sock"));
  await once(dead, "listening");
  dead.close();
  mkdirSync(join(at, "other"), { mode: 0o700 });
  writeFileSync(join(at, "other", "daemon.sock"), "");
  await t.notThrowsAsync(serve(t, echo, at));
  await t.throwsAsync(listen(native, join(at, "other"), echo), { message: /is no socket/ });
});

test("no JSON, no request and a line without end end that connection and no other", async (t) => {
  const server = await serve(t, echo);
  const good = await client(t, server.path);
  const wrong: [string | Buffer, number][] = [
    ["{no json\n", FAULTS.parse],
    ['{"jsonrpc":"1.0","id":1,"method":"a"}\n', FAULTS.request],
    ["[]\n", FAULTS.request],
    ["null\n", FAULTS.request],
    [Buffer.alloc(LONGEST_FRAME_BYTES + 1, 0x61), FAULTS.request],
    [Buffer.from([0xff, 0xfe, 0x0a]), FAULTS.parse],
  ];
  for (const [text, code] of wrong) {
    const { socket, lines } = await client(t, server.path);
    socket.write(text);
    t.true(await eventually(() => socket.destroyed || socket.readableEnded), String(text).slice(0, 30));
    t.like(lines[0], { error: { code } });
    t.is(lines.length, 1);
  }
  good.socket.write(request(7, "still here"));
  t.true(await eventually(() => good.lines.length === 1));
});

test("whatever a method throws is an answer", async (t) => {
  const server = await serve(t, async (method) => {
    if (method === "fault") throw new Fault(FAULTS.method, "no such method");
    throw new Error("broken");
  });
  const { socket, lines } = await client(t, server.path);
  socket.write(request(1, "fault"));
  t.true(await eventually(() => lines.length === 1));
  socket.write(request(2, "else"));
  t.true(await eventually(() => lines.length === 2));
  t.like(lines[0], { id: 1, error: { code: FAULTS.method } });
  t.like(lines[1], { id: 2, error: { code: FAULTS.failed, data: { code: "E_DAEMON" } } });
});

test("a client that is gone takes back what it asked", async (t) => {
  let aborted = false;
  let asked = false;
  const server = await serve(
    t,
    async (_method, _params, { signal }) =>
      new Promise((resolve) => {
        asked = true;
        signal.addEventListener("abort", () => {
          aborted = true;
          resolve(null);
        });
      }),
  );
  const { socket } = await client(t, server.path);
  socket.write(request(1, "wait"));
  t.true(await eventually(() => asked));
  t.is(server.connections(), 1);
  socket.destroy();
  t.true(await eventually(() => aborted && server.connections() === 0));
});

test("a client that asks for too much at once is told so, and served on", async (t) => {
  let letGo: (() => void) | undefined;
  const slow = new Promise<void>((resolve) => (letGo = resolve));
  const server = await serve(t, async () => slow);
  const { socket, lines } = await client(t, server.path);
  for (let id = 0; id < 70; id += 1) socket.write(request(id, "wait"));
  t.true(await eventually(() => lines.length === 6));
  letGo?.();
  t.true(await eventually(() => lines.length === 70));
});

test("a notification gets no answer", async (t) => {
  const seen: string[] = [];
  const server = await serve(t, async (method) => {
    seen.push(method);
    return {};
  });
  const { socket, lines } = await client(t, server.path);
  socket.write(`{"jsonrpc":"2.0","method":"told"}\n${request(1, "asked")}`);
  t.true(await eventually(() => lines.length === 1));
  t.deepEqual(seen, ["told", "asked"]);
});
