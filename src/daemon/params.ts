/** What the methods of the socket are given. See docs/daemon-protocol.md. */
import { z } from "zod";

export interface HelloParams {
  protocol: number;
  version: string;
  client?: string | undefined;
  hermes_home: string;
  /** Those of the agent that begin with HEADROOM_. */
  environment: Record<string, string>;
}

export interface PrepareParams {
  command: string;
  cwd?: string | null | undefined;
  /** Of the variables that `hello` has named, those that are set. */
  env: Record<string, string>;
}

export interface AdmitParams extends PrepareParams {
  session_id: string;
  call_id: string;
  tool: "terminal" | "execute_code";
  background: boolean;
  agent_pid: number;
  backend: string;
  deadline_s?: number | null | undefined;
}

export interface EndParams {
  job: string | null;
  call_id: string;
  background: boolean;
  exit_code?: number | null | undefined;
  interrupted?: boolean | null | undefined;
  timed_out?: boolean | null | undefined;
  process?: string | null | undefined;
  output_tail?: string | null | undefined;
}

export interface NotesParams {
  session_id: string;
}

export interface SessionParams {
  session_id: string;
  event: "start" | "end" | "finalize";
}

export interface Params {
  hello: z.ZodType<HelloParams>;
  prepare: z.ZodType<PrepareParams>;
  admit: z.ZodType<AdmitParams>;
  end: z.ZodType<EndParams>;
  notes: z.ZodType<NotesParams>;
  session: z.ZodType<SessionParams>;
}

const absolute = z.string().max(4096).startsWith("/");
const name = z.string().max(500);
const environment = z.record(z.string().max(200), z.string().max(32_768)).default({});
const command = z.string().max(1_048_576);

export const PARAMS: Params = {
  hello: z.object({
    protocol: z.number(),
    version: name,
    client: name.optional(),
    hermes_home: absolute,
    environment,
  }),
  prepare: z.object({ command, cwd: absolute.nullish(), env: environment }),
  admit: z.object({
    command: command.default(""),
    cwd: absolute.nullish(),
    env: environment,
    session_id: name.default(""),
    call_id: name.default(""),
    tool: z.enum(["terminal", "execute_code"]),
    background: z.boolean().default(false),
    agent_pid: z.int().positive(),
    backend: name.default("local"),
    deadline_s: z.number().positive().nullish(),
  }),
  end: z.object({
    job: name.nullable(),
    call_id: name.default(""),
    background: z.boolean().default(false),
    exit_code: z.int().nullish(),
    interrupted: z.boolean().nullish(),
    timed_out: z.boolean().nullish(),
    process: name.nullish(),
    output_tail: z.string().max(65_536).nullish(),
  }),
  notes: z.object({ session_id: name }),
  session: z.object({ session_id: name, event: z.enum(["start", "end", "finalize"]) }),
};
