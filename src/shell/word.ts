/** Words after quote removal, with what cannot be known before the command runs marked as such. */
import type { Word, WordPart } from "unbash";

type CommandExpansionPart = Extract<WordPart, { type: "CommandExpansion" }>;

/** Stands for the result of an expansion. A private-use character: no command is named by it. */
export const UNKNOWN = "\uE000";

export interface ShellWord {
  /** The word as the program gets it; each expansion whose result cannot be known is one `UNKNOWN`. */
  value: string;
  /** As it stands in the text, quotes included. */
  source: string;
  /** Where it stands in the outer text, in UTF-16 units; `end` is exclusive. */
  pos: number;
  end: number;
  /** The word stands in the text alone and as it is: not made by a variable, by braces, or in an inner text. */
  exact: boolean;
}

/** What is known about expansions. */
export interface Known {
  /**
   * Values of variables that the text itself sets; `undefined` inside the map: set to something unknown.
   * Lists (`NAME[@]`, and `@` of a function) are joined by `LIST`.
   */
  variables: ReadonlyMap<string, string | undefined>;
  /** What a command substitution prints, where that is plain. */
  outputOf: (part: CommandExpansionPart) => string | undefined;
  /** `${NPM:-npm}` stands for its default. */
  takesDefaults?: boolean;
}

/** Joins the items of a list. A private-use character as well. */
export const LIST = "\uE001";

export const isKnown = (value: string): boolean => !value.includes(UNKNOWN);

/** The name of a plain `$NAME`, `${NAME}` or `${NAME[@]}`. */
const plainVariable = (part: WordPart): string | undefined => {
  if (part.type === "SimpleExpansion") return part.text === "$*" ? "@" : part.text.slice(1);
  if (part.type !== "ParameterExpansion" || part.operation || part.prefix) return undefined;
  if (part.index === undefined) return part.parameter === "*" ? "@" : part.parameter;
  return part.index.value === "@" || part.index.value === "*" ? `${part.parameter}[@]` : undefined;
};

/** The value of an expansion, if anything tells it. */
const expansionValue = (part: WordPart, known: Known): string | undefined => {
  const name = plainVariable(part);
  if (name !== undefined) return known.variables.get(name);
  if (part.type === "CommandExpansion") return known.outputOf(part)?.replace(/\n+$/, "");
  if (part.type === "ParameterExpansion" && part.operation?.type === "Default" && known.takesDefaults) {
    const { operator, operand } = part.operation;
    const held = known.variables.get(part.parameter);
    return operator.endsWith("-") || operator.endsWith("=") ? (held ?? wordValue(operand, known)) : undefined;
  }
  return undefined;
};

const partValue = (part: WordPart, known: Known): string => {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
    case "Glob":
      return part.value;
    case "ExtendedGlob":
    case "BraceExpansion":
      return part.text;
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.map((child) => partValue(child, known)).join("");
    default:
      return expansionValue(part, known)?.replaceAll(LIST, " ") ?? UNKNOWN;
  }
};

/** Bash gets `ci\r` from a text with Windows line ends; people mean `ci`. */
const withoutReturn = (value: string): string => (value.endsWith("\r") ? value.slice(0, -1) : value);

/** The value of a word that is not split: the right side of an assignment, a here-string. */
export const wordValue = (word: Word, known: Known): string =>
  withoutReturn(word.parts === undefined ? word.value : word.parts.map((part) => partValue(part, known)).join(""));

/** More alternatives than that are no command. */
const MOST_ALTERNATIVES = 64;

/** `{npm,ci}` gives two words. Only flat lists; a range or a nested one stays as it is. */
const braceAlternatives = (text: string): string[] => {
  const inner = text.slice(1, -1);
  if (!inner.includes(",") || /[{}"'\\$`]/.test(inner)) return [text];
  return inner.split(",").slice(0, MOST_ALTERNATIVES);
};

/** The words that one word of the text becomes: usually one. */
export const expandWord = (word: Word, known: Known, place: (pos: number, end: number) => Place): ShellWord[] => {
  const { pos, end, isOuter } = place(word.pos, word.end);
  const make = (value: string, exact: boolean): ShellWord => ({
    value: withoutReturn(value),
    source: word.text,
    pos,
    end,
    exact: exact && isOuter,
  });
  if (word.parts === undefined) return [make(word.value, true)];
  let results = [""];
  let exact = true;
  for (const part of word.parts) {
    if (part.type === "BraceExpansion") {
      const alternatives = braceAlternatives(part.text);
      exact &&= alternatives.length === 1;
      if (results.length * alternatives.length > MOST_ALTERNATIVES) return [make(word.value, false)];
      results = results.flatMap((head) => alternatives.map((alternative) => head + alternative));
      continue;
    }
    const inner = part.type === "DoubleQuoted" && part.parts.length === 1 ? part.parts[0] : undefined;
    const listed = inner === undefined ? undefined : expansionValue(inner, known);
    const value =
      inner === undefined ? expansionValue(part, known) : listed?.includes(LIST) || isList(inner) ? listed : undefined;
    if (value !== undefined) {
      // Out of quotes the value is split into words; a list is one word an item in quotes too.
      const [first = "", ...others] = inner === undefined ? value.split(/[ \t\n\uE001]+/) : value.split(LIST);
      // One word of the text that stays one word may be changed in its place.
      exact &&= others.length === 0 && first !== "";
      const last = results.at(-1) ?? "";
      results = [...results.slice(0, -1), last + first, ...others];
      continue;
    }
    const text = partValue(part, known);
    results = results.map((head) => head + text);
  }
  const words = results.filter((value) => value !== "" || exact);
  return words.map((value) => make(value, exact && results.length === 1));
};

/** `$@` and `${NAME[@]}` of one item have no separator in them. */
const isList = (part: WordPart): boolean => {
  const name = plainVariable(part);
  return name === "@" || name?.endsWith("[@]") === true;
};

/** Where a position of the text that is read stands in the outer text. */
export interface Place {
  pos: number;
  end: number;
  /** The text that is read is the outer text itself. */
  isOuter: boolean;
}
