/** Rewrites heavy commands so that they need less: fewer workers, a heap cap for Node. */
import type { Classification, HeavyRun } from "../classify/classify.js";
import { commandName } from "../shell/names.js";
import { optionNames } from "../shell/options.js";
import type { Run } from "../shell/simple-command.js";
import { isKnown, type ShellWord } from "../shell/word.js";
import type { WorkerOption, WorkerVariable } from "../tools/schema.js";
import { applyChanges, type Change } from "./edits.js";
import { capHeap, type Lightened } from "./heap.js";
import { affordsAll, heapMb, workersFor, type Affordable } from "./limits.js";
import { isReplaceable } from "./replaceable.js";
import { changeAssignment, heldBy, numberIn, setVariable } from "./variables.js";
import { countOf, findWorkers, replaceWorkers, writeWorkers, type Counts, type GivenWorkers } from "./workers.js";

export interface LightenOptions extends Affordable {
  /** The environment that the text will run in, as far as it is known. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** `environment` is all of it, so that values can be written out. */
  environmentIsKnown?: boolean;
}

export interface LightenedText {
  text: string;
  /** One line a change; empty when the text is as it was. */
  changes: string[];
}

/** A person at the keyboard starts and stops these; they are left as they are. */
const WATCHES = /^(?:--(?:watch|watchAll|ui)|dev|serve|watch)$/;

/** The text itself where nothing can or need be changed. Never throws. */
export const lighten = (text: string, classified: Classification, options: LightenOptions): LightenedText => {
  const unchanged = { text, changes: [] };
  if (!classified.heavy || classified.problem !== undefined) return unchanged;
  const planned = planAll(classified.runs, options);
  if (planned.changes.length === 0) return unchanged;
  const result = applyChanges(text, classified.read, planned.changes);
  return result === undefined || result === text ? unchanged : { text: result, changes: [...new Set(planned.lines)] };
};

const planAll = (runs: readonly HeavyRun[], options: LightenOptions): Lightened => {
  const all: Lightened = { changes: [], lines: [] };
  /** One place is changed once: a function's body is read at each call, two programs may share a prefix. */
  const done = new Set<string>();
  const add = (lightened: Lightened | undefined, key: string): void => {
    if (lightened === undefined || lightened.changes.length === 0 || done.has(key)) return;
    done.add(key);
    all.changes.push(...lightened.changes);
    all.lines.push(...lightened.lines);
  };
  const heap = heapMb(options);
  for (const found of runs) {
    if (found.elsewhere) continue;
    const { run } = found;
    const place = `${run.simple.pos}:${run.variables?.pos ?? -1}`;
    if (heap !== undefined && isNode(found)) add(capHeap(run, heap, options), `heap ${place}`);
    for (const [name, lightened] of planVariables(found, options)) add(lightened, `${name} ${place}`);
    add(planWorkers(found, options), `workers ${run.simple.pos}:${run.at}`);
  }
  return all;
};

const isNode = ({ work, script }: HeavyRun): boolean =>
  work.entry.node === true || (script?.runs.some(isNode) ?? false);

const watches = ({ run, script }: HeavyRun): boolean =>
  run.words.some(({ value }) => WATCHES.test(value)) || (script?.runs.some(watches) ?? false);

const workersOf = ({ work }: HeavyRun, options: Affordable): number | undefined =>
  affordsAll(options, work.entry.mbPerWorker) ? undefined : workersFor(options, work.entry.mbPerWorker);

/** Variables of the tool itself and of the tools behind a script. */
const planVariables = (found: HeavyRun, options: LightenOptions): [string, Lightened][] => {
  if (watches(found)) return [];
  const planned: [string, Lightened][] = [];
  for (const source of [found, ...(found.script?.runs ?? [])]) {
    const workers = workersOf(source, options);
    if (workers === undefined || workers >= options.cpus) continue;
    for (const variable of source.work.entry.variables ?? []) {
      const option = workerOption(source);
      const names = variable.options === undefined ? undefined : optionNames(variable.options);
      const isTold =
        givenWorkers(source, options).some((given) => names?.has(given.option) ?? true) ||
        (option !== undefined && isSerial(source.run.words, option));
      if (isTold) continue;
      const lightened = planVariable(found.run, variable, workers, options);
      if (lightened !== undefined) planned.push([variable.name, lightened]);
    }
  }
  return planned;
};

const planVariable = (
  run: Run,
  { name, value: template }: WorkerVariable,
  workers: number,
  { environment = {} }: LightenOptions,
): Lightened | undefined => {
  const value = template.replace("{n+1}", String(workers === 1 ? 1 : workers + 1)).replace("{n}", String(workers));
  const held = heldBy(run, name, environment);
  const count = held === undefined ? undefined : numberIn(held.value);
  if (held?.where === "inner" || (count !== undefined && count <= Number(value))) return undefined;
  const change =
    held?.where === "command"
      ? isReplaceable(held.assignment.value.source)
        ? changeAssignment(run, held.assignment, () => value, value)
        : undefined
      : setVariable(run, name, { inherits: value, plain: value });
  return change === undefined ? undefined : { changes: [change], lines: [`set ${name}=${value}`] };
};

/** The zone of a program's words in which its options stand. */
const zoneOf = ({ run, work }: HeavyRun): { from: number; until: number } => ({
  from: work.subcommandAt + 1,
  until: zoneEnd(run, work.scanned.zoneEnd),
});

/** `go test -args …`: what follows is another program's. */
const zoneEnd = (run: Run, dashes: number): number => {
  const args = run.words.findIndex(({ value }) => value === "-args" || value === "--args");
  return Math.min(dashes, args < 0 ? run.words.length : args);
};

const workerOption = ({ work, run }: HeavyRun): WorkerOption | undefined => {
  const option = work.entry.workers ?? undefined;
  if (option?.only === undefined) return option;
  return optionNames(option.only).has(run.words[work.subcommandAt]?.value ?? "") ? option : undefined;
};

const givenWorkers = (found: HeavyRun, options: LightenOptions): GivenWorkers[] => {
  const option = workerOption(found);
  if (option === undefined) return [];
  const { until } = zoneOf(found);
  return findWorkers(found.run.words, 1, until, option, countsFor([found.run], option, options));
};

/** `runs` are the program itself and those it is started by. */
const countsFor = (runs: readonly Run[], { allVariable }: WorkerOption, options: LightenOptions): Counts => {
  const { cpus, environment = {} } = options;
  const held = allVariable === undefined ? [] : runs.map((run) => heldBy(run, allVariable, environment));
  const count = held.map((found) => (found === undefined ? undefined : numberIn(found.value)));
  return { cpus, all: count.find((number) => number !== undefined) ?? cpus };
};

/** What the pattern's group holds; empty where it has nothing, `undefined` where the pattern is not found. */
const matched = (text: string, pattern: RegExp): string | undefined => pattern.exec(text)?.slice(1, 2).join("");

/** The lowest number of workers that is told in another way than by the option; `undefined` when there is none. */
const toldElsewhere = (
  found: HeavyRun,
  runs: readonly Run[],
  option: WorkerOption,
  options: LightenOptions,
): number | undefined => {
  if (option.elsewhere === undefined) return undefined;
  const { variables, pattern, words } = option.elsewhere;
  const counts = countsFor(runs, option, options);
  const texts = runs.flatMap((run) =>
    [...optionNames(variables)].map((name) => heldBy(run, name, options.environment ?? {})?.value),
  );
  const values = [
    ...texts.map((text) => (text === undefined || pattern === undefined ? text : matched(text, pattern))),
    ...(words === undefined ? [] : found.run.words.map(({ value }) => matched(value, words))),
    found.inFile,
  ];
  const told = values.flatMap((value) => (value === undefined ? [] : [countOf(value, option, counts) ?? Infinity]));
  return told.length === 0 ? undefined : Math.min(...told);
};

const isSerial = (words: readonly ShellWord[], option: WorkerOption): boolean => {
  const serial = optionNames(option.serial);
  // `--runInBand=false` and `--no-runInBand` are somebody's decision as well.
  return words.some(
    ({ value }) =>
      serial.has(value.split("=")[0] ?? "") || serial.has(value) || serial.has(value.replace(/^--no-/, "--")),
  );
};

const planWorkers = (found: HeavyRun, options: LightenOptions): Lightened | undefined => {
  if (watches(found) || !found.run.editable || found.run.at < 0) return undefined;
  if (found.script !== undefined) return planScriptWorkers(found, options);
  const option = workerOption(found);
  const workers = workersOf(found, options);
  if (option === undefined || workers === undefined) return undefined;
  const { until } = zoneOf(found);
  if (isSerial(found.run.words.slice(0, until), option)) return undefined;
  const given = givenWorkers(found, options);
  if (given.length > 0) return lowerGiven(found.run, given, option, workers);
  const told = toldElsewhere(found, [found.run], option, options);
  const add = option.add ?? (told === undefined ? undefined : "end");
  if (add === undefined || workers >= options.cpus || isOpen(found, until)) return undefined;
  if (told !== undefined && told <= workers) return undefined;
  if (isNpms(found.run)) return undefined;
  const index = add === "end" ? until : found.work.subcommandAt + 1;
  return insertWords(found.run, index, writeWorkers(option, workers), nameOf(found.run), workers);
};

/** npm takes options for itself, unless they stand behind `--`. */
const isNpms = ({ wrappers, simple, at }: Run): boolean =>
  wrappers.at(-1) === "npm" && !simple.words.slice(0, at).some(({ value }) => value === "--");

/** The tool behind a script is told its workers behind the script's own words. */
const planScriptWorkers = (found: HeavyRun, options: LightenOptions): Lightened | undefined => {
  const inner = found.script?.takesWords;
  const { run, work } = found;
  if (inner === undefined || inner.script !== undefined || work.entry.script === undefined) return undefined;
  if (isNpms(inner.run)) return undefined;
  const option = workerOption(inner);
  const workers = workersOf(inner, options);
  if (option === undefined || workers === undefined) return undefined;
  const { dashes } = work.entry.script;
  const hasDashes = work.scanned.zoneEnd < run.words.length;
  const first = dashes ? work.scanned.zoneEnd + 1 : work.subcommandAt + 1;
  const handed = run.words.slice(first);
  const end = run.words.length;
  // Behind a `--` of its own the tool would take options for operands.
  const second = handed.findIndex(({ value }) => value === "--");
  const ownDashes = dashes ? (second < 0 ? end : first + second) : work.scanned.zoneEnd;
  const given = findWorkers(
    run.words,
    Math.min(first, end),
    Math.min(dashes ? end : ownDashes, end),
    option,
    countsFor([inner.run, run], option, options),
  );
  if (isSerial(handed, option)) return undefined;
  if (given.length > 0) return lowerGiven(run, given, option, workers, nameOf(inner.run));
  // Given in the script itself: a second one could contradict it.
  if (givenWorkers(inner, options).length > 0 || isSerial(inner.run.words, option)) return undefined;
  const told = toldElsewhere(inner, [inner.run, run], option, options);
  if (told !== undefined && told <= workers) return undefined;
  const add = option.add ?? (told === undefined ? undefined : "end");
  if (add !== "end" || workers >= options.cpus || inner.work.scanned.zoneEnd < inner.run.words.length) return undefined;
  if (isOpen(inner, inner.run.words.length) || handed.some(isSplit)) return undefined;
  const words = writeWorkers(option, workers);
  return insertWords(
    run,
    Math.min(ownDashes, end),
    dashes && !hasDashes ? ["--", ...words] : words,
    nameOf(inner.run),
    workers,
  );
};

/** An expansion out of quotes may become any words, a worker option among them. */
const isSplit = ({ value, source }: ShellWord): boolean => !isKnown(value) && source.startsWith("$");

/**
 * Whether an option put at the end could contradict what is not known, or become the value of an option that
 * has none yet.
 */
const isOpen = (found: HeavyRun, until: number): boolean => {
  const { run, work } = found;
  const options = work.scanned.options.filter(({ index }) => index < until);
  const values = new Set(options.filter(({ value }) => value !== undefined).map(({ valueIndex }) => valueIndex));
  if (options.some(({ valueIndex }) => valueIndex >= Math.min(until, run.words.length))) return true;
  // `-iw4`: letters behind one dash, which are not taken apart here.
  const names = (workerOption(found)?.options ?? "").split(" ");
  const letters = names.filter((name) => /^-\w$/.test(name)).map((name) => name.slice(1));
  const isCluster = ({ value }: ShellWord): boolean =>
    /^-[A-Za-z]{2}/.test(value) && letters.some((letter) => value.includes(letter));
  const own = run.words.filter((_word, index) => index > 0 && index < until && !values.has(index));
  return own.some((word) => isSplit(word) || (work.entry.singleDash !== true && isCluster(word)));
};

const nameOf = (run: Run): string => commandName(run.words[0]?.value ?? "");

const describe = (name: string, workers: number, words: readonly string[]): string =>
  `gave ${name} ${workers === 1 ? "one worker" : `${workers} workers`} (${words.filter((word) => word !== "--").join(" ")})`;

const insertWords = (
  run: Run,
  index: number,
  sources: string[],
  name: string,
  workers: number,
): Lightened | undefined => {
  const before = run.words[index - 1];
  if (before === undefined || !before.exact) return undefined;
  return {
    changes: [{ at: "insert", simple: run.simple, index: run.at + index, sources }],
    lines: [describe(name, workers, sources)],
  };
};

const lowerGiven = (
  run: Run,
  given: readonly GivenWorkers[],
  option: WorkerOption,
  workers: number,
  name: string = nameOf(run),
): Lightened | undefined => {
  const changes: Change[] = [];
  const lines: string[] = [];
  for (const worker of given) {
    const { index, valueIndex, count } = worker;
    if (count === undefined || count <= workers) continue;
    const own = run.words[index];
    const apart = valueIndex !== undefined && valueIndex !== index ? run.words[valueIndex] : undefined;
    if (own === undefined || !own.exact || apart?.exact === false) continue;
    if (!isReplaceable(own.source) || (apart !== undefined && !isReplaceable(apart.source))) continue;
    if (lines.length > 0 && workers === 1 && option.writeOne !== undefined) {
      // The words for one worker stand there already.
      for (const at of new Set([index, valueIndex ?? index])) {
        changes.push({ at: "word", simple: run.simple, index: run.at + at, source: undefined });
      }
      continue;
    }
    const replaced = replaceWorkers(worker, option, workers);
    changes.push({ at: "word", simple: run.simple, index: run.at + index, source: replaced.own });
    if (apart !== undefined && valueIndex !== undefined) {
      changes.push({ at: "word", simple: run.simple, index: run.at + valueIndex, source: replaced.value });
    }
    lines.push(describe(name, workers, replaced.value === undefined ? [replaced.own] : [replaced.own, replaced.value]));
  }
  return changes.length > 0 ? { changes, lines } : undefined;
};
