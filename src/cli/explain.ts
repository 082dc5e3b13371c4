/** `hermes-headroom explain`: what would happen to a command, without running it. */
import { statSync } from "node:fs";
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
import { breakCommand } from "./break-command.js";
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
  const cwd = directoryFrom(options.cwd);
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
    cwd,
    environment: process.env,
  });
  if (options.json) printLine(JSON.stringify(explanation));
  else render(explanation, stdoutPaint(), terminalWidth()).forEach((line) => printLine(line));
  return 0;
};

const directoryFrom = (given: string | undefined): string => {
  const path = resolve(given ?? ".");
  if (given === undefined || statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  throw new HeadroomError("E_USAGE", `--cwd: there is no directory ${path}`, {
    fix: "Name one that is there, or leave it out for the current one.",
  });
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

/**
 * One JSON object a line in, one a line out, in the same order. A bad line is answered and goes on; a blank one
 * is a command of nothing, so that lines can be counted off against each other.
 */
const explainBatch = async (defaults: ExplainOptions): Promise<number> => {
  const { parseBatchLine } = await import("../explain/batch.js");
  let failed = 0;
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const request = line.trim() === "" ? { command: "", options: {} } : parseBatchLine(line);
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
  const room = Number.isFinite(width) ? Math.max(width - INDENT, 20) : Infinity;
  const prose = (name: string, texts: readonly string[]): string[] =>
    rows(
      name,
      texts.flatMap((text) => wrapText(text, room)),
    );
  const verdict = heavy ? paint("yellow", `heavy (${kind})`) : paint("green", "light");
  const lines = [row("verdict", verdict), ...rows("command", shellLines(command, room, matches, paint))];
  if (explanation.problem !== undefined) lines.push(...prose("not read", [explanation.problem]));
  if (!heavy) return lines;
  lines.push(
    ...prose(
      "because",
      matches.map(({ text, why }) => `${oneLine(text)}: ${why}`),
    ),
  );
  const swap = explanation.swap_cap_mb < 0 ? "unlimited swap" : `${formatMb(explanation.swap_cap_mb)} of swap`;
  const box = explanation.capped
    ? `${formatMb(explanation.cap_mb)} and ${swap}, mode ${explanation.mode}, ${count(explanation.workers, "worker")}`
    : "none: the work is done outside of the process tree, so it takes turns but has no cap";
  lines.push(...prose("box", [box]));
  if (explanation.learned_peak_mb !== null)
    lines.push(row("before", `it needed ${formatMb(explanation.learned_peak_mb)}`));
  if (explanation.changes.length === 0) return [...lines, row("rewrite", "none")];
  return [
    ...lines,
    ...rows("rewrite", shellLines(explanation.lightened, room, [], paint)).map((line) => outdented(line, width)),
    ...prose("changes", explanation.changes),
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
/** The assignment of `NODE_OPTIONS` and its backslash are as wide as the rest of 80 columns, and one more. */
const outdented = (line: string, width: number): string => {
  const over = line.length - width;
  return over > 0 && over < INDENT && line.startsWith(" ".repeat(INDENT)) ? line.slice(over) : line;
};
const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? "" : "s"}`;
const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ");

/** The command with its heavy words marked, in lines that a shell takes as one when they are copied. */
const shellLines = (command: string, room: number, matches: Explanation["matches"], paint: Paint): string[] => {
  const lines = breakCommand(command, room);
  return lines.map(({ start, end }, index) => {
    const marked = highlight(command, start, end, matches, paint);
    if (index === lines.length - 1 || command[end] === "\n") return marked;
    // The next line is indented, so the words stay apart without a space here.
    return end - start + 2 <= room ? `${marked} \\` : `${marked}\\`;
  });
};

/** The text from `from` to `until`, with its heavy words marked. */
const highlight = (
  command: string,
  from: number,
  until: number,
  matches: Explanation["matches"],
  paint: Paint,
): string => {
  let result = "";
  let done = from;
  for (const match of matches.toSorted((a, b) => a.start - b.start)) {
    const start = Math.max(match.start, from);
    const end = Math.min(match.end, until);
    if (start < done || start >= end) continue;
    result += command.slice(done, start) + paint("bold", command.slice(start, end));
    done = end;
  }
  return result + command.slice(done, until);
};
