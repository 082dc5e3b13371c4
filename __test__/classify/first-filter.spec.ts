import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import test from "ava";
import { HEAVY_WORDS, mayBeHeavy } from "../../src/classify/first-filter.js";
import { heavyWordsModule } from "../../scripts/generate-words.js";
import { allCommands, classifyCases, CLASSIFY_FILES } from "../support/corpus.js";

const PLUGIN = fileURLToPath(new URL("../../hermes-plugin/", import.meta.url));
const SUPPORT = fileURLToPath(new URL("../plugin/", import.meta.url));

/** The plugin's own verdicts. */
const inPython = (commands: readonly string[]): boolean[] => {
  const program = `import json, sys; sys.path.insert(0, ${JSON.stringify(SUPPORT)})
from support import part
may_be_heavy = part("first_filter").may_be_heavy
print(json.dumps([may_be_heavy(text) for text in json.load(sys.stdin)]))`;
  const output = execFileSync("python3", ["-c", program], {
    input: JSON.stringify(commands),
    encoding: "utf8",
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  });
  return JSON.parse(output) as boolean[];
};

test("no heavy line of a corpus passes for light", (t) => {
  for (const name of CLASSIFY_FILES) {
    for (const { command, heavy } of classifyCases(name)) if (heavy) t.true(mayBeHeavy(command), command);
  }
});

test("Python and TypeScript agree on every command", (t) => {
  const commands = allCommands();
  t.deepEqual(inPython(commands), commands.map(mayBeHeavy));
});

test("the plugin's copy of the words is up to date (npm run generate)", (t) => {
  t.is(readFileSync(`${PLUGIN}heavy_words.py`, "utf8"), heavyWordsModule());
});

test("everyday commands are light without being read", (t) => {
  const everyday = [
    "ls -la",
    "git status && git diff --stat",
    "cat src/index.ts",
    "grep -rn 'foo' .",
    "python3 x.py",
    "node server.js",
    "curl -s localhost:80",
    "cd /srv/app && ls build",
    "echo done",
    "sed -i s/a/b/ f",
    "mkdir -p a/b",
    "ps aux | head",
    "rm -rf dist",
    "systemctl restart x",
  ];
  for (const command of everyday) t.false(mayBeHeavy(command), command);
});

test("words are lower case and none is empty", (t) => {
  for (const word of HEAVY_WORDS) t.regex(word, /^\S+$/);
  t.true(HEAVY_WORDS.every((word) => word === word.toLowerCase()));
});
