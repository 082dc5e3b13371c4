/** Takes wrappers off a simple command until the programs that it runs stand bare. */
import { commandName, packageName } from "./names.js";
import { changedDirectory } from "./state.js";
import { optionNames, readOption, skipOptions, type FoundOption } from "./options.js";
import type { Assignment, Run, SimpleCommand, VariablePlace } from "./simple-command.js";
import type { ShellWord } from "./word.js";
import { isKnown, UNKNOWN } from "./word.js";
import { wrappersNamed, type Wrapper } from "./wrappers.js";

/** A program that would run, or a text that an inner shell would run. */
export type Peeled = Run | { text: string; run: Run };

export interface Surroundings {
  cwd: string | undefined;
  exported: ReadonlyMap<string, string | undefined>;
  fixed: ReadonlySet<string>;
  /** What is known to reach standard input. */
  input: string | undefined;
}

/** `sudo env nice …` deeper than that is nobody's command. */
export const MOST_WRAPPERS = 16;

const SHELLS = optionNames("sh bash dash zsh ksh mksh ash fish rbash");
const SHELL_VALUED = optionNames("-O +O -o +o --rcfile --init-file");
const ENV_VALUED = optionNames("-u --unset -C --chdir -S --split-string -a --argv0");
const FIND_ACTIONS = optionNames("-exec -execdir -ok -okdir");

export const peel = (simple: SimpleCommand, { cwd, exported, fixed, input }: Surroundings): Peeled[] => {
  const variables: VariablePlace | undefined = simple.editable
    ? { at: "prefix", pos: simple.pos, before: -1, inherits: true }
    : simple.inherited;
  const run: Run = {
    words: simple.words,
    wrappers: [],
    simple,
    at: 0,
    editable: simple.editable,
    variables,
    assigned: simple.assignments,
    exported,
    fixed,
    cwd,
    elsewhere: undefined,
  };
  return step(run, input);
};

const step = (run: Run, input: string | undefined): Peeled[] => {
  const [first] = run.words;
  if (first === undefined) return [];
  if (run.wrappers.length > MOST_WRAPPERS) return [run];
  const name = commandName(first.value);
  const values = run.words.map(({ value }) => value);
  if (SHELLS.has(name)) return peelShell(run, values, input);
  if (name === "eval") return texts(run, [values.slice(1).join(" ")], "eval");
  if (name === "trap")
    return values.length > 2 ? texts({ ...run, variables: undefined }, [values[1] ?? ""], "trap") : [];
  if (name === "env" || name === "genv") return peelEnv(run, values, input);
  if (name === "find" || name === "gfind" || name === "fd" || name === "fdfind") return peelFind(run, values, name);
  const module = pythonModule(values);
  if (module !== undefined && wrappersNamed(values[module] ?? "").length > 0)
    return step(from(run, name, module), input);
  for (const wrapper of wrappersNamed(name)) {
    const inner = peelWrapper(run, values, name, wrapper, input);
    if (inner === "nothing") return [run];
    if (inner !== undefined) return inner.flatMap((peeled) => ("text" in peeled ? [peeled] : step(peeled, input)));
  }
  return [run];
};

/** The run of the words from `start` to `end`. */
const from = (run: Run, wrapper: string, start: number, end: number = run.words.length): Run => ({
  ...run,
  words: run.words.slice(start, end),
  wrappers: [...run.wrappers, wrapper],
  at: run.at < 0 ? -1 : run.at + start,
  editable: run.editable,
});

const texts = (run: Run, found: readonly string[], wrapper: string): Peeled[] =>
  found.map((text) => ({ text, run: { ...run, wrappers: [...run.wrappers, wrapper] } }));

const peelShell = (run: Run, values: string[], input: string | undefined): Peeled[] => {
  const name = commandName(values[0] ?? "");
  let isText = false;
  let isStdin = false;
  let next = 1;
  while (next < values.length) {
    const word = values[next] ?? "";
    if (word === "--" || word === "-") {
      next += 1;
      break;
    }
    if (!/^[-+]./.test(word)) break;
    const isShort = /^-[A-Za-z]+$/.test(word);
    if (isShort && word.includes("c")) isText = true;
    if (isShort && word.includes("s")) isStdin = true;
    if (word === "--command") isText = true;
    next += SHELL_VALUED.has(word) || /^-[A-Za-z]*[oO]$/.test(word) ? 2 : 1;
  }
  if (isText) {
    const text = values[next];
    const word = run.words[next];
    if (text === undefined || word === undefined) return [];
    return texts({ ...run, words: [word] }, [text], name);
  }
  const script = values[next];
  if (!isStdin && script !== undefined && script !== "/dev/stdin") {
    // `bash ./gradlew build`: a script that may be known by its name.
    const inner = from(run, name, next);
    return isKnown(commandName(script)) && !SHELLS.has(commandName(script)) ? [inner] : [run];
  }
  return input === undefined ? [run] : texts(run, [input], name);
};

const peelEnv = (run: Run, values: string[], input: string | undefined): Peeled[] => {
  const { options, next: afterOptions } = skipOptions(values, 1, ENV_VALUED);
  let next = afterOptions;
  let clears = options.some(({ name }) => name === "-i" || name === "--ignore-environment");
  if (values[next] === "-") {
    clears = true;
    next += 1;
  }
  const split = options.find(({ name }) => name === "-S" || name === "--split-string");
  const assigned: Assignment[] = [];
  while (next < values.length) {
    const word = run.words[next];
    const match = word && /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(word.value);
    if (!word || !match) break;
    assigned.push({ name: match[1] ?? "", value: { ...word, value: match[2] ?? "" }, appends: false });
    next += 1;
  }
  const unset = options.filter(({ name }) => name === "-u" || name === "--unset").map(({ value }) => value);
  const base: Run = {
    ...run,
    cwd: inDirectory(run, options, "-C --chdir"),
    assigned: [...(clears ? [] : run.assigned.filter(({ name }) => !unset.includes(name))), ...assigned],
    exported: clears ? new Map() : new Map([...run.exported].filter(([name]) => !unset.includes(name))),
  };
  if (split?.value !== undefined) {
    const rest = values.slice(next).join(" ");
    return texts({ ...base, variables: clears ? undefined : base.variables }, [`${split.value} ${rest}`], "env");
  }
  const inner = from(base, "env", next);
  const word = inner.words[0];
  if (word === undefined) return [];
  const isBlocked = base.variables === undefined;
  if (clears || unset.length > 0 || isBlocked) {
    inner.variables =
      run.simple.editable && run.editable && inner.at >= 0 && word.exact
        ? {
            at: "env",
            pos: word.pos,
            before: inner.at,
            inherits: !clears && !isBlocked && !unset.includes("NODE_OPTIONS"),
          }
        : undefined;
  }
  return step(inner, input);
};

const peelFind = (run: Run, values: string[], name: string): Peeled[] => {
  const found: Peeled[] = [];
  const actions = name.startsWith("fd") ? optionNames("-x --exec -X --exec-batch") : FIND_ACTIONS;
  for (let index = 1; index < values.length; index += 1) {
    if (!actions.has(values[index] ?? "")) continue;
    let end = index + 1;
    while (end < values.length && values[end] !== ";" && values[end] !== "+") end += 1;
    // The words are completed by find.
    const inner: Run = { ...from(run, name, index + 1, end), editable: false, variables: undefined };
    found.push(...step(inner, undefined));
    index = end;
  }
  return found.length > 0 ? found : [run];
};

/** Where the words of the wrapper's subcommand end; `undefined` when it has another. */
const afterSubcommand = (values: string[], wrapper: Wrapper): number | undefined => {
  if (wrapper.after === undefined) return 1;
  const valued = optionNames(wrapper.valued);
  for (const alternative of wrapper.after.split("|")) {
    let next = 1;
    const matches = alternative.split(" ").every((word) => {
      next = skipOptions(values, next, valued).next;
      const isSame = values[next] === word;
      next += 1;
      return isSame;
    });
    if (matches) return next;
  }
  return undefined;
};

/** `undefined` when the entry does not fit, so that the next one is tried; `nothing` when it runs no command. */
const peelWrapper = (
  run: Run,
  values: string[],
  name: string,
  wrapper: Wrapper,
  input: string | undefined,
): Peeled[] | "nothing" | undefined => {
  const begin = afterSubcommand(values, wrapper);
  if (begin === undefined) return undefined;
  const until = optionNames(wrapper.until);
  const stop = values.findIndex((value, index) => index >= begin && until.has(value));
  const end = stop < 0 ? values.length : stop;
  const inner = surround(run, values, wrapper, begin);
  if (wrapper.commandOption !== undefined) {
    const options = optionNames(wrapper.commandOption);
    const at = values.findIndex((value, index) => index >= begin && options.has(value));
    return at < 0 ? undefined : [from(inner, name, at + 1, end)];
  }
  const found = readHead(values, begin, end, wrapper);
  if (found.runsNothing) return "nothing";
  if (found.texts.length > 0 && (wrapper.operandText === undefined || wrapper.textsOnly)) {
    return texts(inner, found.texts, name);
  }
  if (found.module !== undefined) return [pythonRun(inner, name, found.module)];
  if (wrapper.textsOnly) return wrapper.stdinShell && input !== undefined ? texts(inner, [input], name) : undefined;
  if (wrapper.operandText === "each")
    return texts(inner, [...found.texts, ...operandTexts(values, begin, wrapper)], name);
  if (wrapper.pythonScript) return [pythonRun(inner, name, found.next)];
  if (found.next >= end) {
    return stop < 0
      ? "nothing"
      : texts(
          { ...inner, editable: false },
          values.slice(stop + 1).filter((value) => !until.has(value)),
          name,
        );
  }
  const command = from(inner, name, found.next, end);
  const [word, ...others] = command.words;
  if (word === undefined) return "nothing";
  const isText = wrapper.operandText === "single" || wrapper.template;
  if (isText && others.length === 0 && /\s/.test(word.value)) return texts(inner, [word.value], name);
  if (wrapper.template && !command.words.some(({ value }) => value.includes("{}"))) {
    command.words = [...command.words, { ...word, value: UNKNOWN, exact: false }];
  }
  if (wrapper.again) return [again(run, command)];
  if (wrapper.packages) command.words = [{ ...word, value: packageName(word.value) }, ...others];
  return [command];
};

/** The wrapper's own name in front of the rest; where that works is not known. */
const again = (run: Run, command: Run): Run => {
  const [first] = run.words;
  if (first === undefined) return command;
  return {
    ...command,
    words: [{ ...first, exact: false }, ...command.words],
    at: command.at < 0 ? -1 : command.at - 1,
    cwd: undefined,
  };
};

/** The index of the module in `python -m MODULE`. */
const pythonModule = (values: string[]): number | undefined =>
  /^(?:python|pypy)[\d.]*$/.test(commandName(values[0] ?? "")) && values[1] === "-m" ? 2 : undefined;

/** Options, operands and `NAME=value` words of the wrapper, up to the command. */
const readHead = (
  values: string[],
  begin: number,
  end: number,
  wrapper: Wrapper,
): { next: number; texts: string[]; module: number | undefined; runsNothing: boolean } => {
  const valued = optionNames(wrapper.valued);
  const textOptions = optionNames(wrapper.texts);
  const modules = optionNames(wrapper.modules);
  const idle = optionNames(wrapper.unless);
  const foundTexts: string[] = [];
  let operands = wrapper.operands ?? 0;
  let next = begin;
  let isPastDashes = false;
  while (next < end) {
    const value = values[next] ?? "";
    if (value === "--" && !isPastDashes) {
      isPastDashes = true;
      next += 1;
      if (operands === 0) break;
      continue;
    }
    const read = isPastDashes ? undefined : readOption(values, next, valued);
    if (read !== undefined) {
      for (const option of read.found) {
        if (idle.has(option.name)) return { next, texts: [], module: undefined, runsNothing: true };
        if (modules.has(option.name) && option.value !== undefined) {
          return { next, texts: [], module: next, runsNothing: false };
        }
        if (textOptions.has(option.name) && option.value !== undefined) foundTexts.push(option.value);
      }
      next += read.taken + extra(wrapper, read.found);
      continue;
    }
    const isAssignment = wrapper.assignments === true && /^[A-Za-z_]\w*=/.test(value);
    // `nice $FLAGS make`: what is not known at all stands for options.
    const isOpaque = value === UNKNOWN && next + 1 < end && operands === 0;
    if (operands === 0 && !isAssignment && !isOpaque && !wrapper.textsOnly) break;
    if (!isAssignment && !isOpaque && operands > 0) operands -= 1;
    next += 1;
  }
  return { next, texts: foundTexts, module: undefined, runsNothing: false };
};

const extra = ({ extraWords }: Wrapper, found: readonly FoundOption[]): number =>
  found.reduce((sum, { name }) => sum + (extraWords?.[name] ?? 0), 0);

const operandTexts = (values: string[], begin: number, wrapper: Wrapper): string[] => {
  const valued = optionNames(wrapper.valued);
  const found: string[] = [];
  let next = begin;
  while (next < values.length) {
    const read = readOption(values, next, valued);
    const value = values[next] ?? "";
    if (read === undefined && value !== "--") found.push(value.replace(/^(npm|pnpm|yarn|bun):/, "$1 run "));
    next += read === undefined ? 1 : read.taken + extra(wrapper, read.found);
  }
  return found;
};

/** What the wrapper does to the environment and to the place where the command runs. */
const surround = (run: Run, values: string[], wrapper: Wrapper, begin: number): Run => {
  const valued = optionNames(wrapper.valued);
  const { options } = skipOptions(values, begin, valued);
  // Options stand before the subcommand as well (`pnpm -C web exec jest`).
  const before = wrapper.after === undefined ? options : [...skipOptions(values, 1, valued).options, ...options];
  const names = new Set([...options.map(({ name }) => name), ...values.slice(begin, begin + 2)]);
  const has = (flags: string | undefined): boolean => [...optionNames(flags)].some((flag) => names.has(flag));
  const clears =
    (wrapper.clears !== undefined && (wrapper.clears === true || !has(wrapper.clears.unless))) || has(wrapper.clearing);
  const isLost = clears || wrapper.elsewhere !== undefined || wrapper.template === true;
  const own = wrapper.assignments ? assignedWords(run, begin) : [];
  return {
    ...run,
    cwd: wrapper.moves ? undefined : inDirectory(run, before, wrapper.directory),
    variables: isLost ? undefined : run.variables,
    assigned: [...(isLost ? [] : run.assigned), ...own],
    exported: isLost ? new Map() : run.exported,
    editable: run.editable && wrapper.template !== true,
    elsewhere: run.elsewhere ?? wrapper.elsewhere,
  };
};

/** Where the command runs when options of the wrapper say so. */
const inDirectory = (run: Run, options: readonly FoundOption[], names: string | undefined): string | undefined => {
  const wanted = optionNames(names);
  return options
    .filter(({ name }) => wanted.has(name))
    .reduce<string | undefined>((cwd, { value }) => changedDirectory(cwd, value), run.cwd);
};

/** `NAME=value` words at the head of `cross-env` or `sudo`. */
const assignedWords = (run: Run, begin: number): Assignment[] => {
  const found: Assignment[] = [];
  for (const word of run.words.slice(begin)) {
    const [, name, value] = /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(word.value) ?? [];
    if (name !== undefined && value !== undefined) found.push({ name, value: { ...word, value }, appends: false });
    else if (!word.value.startsWith("-")) break;
  }
  return found;
};

/** `… -m MODULE` and `… SCRIPT` of a program that is Python itself. */
const pythonRun = (run: Run, wrapper: string, start: number): Run => {
  const inner = from(run, wrapper, start);
  const python: ShellWord = {
    value: "python",
    source: "",
    pos: inner.words[0]?.pos ?? 0,
    end: inner.words[0]?.pos ?? 0,
    exact: false,
  };
  return { ...inner, words: [python, ...inner.words], at: inner.at < 0 ? -1 : inner.at - 1 };
};
