/** Fewer workers: options that are there are lowered, others are added where the tool knows them. */
import { UNKNOWN, type ShellWord } from "../shell/word.js";
import type { WorkerOption } from "../tools/schema.js";

/** A worker option in a command's words. */
export interface GivenWorkers {
  /** `-j`, `--maxWorkers`; with other letters before it in a cluster (`-kj`). */
  option: string;
  index: number;
  /** Index of the value's word; equal to `index` when attached, `undefined` without a value. */
  valueIndex: number | undefined;
  /** What stands between option and value when attached: nothing, `=` or `:`. */
  joint: string;
  /** How many it asks for; `Infinity` when unbounded or computed, `undefined` when that is not understood. */
  count: number | undefined;
}

const LONG = /^--/;
/** Expansions that give a number of processors or jobs. */
const COUNTS = /nproc|getconf|hw\.|cpu|core|jobs|proc|^\$\(\(/i;

export interface Counts {
  cpus: number;
  /** What the words that mean all of them stand for. */
  all: number;
}

/** How many workers a value stands for. */
export const countOf = (
  value: string,
  { one, all }: WorkerOption,
  { cpus, all: whole }: Counts,
): number | undefined => {
  if (value.includes(UNKNOWN)) return Infinity;
  if (/^\d{1,9}$/.test(value)) return Number(value) === 0 && one !== "0" ? Infinity : Number(value);
  if (/^-\d{1,9}$/.test(value)) return Infinity;
  const [, percent] = /^(\d{1,4})%$/.exec(value) ?? [];
  if (percent !== undefined) return Math.max(1, Math.floor((cpus * Number(percent)) / 100));
  const [, perCore] = /^(\d{1,3}(?:\.\d{1,3})?)C$/.exec(value) ?? [];
  if (perCore !== undefined) return Math.max(1, Math.floor(cpus * Number(perCore)));
  return all !== undefined && all.split(" ").includes(value) ? whole : undefined;
};

/** Every worker option in `words[from..until)`. */
export const findWorkers = (
  words: readonly ShellWord[],
  from: number,
  until: number,
  option: WorkerOption,
  counts: Counts,
): GivenWorkers[] => {
  const found: GivenWorkers[] = [];
  const names = option.options.split(" ");
  for (let index = from; index < until; index += 1) {
    const given = readWorkers(words, index, until, names, option, counts);
    if (given === undefined) continue;
    found.push(given);
    index = given.valueIndex ?? index;
  }
  return found;
};

const readWorkers = (
  words: readonly ShellWord[],
  index: number,
  until: number,
  names: readonly string[],
  option: WorkerOption,
  counts: Counts,
): GivenWorkers | undefined => {
  const { value } = words[index] ?? { value: "" };
  for (const name of names) {
    if (value === name) return separate(words, index, until, name, option, counts);
    for (const joint of ["=", ":"]) {
      if (!value.startsWith(name + joint)) continue;
      const count = countOf(value.slice(name.length + 1), option, counts);
      return { option: name, index, valueIndex: index, joint, count };
    }
    if (LONG.test(name)) continue;
    // `-j8`, and for a tool whose other options are single letters `-kj8`.
    const letter = name.slice(1);
    const before = option.letters ? `[${option.letters}]` : option.optionalValue ? "[^CfIWolEODj\\d\\W]" : undefined;
    const cluster = before !== undefined && letter.length === 1 ? `${before}*?${letter}` : letter;
    const named = (option.all ?? "auto").replaceAll(" ", "|");
    const [, letters, attached] =
      new RegExp(`^(-${cluster})(\\d[\\dC.%]*|${named}|.*${UNKNOWN}.*)$`, "s").exec(value) ?? [];
    if (letters !== undefined && attached !== undefined) {
      return { option: letters, index, valueIndex: index, joint: "", count: countOf(attached, option, counts) };
    }
    if (cluster !== letter && new RegExp(`^-${before}+${letter}$`).test(value)) {
      return separate(words, index, until, value, option, counts);
    }
  }
  return undefined;
};

const separate = (
  words: readonly ShellWord[],
  index: number,
  until: number,
  name: string,
  option: WorkerOption,
  counts: Counts,
): GivenWorkers => {
  const next = index + 1 < until ? words[index + 1] : undefined;
  const isValue =
    next !== undefined &&
    (!option.optionalValue ||
      /^\d+$/.test(next.value) ||
      // `make -j "$TARGET"` builds a target; `make -j $(nproc)` says how many.
      (next.value === UNKNOWN && (!option.numberOnly || COUNTS.test(next.source))) ||
      (option.all ?? "").split(" ").includes(next.value));
  if (!isValue || next === undefined) return { option: name, index, valueIndex: undefined, joint: "", count: Infinity };
  return { option: name, index, valueIndex: index + 1, joint: "", count: countOf(next.value, option, counts) };
};

/** How the option is written for so many workers. */
export const writeWorkers = (option: WorkerOption, workers: number): string[] => {
  if (workers === 1 && option.writeOne !== undefined) return [option.writeOne];
  return option.write.replace("{n}", numberFor(option, workers)).split(" ");
};

export const numberFor = (option: WorkerOption, workers: number): string =>
  workers === 1 ? (option.one ?? "1") : String(workers);

/** The words that take the place of a given option: its own word, and its value's when that stands apart. */
export const replaceWorkers = (
  given: GivenWorkers,
  option: WorkerOption,
  workers: number,
): { own: string; value: string | undefined } => {
  if (workers === 1 && option.writeOne !== undefined) return { own: option.writeOne, value: undefined };
  const number = numberFor(option, workers);
  const isApart = given.valueIndex !== undefined && given.valueIndex !== given.index;
  const isGlued =
    given.option.startsWith("-") &&
    !LONG.test(given.option) &&
    option.write.startsWith("-") &&
    option.write.endsWith(`${given.option.at(-1)}{n}`);
  if (isApart && !isGlued) return { own: given.option, value: number };
  if (given.valueIndex === undefined && option.write.includes(":"))
    return { own: `${given.option}:${number}`, value: undefined };
  if (given.valueIndex === undefined && LONG.test(given.option))
    return { own: `${given.option}=${number}`, value: undefined };
  return { own: given.option + given.joint + number, value: undefined };
};
