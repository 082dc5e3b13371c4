/**
 * `npm run bench:escape`: launches of `run`'s spawn path whose first act is to fork, in three ways: a
 * child, an orphan, a new session. Every process tells where it is; one that is not in its job's box is
 * an escape. Words: how many launches (default 10000), and a mode (default: the best here).
 */
import { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { poolLimits } from "../src/admission/pool.js";
import { measureMemory } from "../src/memory.js";
import { startJob } from "../src/job/start.js";
import { candidates, probeModes } from "../src/modes/choose.js";
import { isMode } from "../src/modes/mode.js";
import { loadNative } from "../src/native.js";

const LOOK = 'read -r first < /proc/self/stat; while read -r line; do echo "$line"; done < /proc/self/cgroup';
const SCRIPT = `(${LOOK}) & ( (${LOOK}) & ) ; ${LOOK}; wait; exec 1>&-`;
const PROCESSES_PER_LAUNCH = 3;
const AT_ONCE = 4;

const native = loadNative();
if (!native) throw new Error("the native addon is needed: npm start");
const [countWord = "10000", modeWord] = process.argv.slice(2);
const wanted = modeWord !== undefined && isMode(modeWord) ? modeWord : undefined;
const [mode] = candidates(probeModes(native), wanted);
if (!mode || mode.base === null) throw new Error("no kernel mode works here: escapes cannot be told");
const launches = Number(countWord);

let inside = 0;
let outside = 0;
let failed = 0;

const isMemoryLine = (line: string): boolean =>
  /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:/.test(line) || (mode.mode !== "cgroup1" && line.startsWith("0::"));

const launch = async (): Promise<void> => {
  const job = startJob(native, [mode], {
    argv: ["sh", "-c", SCRIPT].map((word) => Buffer.from(word)),
    text: "bench:escape",
    kind: "custom",
    memoryMb: 64,
    swapMb: 0,
    pool: poolLimits(measureMemory(native)),
    stdio: ["null", "pipe", "null"],
    runtimeDir: null,
    collectsOrphans: false,
  });
  if (!job.started) {
    failed += 1;
    return;
  }
  const [output] = await Promise.all([
    text(new Socket({ fd: job.pipeFds[1] ?? -1, readable: true, writable: false })),
    job.ended,
  ]);
  const lines = output.split("\n").filter(isMemoryLine);
  const held = lines.filter((line) => line.includes(`/headroom-job-${job.id}`)).length;
  inside += held;
  outside += lines.length - held;
  if (lines.length !== PROCESSES_PER_LAUNCH) failed += 1;
};

const began = performance.now();
let next = 0;
const worker = async (): Promise<void> => {
  while (next < launches) {
    next += 1;
    if (next % 1000 === 0) process.stdout.write(`  ${next} launches, ${outside} outside\n`);
    await launch();
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, worker));

const seconds = (performance.now() - began) / 1000;
process.stdout.write(
  `mode ${mode.mode}: ${launches} launches, ${inside} processes inside their box, ${outside} outside, ${failed} launches incomplete, ${seconds.toFixed(1)} s\n`,
);
process.exitCode = outside > 0 || failed > 0 ? 1 : 0;
