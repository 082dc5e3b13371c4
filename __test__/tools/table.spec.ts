import test from "ava";
import { wrapperNames } from "../../src/shell/wrappers.js";
import { judge } from "../../src/tools/judge.js";
import { TOOLS, toolNamed } from "../../src/tools/lookup.js";
import { KINDS, type Entry, type Verdict } from "../../src/tools/schema.js";

test("every name belongs to one tool", (t) => {
  const names = TOOLS.flatMap((tool) => tool.names.split(" "));
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  t.deepEqual(twice, []);
  for (const name of names) t.not(toolNamed(name), undefined, name);
});

const entriesOf = (entry: Entry): Entry[] => {
  const inner: (Verdict | Entry | undefined)[] = [...Object.values(entry.subcommands ?? {}), entry.bare, entry.other];
  return [entry, ...inner.flatMap((value) => (typeof value === "object" ? entriesOf(value) : []))];
};

test("subcommands are named once", (t) => {
  for (const tool of TOOLS) {
    for (const { subcommands = {} } of entriesOf(tool)) {
      const names = Object.keys(subcommands).flatMap((key) => key.split(" "));
      t.deepEqual(
        names.filter((name, index) => names.indexOf(name) !== index),
        [],
        tool.names,
      );
    }
  }
});

test("kinds are those of the contract", (t) => {
  for (const tool of TOOLS) {
    for (const { kind } of entriesOf(tool)) t.true(kind === undefined || KINDS.includes(kind), tool.names);
  }
});

test("help and a version are light for every tool", (t) => {
  for (const tool of TOOLS) {
    const name = tool.names.split(" ")[0] ?? "";
    t.not(judge([name, "--help"]).verdict, "heavy", name);
    t.not(judge([name, "--version"]).verdict, "heavy", name);
  }
});

test("advice is an imperative without its full stop", (t) => {
  for (const { next, names } of TOOLS) if (next !== undefined) t.regex(next, /^[a-z].*[^.]$/s, names);
});

test("worker options say how they are written", (t) => {
  for (const tool of TOOLS) {
    for (const { workers } of entriesOf(tool)) {
      if (!workers) continue;
      t.true(workers.write.includes("{n}"), tool.names);
      t.true(workers.write.split(" ").length <= 2, tool.names);
    }
  }
});

test("versions and endings are no part of a name", (t) => {
  for (const name of [
    "pip3.12",
    "gcc-13",
    "clang++-18",
    "npm.cmd",
    "composer.phar",
    "x86_64-linux-gnu-gcc-13",
    "create-vite",
  ]) {
    t.not(toolNamed(name), undefined, name);
  }
  for (const name of ["ls", "gitk", "makefile", "np", "created"]) t.is(toolNamed(name), undefined, name);
});

test("wrappers are no tools of their own, unless one of their subcommands only is one", (t) => {
  const both = wrapperNames().filter((name) => toolNamed(name) !== undefined);
  t.true(both.length > 0);
  for (const name of ["sudo", "env", "timeout", "nice", "xargs"]) t.false(both.includes(name), name);
});
