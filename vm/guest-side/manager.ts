/**
 * What may happen to systemd's side of a pool, inside a guest, in a user service: a reload while a job runs,
 * the pool stopped from outside, its cgroup gone. Prints `CHECK …` lines as check.ts does.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { check, CLI } from "./support.js";

const systemctl = (...words: string[]): string =>
  spawnSync("systemctl", ["--user", ...words], { encoding: "utf8" }).stdout.trim();

const job = (script: string) =>
  spawn(process.execPath, [CLI, "run", "--no-queue", "--memory", "100", "--json", "--", "sh", "-c", script], {
    stdio: ["pipe", "pipe", "pipe"],
  });

const finish = async (child: ReturnType<typeof job>) => {
  let stderr = "";
  child.stderr.on("data", (chunk) => (stderr += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stderr };
};

const poolUnit = (): string =>
  systemctl("list-units", "--plain", "--no-legend", "headroom-pool-*").split(/\s/)[0] ?? "";

const started = async (child: ReturnType<typeof job>): Promise<string> => {
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return String(line).trim();
};

const reload = job("echo $$; read go; head -c 400m /dev/zero | tail > /dev/null; exit 4");
const pid = await started(reload);
const before = readFileSync(`/proc/${pid}/cgroup`, "utf8");
systemctl("daemon-reload");
const after = readFileSync(`/proc/${pid}/cgroup`, "utf8");
reload.stdin.end("go\n");
const reloaded = await finish(reload);
check("a daemon-reload moves nothing", before === after && before.includes("headroom-job-"), after);
check(
  "a daemon-reload loosens nothing",
  reloaded.code === 4 && reloaded.stderr.includes('"oom_killed":true'),
  reloaded,
);

const stopped = job("echo $$; sleep 60");
await started(stopped);
const unit = poolUnit();
systemctl("stop", unit);
const end = await finish(stopped);
const isTold = end.code === 143 && /systemd stopped the unit/.test(end.stderr);
check("a pool stopped from outside ends its jobs, and that is told", unit !== "" && isTold, { unit, ...end });

const next = job("grep ^0: /proc/self/cgroup");
const place = await started(next);
await finish(next);
check("the next job gets a pool of its own", place.includes("headroom-pool-") && !place.includes(unit), place);
