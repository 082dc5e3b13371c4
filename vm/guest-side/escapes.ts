/** Launches whose first act is to fork, counted by where their processes find themselves. */
import { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { poolLimits } from "../../dist/admission/pool.js";
import { startJob } from "../../dist/job/start.js";
import { measureMemory } from "../../dist/memory.js";
import { candidates, probeModes } from "../../dist/modes/choose.js";
import { loadNative } from "../../dist/native.js";

const LOOK = 'while read -r line; do echo "$line"; done < /proc/self/cgroup';
/** A child, an orphan, and the shell itself. */
const SCRIPT = `(${LOOK}) & ( (${LOOK}) & ) ; ${LOOK}; wait`;
const PROCESSES = 3;
const AT_ONCE = 4;

export interface EscapeCount {
  inside: number;
  outside: number;
  /** Launches that did not tell of all their processes. */
  incomplete: number;
}

export const countEscapes = async (launches: number): Promise<EscapeCount> => {
  const native = loadNative();
  if (!native) throw new Error("no addon");
  const modes = candidates(probeModes(native), undefined).slice(0, 1);
  const pool = poolLimits(measureMemory(native));
  const { path } = native.runtimeDirectory();
  const count: EscapeCount = { inside: 0, outside: 0, incomplete: 0 };
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < launches) {
      next += 1;
      const job = startJob(native, modes, {
        argv: ["sh", "-c", SCRIPT].map((word) => Buffer.from(word)),
        text: "escapes",
        kind: "custom",
        memoryMb: 64,
        swapMb: 0,
        pool,
        stdio: ["null", "pipe", "null"],
        runtimeDir: path ?? null,
        collectsOrphans: false,
      });
      if (!job.started) {
        count.incomplete += 1;
        continue;
      }
      const output = text(new Socket({ fd: job.pipeFds[1] ?? -1, readable: true, writable: false }));
      const [told] = await Promise.all([output, job.ended]);
      const lines = told.split("\n").filter((line) => line.startsWith("0::"));
      const name = job.cgroup?.split("/").at(-1) ?? "no cgroup";
      const inside = lines.filter((line) => line.includes(name)).length;
      count.inside += inside;
      count.outside += lines.length - inside;
      if (lines.length !== PROCESSES) count.incomplete += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return count;
};
