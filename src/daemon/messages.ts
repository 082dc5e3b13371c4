/** JSON-RPC 2.0 as it is spoken on the daemon's socket. See docs/daemon-protocol.md. */
import { z } from "zod";
import { HeadroomError } from "../errors.js";

export const PROTOCOL = 1;
export const LONGEST_FRAME_BYTES: number = 4 * 1024 * 1024;

export const FAULTS = {
  parse: -32700,
  request: -32600,
  method: -32601,
  params: -32602,
  failed: -32000,
  protocol: -32001,
} as const;

export type MessageId = string | number;

export interface RequestMessage {
  jsonrpc: "2.0";
  id?: MessageId | undefined;
  method: string;
  params: Record<string, unknown>;
}

const Request: z.ZodType<RequestMessage> = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string().max(200), z.number()]).optional(),
  method: z.string().max(100),
  params: z.record(z.string(), z.unknown()).default({}),
});

/** An answer that says what is wrong. */
export class Fault extends Error {
  readonly number: number;
  readonly data: { code: string; fix?: string | undefined } | undefined;

  constructor(number: number, message: string, data?: { code: string; fix?: string | undefined }) {
    super(message);
    this.number = number;
    this.data = data;
  }
}

/** Throws a `Fault` for what is no request. */
export const readRequest = (line: string): RequestMessage => {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Fault(FAULTS.parse, "a line of JSON is wanted");
  }
  const read = Request.safeParse(value);
  if (!read.success) throw new Fault(FAULTS.request, `no request: ${problemOf(read.error)}`);
  return read.data;
};

/** Throws a `Fault` for parameters that do not fit. */
export const readParams = <Value>(schema: z.ZodType<Value>, params: unknown): Value => {
  const read = schema.safeParse(params);
  if (!read.success) throw new Fault(FAULTS.params, `parameters: ${problemOf(read.error)}`);
  return read.data;
};

/** Where, and what is wanted there; never what was given, which may be a secret. */
const problemOf = ({ issues }: z.ZodError): string =>
  issues.map(({ path, message }) => `${path.join(".") || "message"}: ${message}`).join("; ");

/** Whatever was thrown, as the caller gets it. */
export const toFault = (error: unknown): Fault => {
  if (error instanceof Fault) return error;
  if (error instanceof HeadroomError)
    return new Fault(FAULTS.failed, error.message, { code: error.code, fix: error.fix });
  const message = error instanceof Error ? error.message : String(error);
  return new Fault(FAULTS.failed, message, { code: "E_DAEMON" });
};

export const answerText = (id: MessageId, result: unknown): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`;

export const faultText = (id: MessageId | null, { number, message, data }: Fault): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, error: { code: number, message, ...(data === undefined ? {} : { data }) } })}\n`;

export const notificationText = (method: string, params: unknown): string =>
  `${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`;
