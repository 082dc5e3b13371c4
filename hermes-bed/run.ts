/**
 * `npm run test:hermes [-- WORD…]`: installs both releases of Hermes where they are missing, then runs the tests with
 * them. Words choose test files. Ends with one line `N passed, N failed, N skipped`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RELEASES } from "./releases.js";
import { ensureVenv } from "./venv.js";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const TESTS = "__test__/hermes-real";

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const counted = (output: string, pattern: RegExp): number =>
  [...output.matchAll(pattern)].reduce((total, [, number]) => total + Number(number), 0);

for (const release of RELEASES) say(`Hermes ${release.name}: ${await ensureVenv(release, say)}`);

const retries = process.argv.includes("--retry");
const chosen = process.argv.slice(2).filter((word) => word !== "--retry");
const files = readdirSync(`${ROOT}${TESTS}`)
  .filter((name) => name.endsWith(".spec.ts") && (chosen.length === 0 || chosen.some((word) => name.includes(word))))
  .map((name) => `${TESTS}/${name}`);
if (files.length === 0) {
  say(`no test file has ${chosen.join(" or ")} in its name`);
  process.exit(2);
}

const total = { passed: 0, failed: 0, skipped: 0 };
for (const file of files) {
  let result = await runFile(file);
  if (result.failed > 0 && retries) {
    say(`\n-- unsteady or failed: ${file}, once more\n-- end of ${file}`);
    result = await runFile(file);
  }
  for (const key of ["passed", "failed", "skipped"] as const) total[key] += result[key];
}
say(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

async function runFile(file: string): Promise<typeof total> {
  say(`\n== ${file}`);
  const env = { ...process.env, HEADROOM_REAL_HERMES: "1" };
  const child = spawn("npx", ["ava", file], { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += String(chunk);
      process.stdout.write(String(chunk));
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  const failed = counted(output, /^\s*(\d+) (?:tests? failed|uncaught exceptions?|unhandled rejections?)/gm);
  return {
    passed: [...output.matchAll(/^\s*✔ /gm)].length,
    failed: code !== 0 && failed === 0 ? 1 : failed,
    skipped: counted(output, /^\s*(\d+) tests? skipped/gm),
  };
}
