/** What must hold for any text, tried with mutations of the corpora. */
import test from "ava";
import { classify } from "../../src/classify/classify.js";
import { lighten } from "../../src/lighten/lighten.js";
import { readText } from "../../src/shell/read.js";
import { allCommands } from "../support/corpus.js";
import { Random } from "../support/random.js";

const ROUNDS = 100_000;
const PROFILES = [
  { cpus: 4, capMb: 650 },
  { cpus: 8, capMb: 2048 },
  { cpus: 1, capMb: 300 },
];
const PIECES = [
  " ",
  "'",
  '"',
  "\\",
  "$(",
  ")",
  "`",
  "{",
  "}",
  ";",
  "&&",
  "||",
  "|",
  "\n",
  "<<EOF\n",
  "\nEOF\n",
  "$x",
  "${y:-npm}",
  "# ",
  "if ",
  "then ",
  "; fi",
  "=",
  "-j8",
  "--",
  "*",
  "\r\n",
  "\0",
  "\uD800",
  "é",
  "(",
  "((",
  "[[ ",
  "NODE_OPTIONS=",
  "!",
  "<(",
  ">f ",
  "2>&1",
];

const mutate = (random: Random, commands: readonly string[]): string => {
  let text = random.pick(commands);
  for (let count = random.below(4) + 1; count > 0; count -= 1) {
    const at = random.below(text.length + 1);
    const end = at + random.below(6);
    switch (random.below(6)) {
      case 0:
        text = text.slice(0, at) + random.pick(PIECES) + text.slice(at);
        break;
      case 1:
        text = text.slice(0, at) + text.slice(end);
        break;
      case 2:
        text = text.slice(0, at) + random.pick(PIECES) + text.slice(end);
        break;
      case 3:
        text = `${text}${random.pick(["; ", " && ", " | ", "\n"])}${random.pick(commands)}`;
        break;
      case 4:
        text = `${random.pick(["(", "{ ", "echo $(", 'echo "$(', "x=`", "f() { "])}${text}${random.pick([")", "; }", ')"', "`", "; }; f"])}`;
        break;
      default:
        text = text.slice(0, at) + text.slice(at, end).repeat(2) + text.slice(end);
    }
  }
  return text;
};

/** The parts of the text outside of commands with something heavy in them, in order. */
const outsideHeavy = (text: string): string[] => {
  const spans = classify(text)
    .runs.map(({ run }) => run.simple)
    .toSorted((a, b) => a.pos - b.pos);
  const parts: string[] = [];
  let done = 0;
  for (const { pos, end } of spans) {
    if (pos > done) parts.push(text.slice(done, pos));
    done = Math.max(done, end);
  }
  return [...parts, text.slice(done)];
};

const containsInOrder = (text: string, parts: readonly string[]): boolean => {
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return true;
};

const programs = (text: string): string[] => readText(text).runs.map(({ words }) => words[0]?.value ?? "");

test(`${ROUNDS} mutated texts: nothing throws, and what is rewritten stays the same commands`, (t) => {
  const commands = allCommands();
  const random = new Random(20261201);
  let changed = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const text = mutate(random, commands);
    const options = random.pick(PROFILES);
    const classified = classify(text);
    const result = lighten(text, classified, options);
    if (result.text === text) {
      if (result.changes.length > 0) t.fail(`changes told but none made: ${JSON.stringify(text)}`);
      continue;
    }
    changed += 1;
    const label = `${JSON.stringify(text)} → ${JSON.stringify(result.text)}`;
    if (!classified.heavy || classified.problem !== undefined) t.fail(`must be left alone: ${label}`);
    if (result.changes.length === 0) t.fail(`a change is not told: ${label}`);
    // A computed number of workers takes its own command along (`-j$(nproc)`).
    const isComputed = /\$\(|`|\$\{\s/.test(text);
    if (!isComputed && programs(text).join("\n") !== programs(result.text).join("\n"))
      t.fail(`other programs: ${label}`);
    if (!containsInOrder(result.text, outsideHeavy(text))) t.fail(`changed outside of heavy commands: ${label}`);
    const again = lighten(result.text, classify(result.text), options);
    if (again.text !== result.text) t.fail(`not idempotent: ${label} → ${JSON.stringify(again.text)}`);
  }
  t.log(`${changed} of ${ROUNDS} texts were rewritten`);
  t.true(changed > ROUNDS / 20);
});

const ADVERSARIAL: Record<string, string> = {
  "1 MB of one command": `npm ci ${"a ".repeat(500_000)}`,
  "1 MB of commands": "make -j8; ".repeat(100_000),
  "20,000 nested parentheses": `${"(".repeat(20_000)}make -j8${")".repeat(20_000)}`,
  "20,000 nested substitutions": `${"$(".repeat(20_000)}make -j8${")".repeat(20_000)}`,
  "20,000 nested braces": `${"{ ".repeat(20_000)}make -j8${"; }".repeat(20_000)}`,
  "20,000 backslashes": `make ${"\\".repeat(20_000)}`,
  "20,000 backticks": `make ${"`".repeat(20_000)}`,
  "nested functions that call each other": `${Array.from({ length: 200 }, (_, index) => `f${index}() { f${(index + 1) % 200}; f${(index + 7) % 200}; }`).join("; ")}; f0`,
  "nested loops over words": `${"for a in 1 2 3 4 5 6 7 8; do ".repeat(8)}make -j8${"; done".repeat(8)}`,
  "a chain of 600 functions": `${Array.from({ length: 600 }, (_, index) => `f${index}(){ f${index + 1}; }`).join("\n")}\nf600(){ npm test; }; f0`,
  "braces that multiply": `${"{a,b,c,d}".repeat(40)} make`,
  "an inner text in an inner text": Array.from({ length: 12 }).reduce<string>(
    (text) => `bash -c '${text.replaceAll("'", "'\\''")}'`.slice(0, 100_000),
    "make -j8",
  ),
  NUL: "npm\0 ci; make -j8\0",
  "lone surrogates": "\uD800npm ci; make -j8 \uDFFF",
  CRLF: "npm ci\r\nmake -j8\r\n",
  "only operators": "&& || ; | & ;; ( ) { }",
  "a long pattern of quotes": `make ${"'\"".repeat(30_000)}`,
  "1 MB here-document": `cat <<EOF\n${"make -j8\n".repeat(110_000)}EOF\nmake -j8`,
};

for (const [name, text] of Object.entries(ADVERSARIAL)) {
  test(`adversarial: ${name}`, (t) => {
    const classified = classify(text);
    const result = lighten(text, classified, { cpus: 4, capMb: 650 });
    if (text.length > 131_072) {
      t.false(classified.heavy);
      t.regex(classified.problem ?? "", /not read/);
    }
    if (classified.problem !== undefined) t.is(result.text, text);
    t.pass();
  });
}
