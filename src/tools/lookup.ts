/** Finds a tool by the name it is called by. */
import type { Entry, Tool, Verdict } from "./schema.js";
import { COMPILED } from "./table/compiled.js";
import { JAVASCRIPT } from "./table/javascript.js";
import { MACHINE } from "./table/machine.js";
import { MANAGED } from "./table/jvm.js";
import { PYTHON } from "./table/python.js";

export const TOOLS: readonly Tool[] = [...JAVASCRIPT, ...PYTHON, ...COMPILED, ...MANAGED, ...MACHINE];

const byName = new Map<string, Tool>();
const byModule = new Map<string, Tool>();
const families: Tool[] = [];
for (const tool of TOOLS) {
  for (const name of tool.names.split(" ")) byName.set(name, tool);
  for (const name of tool.modules?.split(" ") ?? []) byModule.set(name, tool);
  if (tool.pattern !== undefined) families.push(tool);
}

/** `pip3.12`, `gcc-13`, `clang++-18`: the name with its version. */
const VERSION = /-?\d+(?:\.\d+)*$/;
/** Endings that a program may have and people leave out. */
const ENDING = /\.(?:exe|cmd|bat|ps1|phar)$/;

export const toolNamed = (name: string): Tool | undefined => {
  const exact = byName.get(name);
  if (exact !== undefined) return exact;
  const plain = name.replace(ENDING, "");
  const unversioned = plain.replace(VERSION, "");
  return (
    byName.get(plain) ??
    byName.get(unversioned) ??
    families.find(({ pattern }) => pattern?.test(plain) || pattern?.test(unversioned))
  );
};

/** The tool behind `python -m NAME`. */
export const toolOfModule = (name: string): Tool | undefined => byModule.get(name);

/** Every name that the table knows, patterns aside. */
export const toolNames = (): string[] => [...byName.keys()];
export const moduleNames = (): string[] => [...byModule.keys()];

const subcommandCache = new WeakMap<object, Map<string, Verdict | Entry>>();

/** Subcommands by each of their aliases. */
export const subcommandsOf = (entry: Entry): ReadonlyMap<string, Verdict | Entry> | undefined => {
  const { subcommands } = entry;
  if (subcommands === undefined) return undefined;
  let found = subcommandCache.get(subcommands);
  if (found === undefined) {
    found = new Map(
      Object.entries(subcommands).flatMap(([names, value]) => names.split(" ").map((name) => [name, value] as const)),
    );
    subcommandCache.set(subcommands, found);
  }
  return found;
};
