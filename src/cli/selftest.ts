/** `hermes-headroom selftest`. */
import type { Mode } from "../modes/mode.js";
import { selftest, type Check, type SelftestResult } from "../selftest/selftest.js";
import { formatSeconds, printLine, stdoutPaint, terminalWidth, type Paint, type Style, wrapText } from "./terminal.js";

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
  else render(result, stdoutPaint(), terminalWidth()).forEach((line) => printLine(line));
  return result.result === "fail" ? 1 : 0;
};

/** The lines for people: text in a column of its own, broken between words. */
export const render = (result: SelftestResult, paint: Paint, width: number): string[] => {
  const textWidth = Math.max(20, width - INDENT.length);
  const lines = result.checks.flatMap(({ name, status, detail, fix }) => {
    const [mark, style] = MARKS[status];
    const [first = "", ...more] = wrapText(detail, textWidth);
    const fixLines = fix === undefined ? [] : wrapText(`→ ${fix}`, textWidth);
    return [
      `  ${paint(style, mark)}  ${name.padEnd(NAME_WIDTH)} ${first}`,
      ...more.map((line) => INDENT + line),
      ...fixLines.map((line) => INDENT + paint("cyan", line)),
    ];
  });
  const [words, style] = VERDICTS[result.result];
  const reason = result.result === "degraded" ? ` – mode ${result.mode}, no kernel limit holds a job` : "";
  return [
    ...lines,
    `  ${paint("dim", `took ${formatSeconds(result.took_ms / 1000)}`)}`,
    `headroom selftest: ${paint(style, words)}${reason}`,
  ];
};
