/**
 * `npm test`: sets the checkout up, then runs every check, goes on after a failure, and ends with one
 * line `N passed, N failed, N skipped`. Words after `--` choose checks by name. With `--retry` a check that
 * fails is run once more, and one that then passes is told as unsteady instead of failing the whole.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Tools count as one test each; test runners say themselves how many they ran. */
const oneTest = (output, code) => {
  const isSkipped = output.startsWith("skipped: ");
  return { passed: code === 0 && !isSkipped ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: isSkipped ? 1 : 0 };
};

const sum = (text, pattern) => [...text.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0);

const countCargo = (output, code) => {
  const passed = sum(output, /test result: .*? (\d+) passed/g);
  const failed = sum(output, /test result: .*? (\d+) failed/g);
  // A test that does not compile has no result line.
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, skipped: sum(output, /^skipped: .*?()$/gm) };
};

const countAva = (output, code) => {
  // With a failure the closing lines leave out how many passed.
  const passed = [...output.matchAll(/^\s*✔ /gm)].length;
  const failed = sum(output, /^\s*(\d+) (?:tests? failed|uncaught exceptions?|unhandled rejections?)/gm);
  return {
    passed,
    failed: code !== 0 && failed === 0 ? 1 : failed,
    skipped: sum(output, /^\s*(\d+) tests? skipped/gm),
  };
};

const countUnittest = (output, code) => {
  const ran = sum(output, /^Ran (\d+) tests?/gm);
  const failed = sum(output, /(?:failures|errors)=(\d+)/g);
  const skipped = sum(output, /skipped=(\d+)/g) + (output.startsWith("skipped: ") ? 1 : 0);
  return { passed: Math.max(0, ran - failed - skipped), failed: code !== 0 && failed === 0 ? 1 : failed, skipped };
};

const CHECKS = [
  ["rustfmt", ["cargo", "fmt", "--all", "--check"], oneTest],
  ["clippy", ["cargo", "clippy", "--locked", "--workspace", "--", "-D", "warnings"], oneTest],
  // Not of the binding: without Node nothing in it is used.
  [
    "clippy-tests",
    ["cargo", "clippy", "--locked", "-p", "headroom-core", "--all-targets", "--", "-D", "warnings"],
    oneTest,
  ],
  ["rustdoc", ["cargo", "doc", "--locked", "--workspace", "--no-deps", "--document-private-items", "--quiet"], oneTest],
  ["cargo-test", ["cargo", "test", "--locked", "--workspace"], countCargo],
  ["types", ["npx", "tsc", "-p", "tsconfig.json"], oneTest],
  ["oxlint", ["npx", "oxlint", "--deny-warnings"], oneTest],
  ["oxfmt", ["npx", "oxfmt", "--check"], oneTest],
  ["bindings", ["git", "diff", "--exit-code", "--", "native/index.d.ts"], oneTest],
  ["plugin-lint", ["node", "scripts/python-tools.mjs", "lint"], oneTest],
  ["plugin-format", ["node", "scripts/python-tools.mjs", "format"], oneTest],
  ["plugin-types", ["node", "scripts/python-tools.mjs", "types"], oneTest],
  ["plugin", ["node", "scripts/python-tools.mjs", "test"], countUnittest],
  ["ava", ["npx", "ava"], countAva],
];

const run = async ([program, ...words]) =>
  new Promise((resolve) => {
    const env = { ...process.env, RUSTDOCFLAGS: "-D warnings" };
    const child = spawn(program, words, { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
        process.stdout.write(chunk);
      });
    }
    child.once("error", (error) => resolve({ output: String(error), code: 127 }));
    child.once("close", (code) => resolve({ output, code: code ?? 1 }));
  });

await import("./setup.mjs");
const retries = process.argv.includes("--retry");
const chosen = process.argv.slice(2).filter((word) => word !== "--retry");
const unknown = chosen.filter((name) => !CHECKS.some(([known]) => known === name));
if (unknown.length > 0) {
  process.stderr.write(`unknown checks: ${unknown.join(", ")}; there are ${CHECKS.map(([name]) => name).join(", ")}\n`);
  process.exit(2);
}
const total = { passed: 0, failed: 0, skipped: 0 };
const broken = [];
const unsteady = [];
for (const [name, command, count] of CHECKS.filter(([known]) => chosen.length === 0 || chosen.includes(known))) {
  process.stdout.write(`\n== ${name}: ${command.join(" ")}\n`);
  const began = performance.now();
  const attempt = async () => {
    const { output, code } = await run(command);
    const counted = count(output, code);
    return { output, code, counted, isBroken: code !== 0 || counted.failed > 0 };
  };
  let result = await attempt();
  if (result.isBroken && retries) {
    unsteady.push({ name, output: result.output });
    process.stdout.write(`\n== ${name}: failed, once more\n`);
    result = await attempt();
  }
  const { output, code, counted, isBroken } = result;
  for (const key of Object.keys(total)) total[key] += counted[key];
  if (isBroken) broken.push({ name, output });
  process.stdout.write(
    `== ${name}: ${code === 0 ? "ok" : `failed (exit code ${code})`}, ${((performance.now() - began) / 1000).toFixed(1)} s\n`,
  );
}

/** What a failing check said last, where people look first: at the end. */
const LAST_LINES = 120;
const repeat = (title, { name, output }) => {
  const lines = output.trimEnd().split("\n");
  const telling = lines.filter((line) => /✘|FAILED|panicked at|^error/.test(line)).slice(0, 40);
  process.stdout.write(
    `\n-- ${title}: ${name}\n${[...telling, "…", ...lines.slice(-LAST_LINES)].join("\n")}\n-- end of ${name}\n`,
  );
};
for (const each of unsteady.filter(({ name }) => !broken.some((other) => other.name === name))) {
  repeat("unsteady (failed, then passed)", each);
}
for (const each of broken) repeat("failed", each);
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`);
process.exitCode = broken.length > 0 || total.passed === 0 ? 1 : 0;
