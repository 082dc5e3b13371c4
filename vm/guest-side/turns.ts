/**
 * Four `run`s at once that stand in the line, inside a guest: they take turns in the order of their arrival, never two
 * at once, and one that is killed while it holds the slot lets the next one go. Its job goes on in its box.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StatusSnapshot } from "../../dist/status/snapshot.js";
import { becomesTrue, cgroupOf, check, CLI, readOr } from "./support.js";

const RUNS = 4;
/** The one that is killed. */
const VICTIM = 1;
const PATIENCE_SECONDS = 60;

const scratch = mkdtempSync(join(tmpdir(), "turns-"));
const log = join(scratch, "log");
const env = { ...process.env, HERMES_HOME: join(scratch, "home") };

const lines = (): string[] =>
  readOr(log)
    .split("\n")
    .filter((line) => line !== "");
const has = (line: string): boolean => lines().includes(line);

const status = (): StatusSnapshot =>
  JSON.parse(
    spawnSync(process.execPath, [CLI, "status", "--json"], { encoding: "utf8", env }).stdout,
  ) as StatusSnapshot;

/** Its job is in when it says so, and out when it is let go: not by its standard input, which ends with its `run`. */
const startRun = (number: number): ChildProcess => {
  const script = `echo +${number} >> ${log}; until [ -e ${letGo(number)} ]; do sleep 0.1; done; echo -${number} >> ${log}; exit 3`;
  const words = ["run", "--set", "max_heavy_jobs=1", "--memory", "80", "--", "sh", "-c", script];
  return spawn(process.execPath, [CLI, ...words], { env, stdio: "ignore" });
};
const letGo = (number: number): string => join(scratch, `go-${number}`);

const runs: ChildProcess[] = [];
const ends: Promise<unknown[]>[] = [];
let isLineRight = true;
for (let number = 0; number < RUNS; number += 1) {
  const run = startRun(number);
  runs.push(run);
  ends.push(once(run, "exit"));
  // The next one comes when this one has its place.
  const isThere = (): boolean => (number === 0 ? has("+0") : status().waiting.length === number);
  isLineRight &&= await becomesTrue(PATIENCE_SECONDS, isThere);
}
const before = status();
const waiting = before.waiting.map(({ pid }) => pid);
const expected = runs.slice(1).map(({ pid }) => pid);
check("who waits is shown in the order of arrival", isLineRight && waiting.join() === expected.join(), {
  waiting,
  expected,
});
const jobPid = before.jobs[0]?.pid ?? 0;
const isInPool = before.jobs.length === 1 && cgroupOf(jobPid).includes("/headroom-pool-");
check("the one that runs is in the pool", isInPool, [before.jobs.length, cgroupOf(jobPid)]);

for (const [number, run] of runs.entries()) {
  const isIn = await becomesTrue(PATIENCE_SECONDS, () => has(`+${number}`));
  const others = lines().filter((line) => line.startsWith("+"));
  check(`run ${number} has its turn, and nobody behind it`, isIn && others.length === number + 1, lines());
  if (number === VICTIM) run.kill("SIGKILL");
  else writeFileSync(letGo(number), "");
}
const after = status();
const orphans = after.jobs.filter(({ state }) => state === "orphaned");
check("the job of the killed one goes on in its box", orphans.length === 1 && !has(`-${VICTIM}`), after.jobs);
writeFileSync(letGo(VICTIM), "");
check("and ends by itself", await becomesTrue(PATIENCE_SECONDS, () => has(`-${VICTIM}`)), lines());
const exits = await Promise.all(ends);
const codes = exits.map(([code, signal]) => code ?? signal);
check("each run ends as its job did", codes.join() === [3, "SIGKILL", 3, 3].join(), codes);
// Never two at once, the orphan left out: who comes in comes in after the one before has gone out.
const inTurn = lines().filter((line) => line !== `+${VICTIM}` && line !== `-${VICTIM}`);
check("never two at once", inTurn.join() === "+0,-0,+2,-2,+3,-3", lines());
const isOver = await becomesTrue(PATIENCE_SECONDS, () => {
  const { jobs, waiting: line, problem } = status();
  return jobs.length === 0 && line.length === 0 && problem === null;
});
check("nobody holds and nobody waits in the end", isOver, status().jobs);
