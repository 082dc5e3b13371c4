/**
 * `npm run bench:shell`: what it costs to tell heavy from light and to lighten, after warm-up, for the
 * commands of the corpora; the plugin's first filter in Python; and texts made to be slow.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { allCommands } from "../__test__/support/corpus.js";
import { classify } from "../src/classify/classify.js";
import { lighten } from "../src/lighten/lighten.js";
import { QUANTILES_HEADER, quantiles } from "./quantiles.js";

const OPTIONS = { cpus: 4, capMb: 650 };
const WARM_UP = 20;
const ROUNDS = 60;

const work = (text: string): void => {
  lighten(text, classify(text), OPTIONS);
};

const timed = (run: () => void): number => {
  const began = performance.now();
  run();
  return performance.now() - began;
};

const commands = allCommands();
const heavy = commands.filter((text) => classify(text).heavy);
const light = commands.filter((text) => !classify(text).heavy);
for (let round = 0; round < WARM_UP; round += 1) commands.forEach(work);

const measure = (texts: readonly string[]): number[] =>
  Array.from({ length: ROUNDS }, () => texts.map((text) => timed(() => work(text)))).flat();

process.stdout.write(`${commands.length} commands, ${ROUNDS} rounds\n${QUANTILES_HEADER}\n`);
process.stdout.write(`${quantiles("classify + lighten, heavy", measure(heavy))}\n`);
process.stdout.write(`${quantiles("classify + lighten, light", measure(light))}\n`);

const slow: Record<string, string> = {
  "128 KB of words": `npm ci ${"a ".repeat(65_000)}`,
  "128 KB of commands": "make -j8; ".repeat(13_000),
  "1 MB": `npm ci ${"a ".repeat(500_000)}`,
  "20,000 parentheses": `${"(".repeat(20_000)}make -j8${")".repeat(20_000)}`,
  "20,000 substitutions": `${"$(".repeat(20_000)}make -j8${")".repeat(20_000)}`,
  "20,000 backticks": `make ${"`".repeat(20_000)}`,
  "loops in loops": `${"for a in 1 2 3 4 5 6 7 8; do ".repeat(8)}make -j8${"; done".repeat(8)}`,
  "128 KB here-document": `cat <<EOF\n${"make -j8\n".repeat(14_000)}EOF\nmake -j8`,
  "65,000 quotes": `make ${"'\"".repeat(32_500)}`,
};
for (const [name, text] of Object.entries(slow)) {
  process.stdout.write(
    `${quantiles(
      name,
      Array.from({ length: 5 }, () => timed(() => work(text))),
    )}\n`,
  );
}

const PLUGIN = fileURLToPath(new URL("../hermes-plugin/", import.meta.url));
const PROGRAM = `import json, sys, time; sys.dont_write_bytecode = True; sys.path.insert(0, ${JSON.stringify(PLUGIN)})
from first_filter import may_be_heavy
texts = json.load(sys.stdin); durations = []
for text in texts * 20: may_be_heavy(text)
for text in texts * 60:
    began = time.perf_counter_ns(); may_be_heavy(text); durations.append((time.perf_counter_ns() - began) / 1e6)
print(json.dumps(durations))`;
const inPython = JSON.parse(
  execFileSync("python3", ["-c", PROGRAM], {
    input: JSON.stringify(commands),
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  }),
) as number[];
process.stdout.write(`${quantiles("first filter, Python", inPython)}\n`);
