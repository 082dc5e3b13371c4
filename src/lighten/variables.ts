/** Variables that a program is given: set in front of it, or lowered where they are set already. */
import type { Assignment, Run } from "../shell/simple-command.js";
import { isKnown } from "../shell/word.js";
import type { Change } from "./edits.js";

/** What a variable holds when the program starts. */
export type Held =
  /** Set right at the command, where it may be changed. */
  | { where: "command"; assignment: Assignment; value: string }
  /** Set at the command, in a text that is not edited. */
  | { where: "inner"; value: string }
  /** Exported before, in the same text or by whoever starts it. */
  | { where: "environment"; value: string };

export const heldBy = (
  run: Run,
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): Held | undefined => {
  const assignment = run.assigned.findLast((found) => found.name === name);
  if (assignment !== undefined) {
    const { value } = assignment.value;
    return assignment.value.exact && run.simple.editable
      ? { where: "command", assignment, value }
      : { where: "inner", value };
  }
  const exported = run.exported.has(name) ? run.exported.get(name) : environment[name];
  return exported === undefined ? undefined : { where: "environment", value: exported };
};

/** The change that gives an assignment another value. `toSource` gets the source text of the old value. */
export const changeAssignment = (
  run: Run,
  assignment: Assignment,
  toSource: (source: string) => string,
  value: string | undefined,
): Change | undefined => {
  const { simple } = run;
  const index = simple.assignments.findIndex((found) => found.value.pos === assignment.value.pos);
  if (index >= 0 && (run.fixed.has(assignment.name) || isRead(assignment.name, simple.assignments.slice(index + 1))))
    return undefined;
  if (index >= 0)
    return { at: "assignment", simple, index, source: toSource(simple.assignments[index]?.value.source ?? ""), value };
  // A word of `env` or `cross-env`: NAME=value as one word.
  const word = simple.words.findIndex(({ pos, exact }) => pos === assignment.value.pos && exact);
  const source = simple.words[word]?.source;
  const head = `${assignment.name}=`;
  if (source === undefined || !source.startsWith(head)) return undefined;
  return { at: "word", simple, index: word, source: head + toSource(source.slice(head.length)) };
};

/** Later assignments of the same command see the earlier ones: `A=1 B=$A`, and `B=$(printenv A)` as well. */
const isRead = (name: string, later: readonly Assignment[]): boolean =>
  later.some(({ value: { source } }) => new RegExp(`\\b${name}\\b|\\$\\(|\`|\\$\\{!`).test(source));

/** The change that sets a variable which is not set at the command; `undefined` where it would not arrive. */
export const setVariable = (
  run: Run,
  name: string,
  source: { inherits: string; plain: string },
): Change | undefined => {
  const { variables: place, simple } = run;
  if (place === undefined) return undefined;
  // bash gives no value to a variable that is read only.
  if (place.at === "prefix" && run.fixed.has(name)) return undefined;
  // An inner text may do something else with it.
  if (run.at < 0 && simple.words.some(({ source: text }) => new RegExp(`\\b${name}\\b`).test(text))) return undefined;
  const text = `${name}=${place.inherits ? source.inherits : source.plain}`;
  if (place.at === "prefix") return { at: "prefix", simple, source: text };
  return { at: "insert", simple, index: place.before, sources: [text] };
};

/** A whole number, or `undefined`. */
export const numberIn = (value: string): number | undefined =>
  isKnown(value) && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
