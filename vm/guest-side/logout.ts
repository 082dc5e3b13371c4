/**
 * A login that ends while its jobs run, inside a guest; the user lingers. `leave DIR`, in a login session, starts
 * two jobs and returns, which ends the session. `look DIR`, elsewhere, checks what has become of them. One keeps its
 * `run`, the other's is killed, as happens where a logout ends every process of the session.
 */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StatusSnapshot } from "../../dist/status/snapshot.js";
import type { HeadroomReport } from "../../dist/outcome/report.js";
import { becomesTrue, cgroupOf, check, CLI, readOr } from "./support.js";

const CAP_MB = 100;
const SECONDS = 30;
const NAMES = ["kept", "bereft"] as const;

const [word = "", dir = ""] = process.argv.slice(2);
const file = (name: string, ending: string): string => join(dir, `${name}.${ending}`);
const number = (name: string): string => readOr(file(name, "pid")).trim();

/** The job tells its number, waits, wants too much, and tells what its shell saw of that. */
const jobScript = (name: string): string =>
  [
    `echo $$ > ${file(name, "pid")}`,
    `read go < ${file(name, "go")}`,
    "head -c 400m /dev/zero | tail > /dev/null",
    `echo $? > ${file(name, "saw")}`,
    "exit 4",
  ].join("; ");

const leave = async (): Promise<void> => {
  writeFileSync(join(dir, "session"), process.env.XDG_SESSION_ID ?? "");
  for (const name of NAMES) {
    spawnSync("mkfifo", [file(name, "go")]);
    const words = ["run", "--no-queue", "--memory", String(CAP_MB), "--report", file(name, "json")];
    const run = [process.execPath, CLI, ...words, "--", "sh", "-c", jobScript(name)];
    const shell = ["-c", `"$@"; echo $? > ${file(name, "code")}`, "sh", ...run];
    spawn("sh", shell, { stdio: "ignore", detached: true }).unref();
  }
  const isUp = await becomesTrue(SECONDS, () => NAMES.every((name) => number(name) !== ""));
  check("two jobs run in a login session", isUp && process.env.XDG_SESSION_ID !== undefined, {
    session: process.env.XDG_SESSION_ID,
    jobs: NAMES.map((name) => cgroupOf(number(name))),
  });
};

const sessionState = (): string => {
  const words = ["show-session", readOr(join(dir, "session")), "--property=State", "--value"];
  return spawnSync("loginctl", words, { encoding: "utf8" }).stdout.trim();
};

/** Where a job is, and the limit that holds there. */
const held = (name: string) => {
  const cgroup = cgroupOf(number(name));
  const limit = readOr(`/sys/fs/cgroup${cgroup.replace(/\/job$/, "")}/memory.max`).trim();
  const isHeld = /\/user@1000\.service\/.*\/headroom-pool-.*\/headroom-job-/.test(cgroup);
  return { isHeld: isHeld && Number(limit) === CAP_MB * 1048576, cgroup, limit };
};

const jobsOnRecord = () => {
  const { stdout } = spawnSync(process.execPath, [CLI, "status", "--json"], { encoding: "utf8" });
  return (JSON.parse(stdout) as StatusSnapshot).jobs.map(({ pid, state, cap_mb }) => ({ pid, state, cap_mb }));
};

const parentOf = (pid: string): number => Number(/^PPid:\s+(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1]);

const look = async (): Promise<void> => {
  const hasEnded = await becomesTrue(SECONDS, () => !["active", "online", "opening"].includes(sessionState()));
  check("the session has ended", hasEnded && readOr(join(dir, "session")) !== "", sessionState() || "gone");
  check(
    "jobs outlive the logout, in their boxes, with their caps",
    NAMES.every((name) => held(name).isHeld),
    NAMES.map(held),
  );

  const run = parentOf(number("bereft"));
  process.kill(run, "SIGKILL");
  await becomesTrue(SECONDS, () => cgroupOf(run) === "");
  const states = jobsOnRecord();
  const orphan = states.find(({ pid }) => String(pid) === number("bereft"));
  check(
    "a job whose run is killed stays in its box, on record",
    held("bereft").isHeld && orphan?.state === "orphaned",
    {
      ...held("bereft"),
      states,
    },
  );

  for (const name of NAMES) writeFileSync(file(name, "go"), "go\n");
  const haveSeen = await becomesTrue(2 * SECONDS, () => NAMES.every((name) => readOr(file(name, "saw")) !== ""));
  const saw = NAMES.map((name) => readOr(file(name, "saw")).trim());
  check("their caps hold after the logout", haveSeen && saw.every((code) => code === "137"), saw);
  await becomesTrue(SECONDS, () => readOr(file("kept", "code")) !== "");
  const report = JSON.parse(readOr(file("kept", "json"), "{}")) as Partial<HeadroomReport>;
  const code = readOr(file("kept", "code")).trim();
  check("the run in the ended session tells how it went", code === "4" && report.oom_killed === true, { code, report });
  const left = jobsOnRecord();
  check("nothing is left on record", left.length === 0, left);
  const isGone = await becomesTrue(SECONDS, () => sessionState() === "");
  check("the session goes with its last process", isGone, sessionState() || "gone");
};

await (word === "leave" ? leave() : look());
