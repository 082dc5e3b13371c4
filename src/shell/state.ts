/** What one command leaves to the next ones, as far as a text tells it: directory, variables, exports. */
import { isAbsolute, join } from "node:path";
import { literalOutput } from "./shell-input.js";
import { isKnown, UNKNOWN, wordValue, type Known, type ShellWord } from "./word.js";

export interface State {
  cwd: string | undefined;
  variables: Map<string, string | undefined>;
  exported: Map<string, string | undefined>;
  /** Variables that are made read only anywhere in the text: nobody looks at where. */
  fixed: Set<string>;
}

/** A subshell starts with what its parent has, and keeps its own changes. */
export const fork = ({ cwd, variables, exported, fixed }: State): State => ({
  cwd,
  variables: new Map(variables),
  exported: new Map(exported),
  fixed,
});

/** What is known where something stands. */
export const knownIn = ({ variables }: State): Known => {
  const known: Known = {
    variables,
    outputOf: ({ script }) => {
      const [only, ...others] = script?.commands ?? [];
      if (only?.command.type !== "Command" || others.length > 0) return undefined;
      return literalOutput(only.command, (word) => wordValue(word, known), undefined);
    },
  };
  return known;
};

/** Builtins that change what later commands get. True when the command runs nothing else. */
export const applyBuiltin = (words: readonly ShellWord[], state: State): boolean => {
  const [first, ...others] = words.map(({ value }) => value);
  switch (first) {
    case "cd":
    case "pushd": {
      const target = others.find((word) => !word.startsWith("-") || word === "-");
      state.cwd = changedDirectory(state.cwd, target);
      return true;
    }
    case "popd":
      state.cwd = undefined;
      return true;
    case "export":
    case "declare":
    case "typeset":
    case "local":
    case "readonly": {
      const isExport = first === "export" || others.some((word) => /^-\w*x/.test(word));
      const isFixed = first === "readonly" || others.some((word) => /^-\w*r/.test(word));
      for (const word of others) {
        declare(word, isExport, state);
        const [, name] = /^([A-Za-z_]\w*)(?:\+?=|$)/.exec(word) ?? [];
        if (isFixed && name !== undefined) state.fixed.add(name);
      }
      return true;
    }
    case "unset":
    case "read":
    case "mapfile":
    case "readarray":
    case "getopts":
      for (const name of others) {
        state.variables.set(name, undefined);
        if (state.exported.has(name)) state.exported.set(name, undefined);
      }
      return true;
    case "alias":
      return true;
    default:
      return false;
  }
};

const declare = (word: string, isExport: boolean, state: State): void => {
  const [, name, value] = /^([A-Za-z_]\w*)(?:=([\s\S]*))?$/.exec(word) ?? [];
  if (name === undefined) return;
  if (value !== undefined) state.variables.set(name, isKnown(value) ? value : undefined);
  if (isExport)
    state.exported.set(name, value !== undefined && !isKnown(value) ? UNKNOWN + value : state.variables.get(name));
};

export const changedDirectory = (cwd: string | undefined, target: string | undefined): string | undefined => {
  if (target === undefined || !isKnown(target) || target === "-" || target.startsWith("~")) return undefined;
  if (isAbsolute(target)) return target;
  return cwd === undefined ? undefined : join(cwd, target);
};
