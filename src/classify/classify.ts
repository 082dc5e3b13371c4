/** Heavy or light, for a whole text. */
import { join } from "node:path";
import { commandName, packageName } from "../shell/names.js";
import { optionNames } from "../shell/options.js";
import { readText, type ReadText } from "../shell/read.js";
import type { Run } from "../shell/simple-command.js";
import { isKnown } from "../shell/word.js";
import { judge, type HeavyWork, type Judgement } from "../tools/judge.js";
import { toolNamed } from "../tools/lookup.js";
import type { Kind } from "../tools/schema.js";
import { throughInterpreter } from "./interpreters.js";
import { mayBeHeavy } from "./first-filter.js";
import type { Patterns } from "./patterns.js";
import { noFiles, type ProjectFiles } from "./scripts/files.js";
import { packageScript } from "./scripts/package-json.js";
import { justRecipe, makeRecipe } from "./scripts/recipes.js";
import type { ScriptPart } from "./scripts/script-part.js";

export interface ClassifyOptions {
  /** Where the text would run; without it no script is looked up. */
  cwd?: string | undefined;
  files?: ProjectFiles;
  patterns?: Patterns;
}

/** A heavy program in the text. */
export interface HeavyRun {
  run: Run;
  work: HeavyWork;
  kind: Kind;
  /** Programs of the script behind it, where its text is at hand. */
  script: ScriptContents | undefined;
  /** It works in a process tree that is not ours. */
  elsewhere: boolean;
  /** The number of workers that a file of the project gives it. */
  inFile: string | undefined;
  why: string;
}

export interface ScriptContents {
  runs: HeavyRun[];
  /** Words given behind the command go to this program alone, so it may be told its workers there. */
  takesWords: HeavyRun | undefined;
}

export interface Match {
  /** The words, as they stand in the text. */
  text: string;
  /** UTF-16 offsets in the text; `end` is exclusive. */
  start: number;
  end: number;
  kind: Kind;
  why: string;
}

export interface Classification {
  heavy: boolean;
  /** The kind of the last heavy part. */
  kind: Kind | null;
  matches: Match[];
  runs: HeavyRun[];
  read: ReadText;
  /** Why nothing may be edited. */
  problem: string | undefined;
}

/** `npm run a` that runs `npm run b` that runs … */
const DEEPEST_SCRIPT = 5;

const LIGHT: Classification = {
  heavy: false,
  kind: null,
  matches: [],
  runs: [],
  read: { runs: [], simples: [], problem: undefined },
  problem: undefined,
};

/** Never throws; what cannot be read is light. */
export const classify = (text: string, options: ClassifyOptions = {}): Classification => {
  if (options.patterns === undefined && !mayBeHeavy(text)) return LIGHT;
  const read = readText(text, options.cwd);
  const runs: HeavyRun[] = [];
  const matches: Match[] = [];
  for (const run of read.runs) {
    const { start, end } = spanOf(run);
    const texts = [text.slice(start, end), text.slice(run.simple.pos, run.simple.end)];
    if (texts.some((part) => options.patterns?.excludes(part))) continue;
    const heavy = judgeRun(run, options, 0);
    if (heavy !== undefined && heavy.verdict === "heavy") {
      runs.push(heavy.found);
      addMatch(matches, { text: texts[0] ?? "", start, end, kind: heavy.found.kind, why: heavy.found.why });
    } else {
      const pattern = texts.map((part) => options.patterns?.extra(part)).find((found) => found !== undefined);
      if (pattern !== undefined)
        addMatch(matches, { text: texts[0] ?? "", start, end, kind: "custom", why: `matches the pattern ${pattern}` });
    }
  }
  const last = matches.at(-1);
  return { heavy: last !== undefined, kind: last?.kind ?? null, matches, runs, read, problem: read.problem };
};

const addMatch = (matches: Match[], match: Match): void => {
  const isThere = matches.some(
    ({ start, end, kind }) => start === match.start && end === match.end && kind === match.kind,
  );
  if (!isThere) matches.push(match);
};

const spanOf = ({ words, simple }: Run): { start: number; end: number } => {
  const start = words[0]?.pos ?? simple.pos;
  return { start, end: Math.max(words.at(-1)?.end ?? simple.end, start) };
};

type RunJudgement = { verdict: "heavy"; found: HeavyRun } | { verdict: "light" | "unknown" };

const judgeRun = (outer: Run, options: ClassifyOptions, depth: number): RunJudgement => {
  const run = throughInterpreter(outer);
  const values = run.words.map(({ value }) => value);
  const judged: Judgement = judge(values, run.words[0]?.source);
  if (judged.verdict !== "heavy") return judged;
  return judgeScript(run, judged, options, depth);
};

const heavyRun = (run: Run, work: HeavyWork, options: ClassifyOptions, script?: ScriptContents): HeavyRun => ({
  run,
  work,
  kind: run.elsewhere === "container" ? "container" : work.kind,
  script,
  elsewhere: run.elsewhere !== undefined || work.entry.elsewhere === true,
  inFile: workersInFile(run, work, options),
  why: work.why,
});

const workersInFile = (run: Run, work: HeavyWork, { files = noFiles }: ClassifyOptions): string | undefined => {
  const [name, pattern] = work.entry.workers?.elsewhere?.file ?? [];
  if (name === undefined || pattern === undefined) return undefined;
  const directory = directoryOf(run, work);
  return directory === undefined ? undefined : pattern.exec(files.read(directory, name) ?? "")?.[1];
};

/** A script runner is light when its script is at hand and light. */
const judgeScript = (run: Run, work: HeavyWork, options: ClassifyOptions, depth: number): RunJudgement => {
  const { script } = work.entry;
  if (script === undefined || depth > DEEPEST_SCRIPT) return { verdict: "heavy", found: heavyRun(run, work, options) };
  const operand = work.operands[0];
  const name = script.name ?? operand?.value;
  const parts =
    name === undefined && script.file === "package.json" ? undefined : scriptParts(run, work, name, options);
  if (parts === undefined) {
    if (script.orProgram && script.name === undefined && operand !== undefined)
      return judgeProgram(run, work, operand.index, options, depth);
    return { verdict: "heavy", found: heavyRun(run, work, options) };
  }
  const inside = { ...options, cwd: directoryOf(run, work) };
  const judged = parts.map((part) => judgePart(part, inside, depth + 1));
  if (judged.every(({ isLight }) => isLight)) return { verdict: "light" };
  const runs = judged.flatMap((part) => part.runs);
  const why =
    runs.length > 0
      ? `${work.why}; its script runs ${runs.map((found) => commandName(found.run.words[0]?.value ?? "")).join(", ")}`
      : work.why;
  const takesWords = judged.find((part) => part.takesWords !== undefined)?.takesWords;
  return { verdict: "heavy", found: { ...heavyRun(run, work, options, { runs, takesWords }), why } };
};

interface JudgedPart extends ScriptContents {
  isLight: boolean;
}

const judgePart = (part: ScriptPart, options: ClassifyOptions, depth: number): JudgedPart => {
  const { runs: found, problem } = readText(part.text, options.cwd);
  const judged = found.map((run) => judgeRun(run, options, depth));
  const last = judged.at(-1);
  const lastRun = found.at(-1);
  const takesWords =
    part.takesWords &&
    problem === undefined &&
    last?.verdict === "heavy" &&
    lastRun !== undefined &&
    ends(part, lastRun)
      ? last.found
      : undefined;
  return {
    isLight: problem === undefined && judged.every(({ verdict }) => verdict === "light"),
    runs: judged.flatMap((run) => (run.verdict === "heavy" ? [run.found] : [])),
    takesWords,
  };
};

/** What is put behind the text becomes words of this program. */
const ends = ({ text }: ScriptPart, { at, words, simple, editable }: Run): boolean =>
  editable && at >= 0 && at + words.length === simple.words.length && /^[ \t]*$/.test(text.slice(simple.end));

/** `yarn jest`: no script of that name, so the program of a package. */
const judgeProgram = (
  run: Run,
  work: HeavyWork,
  index: number,
  options: ClassifyOptions,
  depth: number,
): RunJudgement => {
  const word = run.words[index];
  if (word === undefined) return { verdict: "heavy", found: heavyRun(run, work, options) };
  const value = word.value;
  if (/\.[cm]?[jt]sx?$/.test(value) || /^\.{0,2}\//.test(value)) return { verdict: "unknown" };
  const program: Run = {
    ...run,
    words: [{ ...word, value: packageName(value) }, ...run.words.slice(index + 1)],
    wrappers: [...run.wrappers, commandName(run.words[0]?.value ?? "")],
    at: run.at < 0 ? -1 : run.at + index,
  };
  const judged = judgeRun(program, options, depth + 1);
  return judged.verdict === "heavy" || toolNamed(commandName(value)) !== undefined
    ? judged
    : { verdict: "heavy", found: heavyRun(run, work, options) };
};

const directoryOf = (run: Run, work: HeavyWork): string | undefined => {
  const names = optionNames(work.entry.directory);
  let directory = run.cwd;
  for (const option of work.scanned.options) {
    if (!names.has(option.name) || option.value === undefined) continue;
    if (!isKnown(option.value)) return undefined;
    if (option.value.startsWith("/")) directory = option.value;
    else directory = directory === undefined ? undefined : join(directory, option.value);
  }
  return directory;
};

const scriptParts = (
  run: Run,
  work: HeavyWork,
  name: string | undefined,
  { files = noFiles }: ClassifyOptions,
): ScriptPart[] | undefined => {
  const directory = directoryOf(run, work);
  const elsewhere = optionNames(work.entry.elsewhereOptions);
  const { script } = work.entry;
  if (directory === undefined || script === undefined || run.elsewhere !== undefined) return undefined;
  if (work.scanned.options.some((option) => elsewhere.has(option.name))) return undefined;
  if (script.file === "package.json")
    return name === undefined || !isKnown(name) ? undefined : packageScript(files, directory, name, script.wordless);
  const targets = work.operands.map(({ value }) => value).filter((value) => !/^[A-Za-z_]\w*\+?[:?]?=/.test(value));
  if (!targets.every(isKnown)) return undefined;
  const text = script.file === "Makefile" ? makefile(files, directory) : justfile(files, directory);
  if (text === undefined) return undefined;
  const recipe = script.file === "Makefile" ? makeRecipe : justRecipe;
  const asked = targets.length === 0 ? [undefined] : script.file === "justfile" ? targets.slice(0, 1) : targets;
  const recipes = asked.map((target) => recipe(text, target));
  return recipes.every((found) => found !== undefined) ? [{ text: recipes.join("\n"), takesWords: false }] : undefined;
};

const makefile = (files: ProjectFiles, directory: string): string | undefined =>
  files.read(directory, "GNUmakefile") ?? files.read(directory, "makefile") ?? files.read(directory, "Makefile");

const justfile = (files: ProjectFiles, directory: string): string | undefined =>
  files.read(directory, "justfile") ?? files.read(directory, "Justfile") ?? files.read(directory, ".justfile");
