/** Heavy or light: one program's words against the table. No shell, no files. */
import { commandName, isUnknownName } from "../shell/names.js";
import { optionNames, scanWords, type ScannedWords } from "../shell/options.js";
import { UNKNOWN } from "../shell/word.js";
import { isKnownLight } from "./light.js";
import { subcommandsOf, toolNamed } from "./lookup.js";
import type { Entry, Kind, Tool, Verdict } from "./schema.js";

export interface HeavyWork {
  verdict: "heavy";
  kind: Kind;
  tool: Tool;
  /** What holds for the subcommand; fields of the tool fill the gaps. */
  entry: Entry;
  scanned: ScannedWords;
  /** Index of the last word that chose the subcommand; 0 without one. */
  subcommandAt: number;
  /** The operands behind the subcommand. */
  operands: ScannedWords["operands"];
  why: string;
}

export type Judgement =
  | HeavyWork
  /** Known to be light, and why. */
  | { verdict: "light"; why: string }
  /** Nothing is known about it: light by itself, but no reason to call a script light. */
  | { verdict: "unknown" };

const HELP = optionNames("--help --version");

/** `values` are the program and its words, wrappers and interpreters taken off. */
export const judge = (values: readonly string[], source: string = values[0] ?? ""): Judgement => {
  const [first = ""] = values;
  if (isUnknownName(first)) return judgeUnknown(values, source);
  const name = commandName(first);
  const tool = toolNamed(name) ?? toolNamed(first);
  if (tool === undefined)
    return isKnownLight(name) ? { verdict: "light", why: `${name} needs little memory` } : { verdict: "unknown" };
  return judgeTool(tool, values);
};

/** The command word cannot be known: what its text names is taken for it. */
const judgeUnknown = (values: readonly string[], source: string): Judgement => {
  const candidates = source.match(/[A-Za-z][\w+.-]*/g) ?? [];
  for (const candidate of candidates.toReversed()) {
    for (const name of [
      candidate,
      candidate.toLowerCase(),
      candidate.toLowerCase().replace(/_(?:bin|cmd|path|exe|bin_path)$/, ""),
    ]) {
      const tool = toolNamed(name);
      if (tool === undefined) continue;
      const judged = judgeTool(tool, [name, ...values.slice(1)]);
      if (judged.verdict === "heavy")
        return { ...judged, why: `the command word is not known, but it names ${name}: ${judged.why}` };
    }
  }
  return { verdict: "unknown" };
};

const judgeTool = (tool: Tool, values: readonly string[]): Judgement => {
  const title = tool.names.split(" ")[0] ?? "";
  let entry: Entry = tool;
  let start = 1;
  if (tool.selector !== undefined && tool.selector.test(values[start] ?? "")) start += 1;
  const valued = [tool.valued ?? ""];
  let scanned = scanWords(values, start, optionNames(valued.join(" ")));
  let chosen = 0;
  const path: string[] = [];
  for (;;) {
    if (isHelp(entry, scanned, chosen)) return { verdict: "light", why: `${title}: help, a version or a dry run` };
    const rest = scanned.operands.filter(({ index }) => index > chosen);
    const [operand] = rest;
    if (entry.goals && operand !== undefined) {
      const goal = chooseGoal(entry, rest);
      if (goal === undefined)
        return { verdict: "light", why: `${[title, ...rest.map(({ value }) => value)].join(" ")} is light` };
      chosen = goal.index;
      path.push(goal.value);
      entry = inherit(entry, { kind: goal.kind });
      break;
    }
    const next = chooseNext(entry, operand?.value);
    if (next === undefined) break;
    if (next.takes && operand !== undefined) {
      chosen = operand.index;
      path.push(operand.value);
    }
    if (next.to === "light") return { verdict: "light", why: `${[title, ...path].join(" ")} is light` };
    const inner: Entry = typeof next.to === "string" ? { kind: next.to } : next.to;
    entry = inherit(entry, inner);
    if (inner.valued !== undefined) {
      valued.push(inner.valued);
      scanned = scanWords(values, start, optionNames(valued.join(" ")));
    }
  }
  if (!isNeeded(entry, scanned)) return { verdict: "unknown" };
  if (entry.kind === undefined) return { verdict: "light", why: `${title} is light here` };
  return {
    verdict: "heavy",
    kind: entry.kind,
    tool,
    entry,
    scanned,
    subcommandAt: chosen,
    operands: scanned.operands.filter(({ index }) => index > chosen),
    why: `${[title, ...path].join(" ")}: ${entry.kind} work`,
  };
};

/** Of several goals (`mvn clean install`) the last heavy one counts. */
const chooseGoal = (
  entry: Entry,
  operands: ScannedWords["operands"],
): { index: number; value: string; kind: Kind } | undefined => {
  for (const { index, value } of operands.toReversed()) {
    // `:app:test`, `core/test`, `'testOnly *Foo'`
    const [word = value] = value.trim().split(/\s+/);
    const last = word.slice(Math.max(word.lastIndexOf(":"), word.lastIndexOf("/")) + 1);
    const found = subcommandsOf(entry)?.get(word) ?? subcommandsOf(entry)?.get(last) ?? entry.other;
    if (typeof found === "string" && found !== "light") return { index, value, kind: found };
  }
  return undefined;
};

/** Fields that choose further are the subcommand's alone; the others are passed on. */
const inherit = (outer: Entry, inner: Entry): Entry => {
  const {
    bare: _bare,
    goals: _goals,
    subcommands: _subcommands,
    other: _other,
    needs: _needs,
    operandIsProgram: _program,
    script: _script,
    light,
    ...kept
  } = outer;
  return { ...kept, ...inner, light: `${light ?? ""} ${inner.light ?? ""}` };
};

const chooseNext = (entry: Entry, operand: string | undefined): { to: Verdict | Entry; takes: boolean } | undefined => {
  if (operand === undefined) return entry.bare === undefined ? undefined : { to: entry.bare, takes: false };
  const found = subcommandsOf(entry)?.get(operand);
  if (found !== undefined) return { to: found, takes: true };
  // A subcommand that cannot be known is taken for the tool's usual work.
  if (operand.includes(UNKNOWN) && entry.subcommands !== undefined && entry.kind !== undefined)
    return { to: entry.kind, takes: true };
  return entry.other === undefined ? undefined : { to: entry.other, takes: false };
};

const isHelp = (entry: Entry, { options, operands }: ScannedWords, chosen: number): boolean => {
  const light = optionNames(entry.light);
  const limit = entry.operandIsProgram ? (operands.find(({ index }) => index > chosen)?.index ?? Infinity) : Infinity;
  return options.some(({ name, index, clustered }) => {
    if (index >= limit || (clustered && (entry.singleDash || name === "-v" || name === "-V"))) return false;
    return HELP.has(name) || light.has(name) || (name === "-h" && !clustered && !entry.hasOwnH);
  });
};

const isNeeded = ({ needs }: Entry, { options, operands }: ScannedWords): boolean => {
  if (needs === undefined) return true;
  const names = optionNames(needs);
  return options.some(({ name }) => names.has(name)) || operands.some(({ value }) => names.has(value));
};
