/** `hermes-headroom explain`: what would happen to a command, without running it. */
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { resolve } from "node:path";
import { automaticCapMb } from "../admission/cap.js";
import { HeadroomError } from "../errors.js";
import { dataDirectory } from "../events/log.js";
import { explain, type Explanation, type ExplainOptions } from "../explain/explain.js";
import { measureMemory } from "../memory.js";
import { probeModes } from "../modes/choose.js";
import { withoutControls } from "../outcome/command-text.js";
import { normaliseCommand, projectDirectory } from "../peaks/key.js";
import { PeakStore } from "../peaks/store.js";
import { loadSettings } from "../settings/load.js";
import { loadNative } from "../native.js";
import { quoteWords } from "../shell/quote.js";
import {
  formatMb,
  printError,
  printLine,
  stderrPaint,
  stdoutPaint,
  terminalWidth,
  wrapText,
  type Paint,
} from "./terminal.js";

export interface ExplainCommandOptions {
  json?: boolean;
  batch?: boolean;
  cwd?: string;
  cpus?: number;
  cap?: number;
  set?: string[];
}

export const explainCommand = async (words: string[], options: ExplainCommandOptions): Promise<number> => {
  const defaults = await measured(options);
  if (options.batch) {
    if (words.length > 0) throw new HeadroomError("E_USAGE", "with --batch the commands come from standard input");
    return explainBatch(defaults);
  }
  if (words.length === 0) {
    throw new HeadroomError("E_USAGE", "no command to explain", {
      fix: "Write it behind --: hermes-headroom explain -- 'npm test'",
    });
  }
  const text = words.length === 1 ? (words[0] ?? "") : quoteWords(words);
  const explanation = explain(text, {
    ...defaults,
    cwd: resolve(options.cwd ?? "."),
    environment: process.env,
  });
  if (options.json) printLine(JSON.stringify(explanation));
  else render(explanation, stdoutPaint(), terminalWidth()).forEach((line) => printLine(line));
  return 0;
};

/** What this machine gives, where the options do not say. */
const measured = async ({ cpus, cap, set = [] }: ExplainCommandOptions): Promise<ExplainOptions> => {
  const native = loadNative();
  const mode = native === undefined ? "off" : (probeModes(native).usable[0]?.mode ?? "off");
  const capMb = cap ?? (native === undefined ? 0 : automaticCapMb(measureMemory(native)));
  const { settings, patterns, problems } = await loadSettings({ environment: process.env, set });
  const paint = stderrPaint();
  for (const problem of problems) printError(`${paint("yellow", "headroom:")} ${problem}`);
  const peaks = new PeakStore(dataDirectory(process.env));
  return {
    cpus: cpus ?? availableParallelism(),
    capMb,
    swapMb: settings.swap_mb,
    mode,
    lightens: settings.lighten,
    ...(patterns === undefined ? {} : { patterns }),
    learnedPeakMb: (cwd, classified) => peaks.recall(projectDirectory(cwd), normaliseCommand(classified))?.peak_mb,
  };
};

/** One JSON object a line in, one a line out, in the same order. A bad line is answered and goes on. */
const explainBatch = async (defaults: ExplainOptions): Promise<number> => {
  const { parseBatchLine } = await import("../explain/batch.js");
  let failed = 0;
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (line.trim() === "") continue;
    const request = parseBatchLine(line);
    if ("error" in request) {
      failed += 1;
      printLine(JSON.stringify(request));
      continue;
    }
    const { command, options } = request;
    printLine(JSON.stringify(explain(command, { ...defaults, ...options })));
  }
  return failed > 0 ? 1 : 0;
};

/** The lines for people. */
export const render = (raw: Explanation, paint: Paint, width: number): string[] => {
  const explanation = shownSafely(raw);
  const { heavy, kind, command, matches } = explanation;
  const verdict = heavy ? paint("yellow", `heavy (${kind})`) : paint("green", "light");
  const lines = [row("verdict", verdict), ...rows("command", [highlight(command, matches, paint)])];
  if (explanation.problem !== undefined) lines.push(row("not read", explanation.problem));
  if (!heavy) return lines;
  lines.push(
    ...rows(
      "because",
      matches.map(({ text, why }) => `${oneLine(text)}: ${why}`),
    ),
  );
  const swap = explanation.swap_cap_mb < 0 ? "unlimited swap" : `${formatMb(explanation.swap_cap_mb)} of swap`;
  lines.push(
    explanation.capped
      ? row(
          "box",
          `${formatMb(explanation.cap_mb)} and ${swap}, mode ${explanation.mode}, ${count(explanation.workers, "worker")}`,
        )
      : row("box", "none: the work is done outside of the process tree, so it takes turns but has no cap"),
  );
  if (explanation.learned_peak_mb !== null)
    lines.push(row("before", `it needed ${formatMb(explanation.learned_peak_mb)}`));
  if (explanation.changes.length === 0) return [...lines, row("rewrite", "none")];
  const room = Number.isFinite(width) ? Math.max(width - INDENT, 20) : Infinity;
  return [
    ...lines,
    ...rows("rewrite", explanation.lightened.split("\n")),
    ...rows(
      "changes",
      explanation.changes.flatMap((change) => wrapText(change, room)),
    ),
  ];
};

/** A command must not be able to move the cursor over what is said about it. */
const shownSafely = (explanation: Explanation): Explanation => ({
  ...explanation,
  command: withoutControlsButLines(explanation.command),
  lightened: withoutControlsButLines(explanation.lightened),
  changes: explanation.changes.map(withoutControls),
  matches:
    withoutControlsButLines(explanation.command) === explanation.command
      ? explanation.matches
      : plainMatches(explanation),
});

const withoutControlsButLines = (text: string): string => text.split("\n").map(withoutControls).join("\n");

/** Without spans: they are those of the command as it came. */
const plainMatches = ({ matches }: Explanation): Explanation["matches"] =>
  matches.map(({ text, kind, why }) => ({
    text: withoutControls(text),
    start: 0,
    end: 0,
    kind,
    why: withoutControls(why),
  }));

const INDENT = 10;
const row = (name: string, text: string): string => `${name.padEnd(INDENT - 1)} ${text}`;
const rows = (name: string, texts: readonly string[]): string[] =>
  texts.flatMap((text) => text.split("\n")).map((text, index) => row(index === 0 ? name : "", text));
const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? "" : "s"}`;
const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ");

/** The command with its heavy words marked. */
const highlight = (command: string, matches: Explanation["matches"], paint: Paint): string => {
  let result = "";
  let done = 0;
  for (const { start, end } of matches.toSorted((a, b) => a.start - b.start)) {
    if (start < done) continue;
    result += command.slice(done, start) + paint("bold", command.slice(start, end));
    done = end;
  }
  return result + command.slice(done);
};
