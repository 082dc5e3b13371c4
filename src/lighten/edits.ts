/** Changes to a text, made by span and checked by reading the result again. */
import { readText, type ReadText } from "../shell/read.js";
import type { SimpleCommand } from "../shell/simple-command.js";
import { isKnown, type ShellWord } from "../shell/word.js";

/** One change to one simple command. */
export type Change =
  /** The word at `index` becomes another one; `undefined` takes it away. */
  | { at: "word"; simple: SimpleCommand; index: number; source: string | undefined }
  /** New words before the word at `index`, which may be one behind the last. */
  | { at: "insert"; simple: SimpleCommand; index: number; sources: string[] }
  /** The value of the assignment at `index`. */
  | { at: "assignment"; simple: SimpleCommand; index: number; source: string; value: string | undefined }
  /** A new assignment before the command, behind those that are there: none of them sees it. */
  | { at: "prefix"; simple: SimpleCommand; source: string };

interface TextEdit {
  pos: number;
  end: number;
  text: string;
}

/** The changed text, or `undefined` when the result would not be the same commands apart from the changes. */
export const applyChanges = (text: string, read: ReadText, changes: readonly Change[]): string | undefined => {
  const edits = changes.map((change, order) => ({ ...toEdit(text, change), order }));
  edits.sort((a, b) => a.pos - b.pos || a.order - b.order);
  let result = "";
  let done = 0;
  for (const { pos, end, text: replacement } of edits) {
    if (pos < done) return undefined;
    result += text.slice(done, pos) + replacement;
    done = end;
  }
  result += text.slice(done);
  return isAsIntended(text, read, changes, edits, result) ? result : undefined;
};

const toEdit = (text: string, change: Change): TextEdit => {
  const { words, assignments, pos: start } = change.simple;
  switch (change.at) {
    case "word": {
      const { pos, end } = words[change.index] ?? { pos: start, end: start };
      if (change.source !== undefined) return { pos, end, text: change.source };
      let from = pos;
      while (/[ \t]/.test(text[from - 1] ?? "")) from -= 1;
      return { pos: from, end, text: "" };
    }
    case "insert": {
      const before = words[change.index - 1];
      const at = before === undefined ? (words[change.index]?.pos ?? start) : before.end;
      return { pos: at, end: at, text: ` ${change.sources.join(" ")}` };
    }
    case "assignment": {
      const { pos, end } = assignments[change.index]?.value ?? { pos: start, end: start };
      return { pos, end, text: change.source };
    }
    case "prefix": {
      const last = assignments.at(-1)?.value;
      if (last !== undefined) return { pos: last.end, end: last.end, text: ` ${change.source}` };
      return { pos: start, end: start, text: `${change.source} ` };
    }
  }
};

/** The sources of a simple command's assignments and words. */
const partsOf = ({ assignments, words }: SimpleCommand): string[] => [
  ...assignments.map(({ name, value }) => `${name}=${value.source}`),
  "\0",
  ...words.map(({ source }) => source),
];

/** A word with a substitution in it whose own commands were changed. */
const withEdits =
  (text: string, edits: readonly TextEdit[]) =>
  (word: ShellWord): string => {
    const inside = edits.filter(({ pos, end }) => word.pos < pos && end < word.end);
    if (inside.length === 0 || text.slice(word.pos, word.end) !== word.source) return word.source;
    let source = "";
    let done = word.pos;
    for (const { pos, end, text: replacement } of inside) {
      source += text.slice(done, pos) + replacement;
      done = end;
    }
    return source + text.slice(done, word.end);
  };

const expectedParts = (
  simple: SimpleCommand,
  changes: readonly Change[],
  sourceOf: (word: ShellWord) => string,
): string[] => {
  const assignments: string[] = simple.assignments.map(({ name, value }) => `${name}=${sourceOf(value)}`);
  const words: string[][] = simple.words.map((word) => [sourceOf(word)]);
  const inserted = new Map<number, string[]>();
  const prefixes: string[] = [];
  for (const change of changes) {
    if (change.at === "word") words[change.index] = change.source === undefined ? [] : [change.source];
    else if (change.at === "insert")
      inserted.set(change.index, [...(inserted.get(change.index) ?? []), ...change.sources]);
    else if (change.at === "prefix") prefixes.push(change.source);
    else assignments[change.index] = `${simple.assignments[change.index]?.name}=${change.source}`;
  }
  const flat = words.flatMap((sources, index) => [...(inserted.get(index) ?? []), ...sources]);
  return [...assignments, ...prefixes, "\0", ...flat, ...(inserted.get(words.length) ?? [])];
};

const isAsIntended = (
  text: string,
  read: ReadText,
  changes: readonly Change[],
  edits: readonly TextEdit[],
  result: string,
): boolean => {
  const after = readText(result);
  if (after.problem !== undefined) return false;
  // A computed value that was replaced took its substitution along.
  const isGone = (simple: SimpleCommand): boolean =>
    edits.some(({ pos, end }) => pos <= simple.pos && simple.end <= end && pos < end);
  const before = read.simples.filter((simple) => !isGone(simple));
  if (before.length !== after.simples.length) return false;
  const byStart = groupByStart(changes);
  const sourceOf = withEdits(text, edits);
  return before.every((simple, index) => {
    const own = byStart.get(simple.pos) ?? [];
    const found = after.simples[index];
    if (found === undefined) return false;
    const expected = expectedParts(simple, own, sourceOf);
    const actual = partsOf(found);
    return (
      expected.length === actual.length &&
      expected.every((part, at) => part === actual[at]) &&
      own.every((change) => hasValue(change, found))
    );
  });
};

const groupByStart = (changes: readonly Change[]): Map<number, Change[]> => {
  const groups = new Map<number, Change[]>();
  for (const change of changes) groups.set(change.simple.pos, [...(groups.get(change.simple.pos) ?? []), change]);
  return groups;
};

/** A rewritten value must be read as what was meant, whatever quotes it stands in. */
const hasValue = (change: Change, found: SimpleCommand): boolean => {
  if (change.at !== "assignment" || change.value === undefined || !isKnown(change.value)) return true;
  const name = change.simple.assignments[change.index]?.name;
  return found.assignments.some((assignment) => assignment.name === name && assignment.value.value === change.value);
};
