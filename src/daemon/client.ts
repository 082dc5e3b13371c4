/** Talks to the daemon from the command line: a request, an answer. */
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { HeadroomError } from "../errors.js";
import { ownVersion } from "../native.js";
import { hermesHome } from "../settings/load.js";
import { LineReader } from "./frames.js";
import { LONGEST_FRAME_BYTES, PROTOCOL } from "./messages.js";
import { SOCKET_FILE } from "./server.js";

const PATIENCE_MS = 3000;

interface Answer {
  id?: unknown;
  result?: unknown;
  error?: { message: string; data?: { fix?: string } };
}

/** Asks one thing of the daemon of this user; `undefined` when none listens. */
export const askDaemon = async (runtimeDir: string, method: string): Promise<unknown> => {
  const socket = await open(join(runtimeDir, SOCKET_FILE));
  if (socket === undefined) return undefined;
  const hello = {
    protocol: PROTOCOL,
    version: ownVersion(),
    client: "hermes-headroom",
    hermes_home: hermesHome(process.env),
  };
  try {
    const answers = readAnswers(socket);
    const ask = async (id: number, name: string, params: unknown): Promise<unknown> => {
      socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: name, params })}\n`);
      return answers(id);
    };
    const greeted = await ask(1, "hello", hello);
    return method === "hello" ? greeted : await ask(2, method, {});
  } finally {
    socket.destroy();
  }
};

const open = async (path: string): Promise<Socket | undefined> =>
  new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(socket));
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (["ENOENT", "ECONNREFUSED"].includes(error.code ?? "")) resolve(undefined);
      else reject(new HeadroomError("E_DAEMON", `${path}: ${error.message}`, { cause: error }));
    });
  });

/** Waits for the answer with a number. */
const readAnswers = (socket: Socket): ((id: number) => Promise<unknown>) => {
  const lines = new LineReader(LONGEST_FRAME_BYTES);
  const waiting = new Map<unknown, (answer: Answer) => void>();
  socket.on("data", (piece: Buffer) => {
    for (const line of lines.push(piece) ?? []) {
      const answer = JSON.parse(line) as Answer;
      waiting.get(answer.id)?.(answer);
    }
  });
  return async (id) =>
    new Promise((resolve, reject) => {
      const fail = (message: string, fix?: string): void =>
        reject(new HeadroomError("E_DAEMON", message, fix === undefined ? {} : { fix }));
      const timer = setTimeout(
        () => fail("the daemon does not answer", "End it by its process number, see: hermes-headroom status"),
        PATIENCE_MS,
      );
      socket.once("close", () => fail("the daemon has closed the connection"));
      socket.once("error", () => fail("the daemon has closed the connection"));
      waiting.set(id, ({ result, error }) => {
        clearTimeout(timer);
        if (error === undefined) resolve(result);
        else fail(error.message, error.data?.fix);
      });
    });
};
