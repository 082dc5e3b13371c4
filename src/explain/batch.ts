/** Reads the lines of `explain --batch`. */
import { z } from "zod";
import { compilePatterns } from "../classify/patterns.js";
import type { ExplainOptions } from "./explain.js";

const Line = z.object({
  command: z.string(),
  cwd: z.string().startsWith("/", "an absolute path is wanted").optional(),
  cpus: z.int().min(1).max(4096).optional(),
  cap_mb: z.int().min(1).optional(),
  env: z.record(z.string(), z.string()).optional(),
  extra_heavy_patterns: z.array(z.string()).optional(),
  exclude_patterns: z.array(z.string()).optional(),
});

export interface BatchError {
  error: { code: "E_USAGE"; message: string };
}

export type BatchRequest = { command: string; options: Partial<ExplainOptions> } | BatchError;

const failure = (message: string): BatchError => ({ error: { code: "E_USAGE", message } });

export const parseBatchLine = (line: string): BatchRequest => {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return failure("the line is not JSON: one object a line is wanted");
  }
  const parsed = Line.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return failure(`${issue?.path.join(".") || "the line"}: ${issue?.message ?? "not as wanted"}`);
  }
  const {
    command,
    cwd,
    cpus,
    cap_mb: capMb,
    env: environment,
    extra_heavy_patterns: extra = [],
    exclude_patterns: exclude = [],
  } = parsed.data;
  const { patterns, bad } = compilePatterns(extra, exclude);
  const [wrong] = bad;
  if (wrong !== undefined)
    return failure(`the pattern ${JSON.stringify(wrong.pattern)} is no regular expression: ${wrong.problem}`);
  return {
    command,
    options: {
      ...(extra.length + exclude.length === 0 ? {} : { patterns }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(cpus === undefined ? {} : { cpus }),
      ...(capMb === undefined ? {} : { capMb }),
      ...(environment === undefined ? {} : { environment }),
    },
  };
};
