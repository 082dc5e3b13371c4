/**
 * `npm run bench:track [-- N]`: N launches of each kind of shell by another process, as an agent starts them, on a
 * machine that is kept busy. Prints how many of the processes that a shell has started were outside of its box in
 * the end, and how many of those were reported.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { trackJob } from "../src/job/track.js";
import { candidates, probeModes } from "../src/modes/choose.js";
import { loadNative } from "../src/native.js";

const LAUNCHES = Number(process.argv[2] ?? "500");
const LONGEST_MS = 2000;

const KINDS: Record<string, (file: string) => string> = {
  plain: (file) => `sh -c 'sleep 0.2; cat /proc/self/cgroup > ${file}'`,
  background: (file) => `(sleep 0.2; cat /proc/self/cgroup > ${file}) & wait`,
  orphan: (file) => `( (sleep 0.2; cat /proc/self/cgroup > ${file}) & )`,
  setsid: (file) => `setsid -f sh -c 'sleep 0.2; cat /proc/self/cgroup > ${file}'`,
};

const native = loadNative();
if (native === undefined) throw new Error("no addon");
const modes = candidates(probeModes(native), undefined);
const scratch = mkdtempSync(join(tmpdir(), "headroom-track-"));
const snapshot = join(scratch, "snapshot");
writeFileSync(snapshot, Array.from({ length: 80 }, (_, index) => `export SNAPSHOT_${index}=value`).join("\n"));
const runtimeDir = join(scratch, "runtime");
mkdirSync(runtimeDir, { mode: 0o700 });

const busy = Array.from({ length: availableParallelism() }, () =>
  spawn("sh", ["-c", "while :; do head -c 3m /dev/urandom | sha256sum > /dev/null; done"], {
    stdio: "ignore",
    detached: true,
  }),
);

/** As Hermes does: a shell in a session of its own, that reads its variables, changes directory, evaluates. */
const launch = async (command: string): Promise<void> => {
  const quoted = command.replaceAll("'", `'\\''`);
  const text = `source ${snapshot}\ncd ${scratch} || exit 126\neval '${quoted}'\ncode=$?\nexport -p > ${scratch}/out\nexit $code`;
  await once(spawn("bash", ["-c", text], { detached: true, stdio: "ignore" }), "exit");
};

try {
  for (const [kind, command] of Object.entries(KINDS)) {
    let outside = 0;
    let reported = 0;
    let unnoticed = 0;
    let unseen = 0;
    const began = performance.now();
    for (let index = 0; index < LAUNCHES; index += 1) {
      const file = join(scratch, `${kind}-${index}`);
      const text = command(file);
      let entered = false;
      const { job } = trackJob(native, modes, {
        agentPid: process.pid,
        texts: [text],
        text: "bench",
        kind: "custom",
        cwd: scratch,
        memoryMb: 128,
        swapMb: 0,
        pool: { memoryMb: 1024, swapMb: 0 },
        runtimeDir,
        onEvent: (event) => (entered ||= event.event === "entered"),
      });
      if (job === undefined) throw new Error("no box could be made");
      await launch(text);
      job.finish();
      const ended = await job.ended;
      const until = performance.now() + LONGEST_MS;
      while (!existsSync(file) || readFileSync(file, "utf8") === "") {
        if (performance.now() > until) throw new Error(`${kind}: the process has left no word`);
        await sleep(10);
      }
      const isOutside = !readFileSync(file, "utf8").includes("headroom-job-");
      if (isOutside) outside += 1;
      if ((ended?.escaped ?? 0) > 0) reported += 1;
      if (isOutside && !ended?.escaped) unnoticed += 1;
      if (!entered) unseen += 1;
      rmSync(file, { force: true });
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    process.stdout.write(
      `${kind.padEnd(11)} ${LAUNCHES} launches, ${outside} outside in the end, ${unnoticed} of them not reported; ${reported} reported, ${unseen} shells not seen; ${seconds} s\n`,
    );
  }
} finally {
  for (const { pid } of busy) if (pid !== undefined) process.kill(-pid, "SIGKILL");
  native.listJobs(runtimeDir, true);
  await sleep(500);
  native.listJobs(runtimeDir, true);
  rmSync(scratch, { recursive: true, force: true });
}
