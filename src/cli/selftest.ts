/** `hermes-headroom selftest`. */
import type { Mode } from "../modes/mode.js";
import { selftest, type Check, type SelftestResult } from "../selftest/selftest.js";
import { formatSeconds, printLine, stdoutPaint, type Paint, type Style } from "./terminal.js";

const MARKS: Record<Check["status"], [mark: string, style: Style]> = {
  ok: ["ok  ", "green"],
  warn: ["warn", "yellow"],
  fail: ["FAIL", "red"],
};

const VERDICTS: Record<SelftestResult["result"], [words: string, style: Style]> = {
  pass: ["PASS", "green"],
  degraded: ["PASS (degraded)", "yellow"],
  fail: ["FAIL", "red"],
};

const NAME_WIDTH = 19;
const INDENT = " ".repeat(NAME_WIDTH + 9);

/** Prints the result and answers the exit code. */
export const selftestCommand = async (options: { mode?: Mode; json?: boolean }): Promise<number> => {
  const result = await selftest(options.mode);
  if (options.json) printLine(JSON.stringify(result));
  else render(result, stdoutPaint()).forEach((line) => printLine(line));
  return result.result === "fail" ? 1 : 0;
};

/** The lines for people. */
export const render = (result: SelftestResult, paint: Paint): string[] => {
  const lines = result.checks.flatMap(({ name, status, detail, fix }) => {
    const [mark, style] = MARKS[status];
    const line = `  ${paint(style, mark)}  ${name.padEnd(NAME_WIDTH)} ${detail}`;
    return fix === undefined ? [line] : [line, `${INDENT}${paint("cyan", `→ ${fix}`)}`];
  });
  const [words, style] = VERDICTS[result.result];
  const reason = result.result === "degraded" ? ` – mode ${result.mode}, no kernel limit holds a job` : "";
  return [
    ...lines,
    `  ${paint("dim", `took ${formatSeconds(result.took_ms / 1000)}`)}`,
    `headroom selftest: ${paint(style, words)}${reason}`,
  ];
};
