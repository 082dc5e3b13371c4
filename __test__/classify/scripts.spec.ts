import test from "ava";
import { classify } from "../../src/classify/classify.js";

/** A project whose files are given as an object. */
const inProject = (files: Record<string, string>, command: string) =>
  classify(command, {
    cwd: "/p",
    files: { read: (directory, name) => files[`${directory}/${name}`.replace("/p/", "")] },
  });

const pkg = (scripts: Record<string, string>): Record<string, string> => ({
  "package.json": JSON.stringify({ scripts }),
});

test("a light script is light", (t) => {
  const files = pkg({ clean: "rm -rf dist && mkdir dist", test: 'echo "Error: no test specified" && exit 1', fmt: "" });
  for (const command of ["npm run clean", "npm test", "pnpm clean", "yarn clean", "bun run clean", "npm run fmt"]) {
    t.false(inProject(files, command).heavy, command);
  }
});

test("a heavy script, one that is not known, and one that is not there are heavy", (t) => {
  const files = pkg({ build: "tsc", own: "node build.js", unclosed: "echo 'a" });
  for (const name of ["build", "own", "gone", "unclosed"]) t.true(inProject(files, `npm run ${name}`).heavy, name);
});

test("what runs before and after a script counts", (t) => {
  t.true(inProject(pkg({ a: "echo a", prea: "webpack" }), "npm run a").heavy);
  t.true(inProject(pkg({ a: "echo a", posta: "jest" }), "npm run a").heavy);
});

test("each of these scripts has a shell of its own", (t) => {
  t.false(inProject({ ...pkg({ a: "npm run b", b: "echo b", prea: "cd web" }) }, "npm run a").heavy);
  t.true(inProject(pkg({ a: "echo a", prea: "echo 'a" }), "npm run a").heavy);
});

test("scripts that call scripts are followed, and end", (t) => {
  t.false(inProject(pkg({ a: "npm run b", b: "echo b" }), "npm run a").heavy);
  t.true(inProject(pkg({ a: "npm run b", b: "npm run a" }), "npm run a").heavy);
});

test("the directory that the words name is the one that is read", (t) => {
  const files = { "web/package.json": JSON.stringify({ scripts: { a: "echo a" } }) };
  for (const command of [
    "cd web && npm run a",
    "command cd web && npm run a",
    "npm --prefix web run a",
    "pnpm -C web a",
    "yarn --cwd web a",
    "env -C web npm run a",
    "sudo -D web npm run a",
    "pnpm -C web exec npm run a",
    "uv run --directory web npm run a",
  ]) {
    t.false(inProject(files, command).heavy, command);
  }
  t.true(inProject(files, "npm run a").heavy);
  const elsewhere = [
    "npm run a --workspaces",
    "env -C web npm run a",
    "npm explore x -- npm run a",
    "chroot r npm run a",
  ];
  for (const command of elsewhere) t.true(inProject(pkg({ a: "echo a" }), command).heavy, command);
});

test("a name that is no script may be a program", (t) => {
  t.is(inProject(pkg({}), "yarn jest").kind, "test");
  t.false(inProject(pkg({ jest: "echo no" }), "yarn jest").heavy);
});

test("a package.json that is odd is no reason to throw", (t) => {
  for (const text of [
    "",
    "null",
    "[]",
    "{",
    '{"scripts":null}',
    '{"scripts":{"a":1}}',
    '{"scripts":{"__proto__":"x"}}',
  ]) {
    t.true(inProject({ "package.json": text }, "npm run a").heavy, text);
    t.true(inProject({ "package.json": text }, "npm run toString").heavy, text);
  }
});

test("targets of a Makefile", (t) => {
  const text = `.PHONY: clean all\nall: build\nclean: gone\n\trm -rf $(OUT)\n\t@echo $$HOME\ngone:\n\t-rm -f x\nbuild: a.o\n\tcc -o a a.o\nhelp: ; @echo help\n`;
  const heavy = (command: string): boolean => inProject({ Makefile: text }, command).heavy;
  t.false(heavy("make clean"));
  t.false(heavy("make help clean"));
  t.true(heavy("make build"));
  t.true(heavy("make"));
  t.true(heavy("make nothing"));
  t.true(heavy("make -f other.mk clean"));
  t.true(inProject({ Makefile: `include x.mk\n${text}` }, "make clean").heavy);
  t.true(inProject({ Makefile: "clean:\n\t$(MAKE) -C sub clean\n" }, "make clean").heavy);
});

test("recipes of a justfile", (t) => {
  const text = `set dotenv-load\nx := "1"\n# cleans\nclean target="a":\n    rm -rf {{target}}\nbuild: clean\n    cargo build\n@say:\n    echo hi\n`;
  const heavy = (command: string): boolean => inProject({ justfile: text }, command).heavy;
  t.false(heavy("just clean"));
  t.false(heavy("just say"));
  t.true(heavy("just build"));
  t.true(heavy("just nothing"));
});
