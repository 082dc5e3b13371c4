/** One client: its requests, each with its own answer, and an end that takes back what is not answered yet. */
import type { Socket } from "node:net";
import { LineReader } from "./frames.js";
import {
  answerText,
  Fault,
  FAULTS,
  faultText,
  LONGEST_FRAME_BYTES,
  notificationText,
  readRequest,
  toFault,
  type RequestMessage,
} from "./messages.js";

/** What a method knows about who calls. One object for the life of a connection, but for the signal. */
export interface Caller {
  /** Whatever `hello` has left for the other methods. */
  readonly state: Map<string, unknown>;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  notify(method: string, params: unknown): void;
}

/** Answers a method, or throws. */
export type Dispatch = (method: string, params: unknown, caller: Caller) => Promise<unknown>;

/** A client that asks for more at once is broken. */
const MOST_REQUESTS = 64;
/** A client that does not read its answers is cut off rather than filled up for. */
const MOST_UNREAD_BYTES = 16 * 1024 * 1024;

/** Serves a socket until it is closed. Never throws. */
export const serveConnection = (socket: Socket, dispatch: Dispatch): void => {
  const lines = new LineReader(LONGEST_FRAME_BYTES);
  const gone = new AbortController();
  const state = new Map<string, unknown>();
  let pending = 0;

  const send = (text: string): void => {
    if (socket.destroyed || !socket.writable) return;
    socket.write(text);
    if (socket.writableLength > MOST_UNREAD_BYTES) socket.destroy();
  };
  const caller: Caller = {
    state,
    signal: gone.signal,
    notify: (method, params) => send(notificationText(method, params)),
  };
  /** What cannot be read any further is told once; then the connection ends. */
  const giveUp = (fault: Fault): void => {
    send(faultText(null, fault));
    socket.end();
  };
  const answer = async ({ id, method, params }: RequestMessage): Promise<void> => {
    if (pending >= MOST_REQUESTS) {
      if (id !== undefined) send(faultText(id, new Fault(FAULTS.failed, "too many requests at once")));
      return;
    }
    pending += 1;
    try {
      const result = await dispatch(method, params, caller);
      if (id !== undefined) send(answerText(id, result));
    } catch (error) {
      if (id !== undefined) send(faultText(id, toFault(error)));
    } finally {
      pending -= 1;
    }
  };

  socket.on("data", (piece: Buffer) => {
    const whole = lines.push(piece);
    if (whole === undefined) {
      giveUp(new Fault(FAULTS.request, `a line may have ${LONGEST_FRAME_BYTES} bytes`));
      return;
    }
    for (const line of whole) {
      if (socket.writableEnded) return;
      if (line.trim() === "") continue;
      try {
        void answer(readRequest(line));
      } catch (error) {
        giveUp(toFault(error));
        return;
      }
    }
  });
  socket.on("error", () => socket.destroy());
  socket.on("end", () => socket.end());
  socket.on("close", () => gone.abort());
};
