/** Reads option words as getopt does. One scanner for wrappers and tools. */

/**
 * Options that take a value, as they are typed, split by spaces: `"-k --kill-after"`. With `?` the value may be
 * left out, so it is none but what stands in the same word (`-p?`: `-pall`).
 */
export type OptionNames = ReadonlySet<string>;

const cache = new Map<string, OptionNames>();

export const optionNames = (names: string | undefined): OptionNames => {
  const key = names ?? "";
  let known = cache.get(key);
  if (known === undefined) {
    known = new Set(key.split(" ").filter((name) => name !== ""));
    cache.set(key, known);
  }
  return known;
};

export interface FoundOption {
  /** `-k`, `--kill-after` */
  name: string;
  /** The value, attached or in a word of its own. */
  value: string | undefined;
  /** Index of the option's word. */
  index: number;
  /** Index of the word that the value stands in; equal to `index` when attached. */
  valueIndex: number;
  /** One letter of several behind one dash; where options have one dash and many letters it is none. */
  clustered?: true;
}

/** What one option word says, and how many words it takes; `undefined` for an operand. */
export const readOption = (
  words: readonly string[],
  index: number,
  valued: OptionNames,
): { found: FoundOption[]; taken: number } | undefined => {
  const word = words[index] ?? "";
  if (!word.startsWith("-") || word === "-" || word === "--") return undefined;
  const separate = (name: string): FoundOption => ({ name, value: words[index + 1], index, valueIndex: index + 1 });
  if (valued.has(word)) return { found: [separate(word)], taken: 2 };
  const equals = word.indexOf("=");
  if (equals > 0 && (word.startsWith("--") || valued.has(word.slice(0, equals)))) {
    return {
      found: [{ name: word.slice(0, equals), value: word.slice(equals + 1), index, valueIndex: index }],
      taken: 1,
    };
  }
  if (word.startsWith("--")) return { found: [{ name: word, value: undefined, index, valueIndex: index }], taken: 1 };
  const found: FoundOption[] = [{ name: word, value: undefined, index, valueIndex: index }];
  for (let at = 1; at < word.length; at += 1) {
    // `-j{n}`, `-O2`: what follows is a value, not letters.
    if (!/[A-Za-z]/.test(word[at] ?? "")) break;
    const name = `-${word[at]}`;
    if (valued.has(name)) {
      const attached = word.slice(at + 1);
      if (attached === "") return { found: [...found, separate(name)], taken: 2 };
      return { found: [...found, { name, value: attached, index, valueIndex: index }], taken: 1 };
    }
    if (valued.has(`${name}?`)) {
      const value = word.slice(at + 1);
      return {
        found: [...found, { name, value: value === "" ? undefined : value, index, valueIndex: index }],
        taken: 1,
      };
    }
    if (word.length > 2) found.push({ name, value: undefined, index, valueIndex: index, clustered: true });
  }
  return { found, taken: 1 };
};

/** Options from `start` up to the first operand; `--` is taken too. */
export const skipOptions = (
  words: readonly string[],
  start: number,
  valued: OptionNames,
): { options: FoundOption[]; next: number } => {
  const options: FoundOption[] = [];
  let next = start;
  while (next < words.length) {
    if (words[next] === "--") return { options, next: next + 1 };
    const read = readOption(words, next, valued);
    if (read === undefined) break;
    options.push(...read.found);
    next += read.taken;
  }
  return { options, next: Math.min(next, words.length) };
};

export interface ScannedWords {
  options: FoundOption[];
  /** Words that are neither options nor their values, before `--`. */
  operands: { value: string; index: number }[];
  /** Index of `--`; the number of words when there is none. */
  zoneEnd: number;
}

/** Options and operands in any order, up to `--`. */
export const scanWords = (words: readonly string[], start: number, valued: OptionNames): ScannedWords => {
  const scanned: ScannedWords = { options: [], operands: [], zoneEnd: words.length };
  let index = start;
  while (index < words.length) {
    const value = words[index] ?? "";
    if (value === "--") {
      scanned.zoneEnd = index;
      break;
    }
    const read = readOption(words, index, valued);
    if (read === undefined) {
      scanned.operands.push({ value, index });
      index += 1;
    } else {
      scanned.options.push(...read.found);
      index += read.taken;
    }
  }
  return scanned;
};
