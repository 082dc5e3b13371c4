import test from "ava";
import type { Explanation } from "../../src/explain/explain.js";
import { runCli } from "../support/run-cli.js";

const explainJson = async (...words: string[]): Promise<Explanation> =>
  JSON.parse((await runCli(["explain", "--json", ...words])).stdout) as Explanation;

test("--json has every field of the contract", async (t) => {
  const found = await explainJson("--cpus", "4", "--cap", "650", "--", "cd x && npx jest");
  t.deepEqual(Object.keys(found), [
    "command",
    "heavy",
    "kind",
    "matches",
    "cap_mb",
    "swap_cap_mb",
    "heap_mb",
    "workers",
    "lightened",
    "changes",
    "capped",
    "learned_peak_mb",
    "mode",
  ]);
  t.deepEqual(found.matches, [{ text: "jest", start: 12, end: 16, kind: "test", why: "jest: test work" }]);
  t.is(found.cap_mb, 650);
  t.is(found.heap_mb, 455);
  t.is(found.workers, 1);
  t.true(found.capped);
  t.is(
    found.lightened,
    'cd x && NODE_OPTIONS="${NODE_OPTIONS:+$NODE_OPTIONS }--max-old-space-size=455" npx jest --runInBand',
  );
  t.is(found.changes.length, 2);
});

test("several words are one command", async (t) => {
  t.is((await explainJson("--", "git", "commit", "-m", "npm ci; it's")).command, "git commit -m 'npm ci; it'\\''s'");
});

test("what is done elsewhere takes a turn but has no cap", async (t) => {
  const found = await explainJson("--", "docker build .");
  t.true(found.heavy);
  t.false(found.capped);
});

test("text for people is plain when piped", async (t) => {
  const { stdout, code } = await runCli(["explain", "--cpus", "4", "--cap", "650", "--", "make -j8"]);
  t.is(code, 0);
  t.regex(stdout, /^verdict {3}heavy \(compile\)$/m);
  t.regex(stdout, /^rewrite {3}make -j1$/m);
  t.false(stdout.includes("\u001B"));
});

test("--batch answers each line in its order, bad ones too", async (t) => {
  const lines = [
    '{"command":"make -j8","cpus":4,"cap_mb":650}',
    "",
    "nonsense",
    '{"command":1}',
    '{"command":"x","cpus":0}',
    '{"command":"x","extra_heavy_patterns":["("]}',
    '{"command":"npm test","env":{"NODE_OPTIONS":"--max-old-space-size=100"},"cpus":4,"cap_mb":650}',
    '{"command":"ls"}',
  ];
  const { stdout, code } = await runCli(["explain", "--batch"], { input: `${lines.join("\r\n")}\n` });
  const results = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Explanation & { error?: { code: string } });
  t.deepEqual(
    results.map(({ error, heavy }) => error?.code ?? heavy),
    [true, false, "E_USAGE", "E_USAGE", "E_USAGE", "E_USAGE", true, false],
  );
  t.is(results[0]?.lightened, "make -j1");
  t.is(results[1]?.command, "");
  t.is(results[6]?.lightened, "npm test");
  t.is(code, 1);
});

test("rows fit into the terminal, and a broken command can be copied", async (t) => {
  const text =
    "cd web && npx jest --ci --coverage --verbose && echo 'quoted text is never broken, however long it may be' | tail -5";
  const { stdout } = await runCli(["explain", "--cpus", "4", "--cap", "650", "--", text], { env: { COLUMNS: "80" } });
  for (const line of stdout.split("\n")) t.true(line.length <= 80, line);
  const shown = /^command {3}([\s\S]*?)^because/m.exec(stdout)?.[1] ?? "";
  t.is(shown.trimEnd().replaceAll(/\\\n {10}/g, ""), text);
  const narrow = await runCli(["explain", "--", "docker build ."], { env: { COLUMNS: "40" } });
  for (const line of narrow.stdout.split("\n")) t.true(line.length <= 40, line);
});

test("a directory that is not there is told", async (t) => {
  for (const words of [["--", "ls"], ["--batch"]]) {
    const { code, stderr, stdout } = await runCli(["explain", "--cwd", "/no/such/directory", ...words]);
    t.is(code, 2);
    t.regex(stderr, /--cwd: there is no directory \/no\/such\/directory \[E_USAGE\]/);
    t.is(stdout, "");
  }
});

test("wrong usage ends with 2 and says what is wanted", async (t) => {
  for (const words of [
    ["explain"],
    ["explain", "--cpus", "0", "--", "x"],
    ["explain", "--cap", "a", "--", "x"],
    ["explain", "--batch", "--", "x"],
  ]) {
    const { code, stderr } = await runCli(words);
    t.is(code, 2, words.join(" "));
    t.not(stderr, "");
  }
});
