import test from "ava";
import { readText } from "../../src/shell/read.js";
import { UNKNOWN } from "../../src/shell/word.js";

/** Programs with their words; `?` for what cannot be known. */
const runsOf = (text: string): string[] =>
  readText(text).runs.map(({ words }) => words.map(({ value }) => value.replaceAll(UNKNOWN, "?")).join(" "));

const CASES: Record<string, [text: string, runs: string[]]> = {
  "lists and pipelines": ["a; b && c || d | e & f", ["a", "b", "c", "d", "e", "f"]],
  "compound commands": [
    "if a; then b; elif c; then d; else e; fi; while f; do g; done; case x in y) h;; esac",
    ["a", "b", "c", "d", "e", "f", "g", "h"],
  ],
  "substitutions run before the command": ['echo "$(a)" `b` <(c)', ["a", "b", "c", "echo ? ? ?"]],
  "a function counts where it is called": ["f() { a; }; b; f; g() { c; }", ["b", "a"]],
  "a function that calls itself": ["f() { a; f; }; f", ["a", "f"]],
  "words of a function": ['f() { echo x; "$@"; }; f npm ci', ["echo x", "npm ci"]],
  "quotes are removed": [`n'p'm "c"\\i $'\\x41'`, ["npm ci A"]],
  "variables that the text sets": ["A='npm ci'; $A --x; \"$A\"", ["npm ci --x", "npm ci"]],
  lists: ['c=(npm ci); c+=(-x); "${c[@]}"', ["npm ci -x"]],
  braces: ["{npm,ci} a{b,c}d", ["npm ci abd acd"]],
  "a loop over words": ["for t in a b; do make $t; done", ["make ?", "make a", "make b"]],
  "an inner text": ["bash -lc 'a && b' ; sh -x -c \"c $d\"; eval a b", ["a", "b", "c ?", "a b"]],
  "input of a shell": [
    "bash <<'EOF'\na\nEOF\necho b | sh; bash <<< c; cat <<EOF | bash\nd\nEOF",
    ["a", "echo b", "b", "c", "cat", "d"],
  ],
  "data is no code": ["cat <<EOF\nnpm ci\nEOF\necho 'npm ci' # npm ci", ["cat", "echo npm ci"]],
  wrappers: ["sudo -u x -E env -i A=1 nice -n 5 timeout -k 1 5 time -p strace -f -o l a b", ["a b"]],
  "find and xargs": ["find . -exec a {} \\; -exec b {} + ; xargs -n 1 -P 4 c d", ["a {}", "b {}", "c d ?"]],
  "a wrapper that runs nothing": [
    "command -v npm; sudo -v; timeout --help",
    ["command -v npm", "sudo -v", "timeout --help"],
  ],
  "remote commands are not ours": ["ssh host npm ci", ["ssh host npm ci"]],
};

for (const [name, [text, runs]] of Object.entries(CASES)) {
  test(name, (t) => t.deepEqual(runsOf(text), runs));
}

const nested = (count: number, text: string): string =>
  count === 0 ? text : `bash -c '${nested(count - 1, text).replaceAll("'", "'\\''")}'`;

/** Functions that call each other in a chain. */
const calls = (count: number): string =>
  `${Array.from({ length: count }, (_, index) => `f${index}() { f${index + 1}; }`).join("; ")}; f${count}() { a; }; f0`;

test("where reading ends, that is told", (t) => {
  for (const text of ["eval ".repeat(12), "timeout 1 ".repeat(20), "env nice ".repeat(10)]) {
    t.regex(readText(`${text}a`).problem ?? "", /the rest was not read/, text);
  }
  t.regex(readText(nested(10, "a")).problem ?? "", /more than 8 deep/);
  t.regex(readText(calls(40)).problem ?? "", /functions that call each other/);
  t.regex(readText(`bash -c "${"a ".repeat(60_000)}${"$(b)".repeat(501)}"`).problem ?? "", /not read/);
  for (const text of ["eval ".repeat(8), "timeout 1 ".repeat(16)]) t.is(readText(`${text}a`).problem, undefined, text);
  t.is(readText(nested(6, "a")).problem, undefined);
  t.deepEqual(runsOf(nested(6, "a")), ["a"]);
  t.is(readText(calls(20)).problem, undefined);
  t.is(readText("f() { a; f; }; f").problem, undefined);
});

const cwds = (text: string): (string | undefined)[] => readText(text, "/p").runs.map(({ cwd }) => cwd);

const editable = (text: string): boolean[] => readText(text).runs.map((run) => run.editable);

const place = (text: string): string | undefined => {
  const found = readText(text).runs[0]?.variables;
  return found === undefined ? undefined : `${found.at}@${found.pos}${found.inherits ? " inherits" : ""}`;
};

test("the directory is followed as far as it is known", (t) => {
  t.deepEqual(cwds("a; cd b && c; (cd d; e); f; cd $x; g; cd /h; i"), [
    "/p",
    "/p/b",
    "/p/b/d",
    "/p/b",
    undefined,
    "/h",
  ]);
});

test("only the outer text may be edited, and not in backticks or here-documents", (t) => {
  t.deepEqual(editable("a; $(b); (c)"), [true, true, true, true]);
  t.deepEqual(editable("x=`a`"), [false]);
  t.deepEqual(editable("bash -c 'a'"), [false]);
  t.deepEqual(editable("xargs a"), [false]);
  t.deepEqual(editable("cat <<EOF\n$(a)\nEOF"), [false, true]);
  t.deepEqual(editable("a 'b"), [false]);
});

test("a variable is put where it arrives", (t) => {
  t.is(place("timeout 5 a"), "prefix@0 inherits");
  t.is(place("env A=1 a"), "prefix@0 inherits");
  t.is(place("env -i A=1 a"), "env@11");
  t.is(place("sudo a"), undefined);
  t.is(place("sudo -E a"), "prefix@0 inherits");
  t.is(place("sudo env a"), "env@9");
  t.is(place("bash -c 'a'"), "prefix@0 inherits");
  t.is(place("bash -c 'sudo a'"), undefined);
  t.is(place("su - x -c a"), undefined);
});
