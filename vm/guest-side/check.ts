/**
 * The checks of one situation, run inside a guest, in that situation. Prints one line a check:
 * `CHECK ok|FAIL NAME: DETAIL`. Words: the mode that must be chosen, and how many launches to try.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startJob } from "../../dist/job/start.js";
import { candidates, probeModes } from "../../dist/modes/choose.js";
import { loadNative } from "../../dist/native.js";
import type { HeadroomReport } from "../../dist/outcome/report.js";
import type { SelftestResult } from "../../dist/selftest/selftest.js";
import { check, CLI } from "./support.js";
import { countEscapes } from "./escapes.js";

const HOG = "head -c 400m /dev/zero | tail > /dev/null";
const CAP_MB = 100;

const [expectedMode = "", launchesWord = "0"] = process.argv.slice(2);
const isKernelMode = expectedMode !== "userspace";
const scratch = mkdtempSync(join(tmpdir(), "check-"));

const cli = (words: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...words], { encoding: "utf8" });
  return { code: status, stdout, stderr };
};

const runJob = (script: string, ...options: string[]) => {
  const file = join(scratch, "report.json");
  const result = cli([
    "run",
    "--no-queue",
    "--memory",
    String(CAP_MB),
    "--report",
    file,
    ...options,
    "--",
    "sh",
    "-c",
    script,
  ]);
  let report: Partial<HeadroomReport> = {};
  try {
    report = JSON.parse(readFileSync(file, "utf8")) as HeadroomReport;
  } catch {
    // The checks on its fields fail and show what was printed.
  }
  return { ...result, report };
};

const ownCgroup = (): string => readFileSync("/proc/self/cgroup", "utf8");

const checkSelftest = (): void => {
  const { code, stdout, stderr } = cli(["selftest", "--json"]);
  const result = JSON.parse(stdout || "{}") as Partial<SelftestResult>;
  check(
    "selftest verdict",
    code === 0 && result.result === (isKernelMode ? "pass" : "degraded"),
    result.result ?? stderr,
  );
  check("selftest mode", result.mode === expectedMode, result.mode ?? stderr);
  const reasons = result.checks?.filter(({ name }) => name.startsWith("mode ")) ?? [];
  check(
    "better modes have a reason",
    reasons.every(({ detail }) => detail !== ""),
    reasons.map(({ name }) => name),
  );
};

const checkKill = (): void => {
  const before = ownCgroup();
  const { code, stdout, stderr, report } = runJob(`${HOG}; echo "saw $?"; exit 7`);
  check("the shell lives and sees 137", stdout === "saw 137\n" && code === 7, { code, stdout, stderr });
  check("the report tells the kill", report.oom_killed === true && report.mode === expectedMode, report);
  check("isolated is true to the kernel's limit", report.isolated === isKernelMode, report.isolated);
  const peak = report.peak_mb ?? 0;
  // Where headroom itself is the limit, a job can overshoot between two looks; emulation is slow.
  check(
    "the peak is near the cap",
    peak >= 60 && (!isKernelMode || peak <= CAP_MB),
    `${peak} MB, ${report.peak_source}`,
  );
  check("the note has a next step", /Next: /.test(report.note ?? ""), report.note ?? "none");
  check("the starter was not touched", ownCgroup() === before, "same cgroup");
};

const checkNeighbour = async (): Promise<void> => {
  const words = [
    "run",
    "--no-queue",
    "--memory",
    String(CAP_MB),
    "--",
    "sh",
    "-c",
    "echo up; read go; echo fine; exit 3",
  ];
  const neighbour = spawn(process.execPath, [CLI, ...words], { stdio: ["pipe", "pipe", "inherit"] });
  await once(neighbour.stdout, "data");
  const { report } = runJob(`${HOG}; true`);
  neighbour.stdin.end("go\n");
  const [code] = (await once(neighbour, "exit")) as [number];
  check("a second job is untouched by the kill of the first", code === 3 && report.oom_killed === true, {
    code,
    report,
  });
};

const checkNested = (): void => {
  const look = "grep ^0: /proc/self/cgroup";
  const { code, stdout, stderr } = runJob(`${look}; ${process.execPath} ${CLI} run --memory 80 -- ${look}`);
  const [outer = "", inner = ""] = stdout.split("\n");
  const isInside = outer !== "" && inner.startsWith(outer.replace(/\/job$/, ""));
  check("a run inside a job stays inside it", code === 0 && isInside, stdout + stderr);
};

const checkScore = (): void => {
  const own = Number(readFileSync("/proc/self/oom_score_adj", "utf8"));
  const job = Number(runJob("cat /proc/self/oom_score_adj").stdout);
  check("the job is preferred by a machine-wide kill", job > own, `own ${own}, job ${job}`);
};

/** Process numbers of this namespace mean other processes to a manager outside of it. See `proc_ns.h`. */
const FIRST_PID_NAMESPACE = "pid:[4026531836]";

const checkOtherPids = (): void => {
  const { checks = [] } = JSON.parse(cli(["selftest", "--json"]).stdout || "{}") as Partial<SelftestResult>;
  const mode = process.getuid?.() === 0 ? "mode systemd-system" : "mode systemd-user";
  const reasons = checks.filter(({ name }) => name === mode);
  const [reason] = reasons;
  const isTold = reasons.length === 1 && reason?.detail.includes("pid namespace") === true && reason.fix === undefined;
  check("a bus of another pid namespace is not used, and that is said", isTold, reasons);
  const { code, stdout, stderr, report } = runJob("echo ran; exit 5");
  const isWell = code === 5 && stdout === "ran\n" && report.mode === expectedMode && stderr === "";
  check("nothing is lost by it", isWell, { code, stdout, stderr, mode: report.mode });
};

const UNIT_CALLS = /Member=(StartTransientUnit|AttachProcessesToUnit|SetUnitProperties|StopUnit|Get)\b/g;

/** Counts what two jobs, the second beside the first, ask of the user's manager. */
const checkCalls = async (): Promise<void> => {
  const rule = "type='method_call',destination='org.freedesktop.systemd1'";
  const address = `--address=unix:path=/run/user/${process.getuid?.()}/bus`;
  const monitor = spawn("busctl", [address, "monitor", `--match=${rule}`], { stdio: ["ignore", "pipe", "ignore"] });
  let heard = "";
  monitor.stdout.on("data", (chunk) => (heard += String(chunk)));
  await sleep(2000);
  const words = ["run", "--no-queue", "--memory", String(CAP_MB), "--", "sh", "-c", "echo up; read go"];
  const first = spawn(process.execPath, [CLI, ...words], { stdio: ["pipe", "pipe", "inherit"] });
  await once(first.stdout, "data");
  runJob("true");
  first.stdin.end("go\n");
  await once(first, "exit");
  await sleep(1000);
  monitor.kill();
  const calls = heard.match(UNIT_CALLS) ?? [];
  // From below the user's manager plain files lead to the pool once it is there.
  const allowed = ownCgroup().includes("/user@") ? 1 : 2;
  check("at most one call a job, none where files suffice", calls.length === allowed, calls);
};

/** A manager that refuses a property: no unit can have `MemoryMax=0`. */
const checkRefusal = async (): Promise<void> => {
  const native = loadNative();
  if (!native) throw new Error("no addon");
  const { path } = native.runtimeDirectory();
  const job = startJob(native, candidates(probeModes(native), undefined), {
    argv: ["sh", "-c", "exit 6"].map((word) => Buffer.from(word)),
    text: "refusal",
    kind: "custom",
    memoryMb: CAP_MB,
    swapMb: 0,
    pool: { memoryMb: 0, swapMb: 0 },
    stdio: ["null", "null", "null"],
    runtimeDir: path ?? null,
    collectsOrphans: false,
  });
  const ending = job.started ? (await job.ended)?.ending : undefined;
  const isWell = job.started && job.mode !== expectedMode && ending && "exit_code" in ending && ending.exit_code === 6;
  const detail = { mode: job.started ? job.mode : job.message, warnings: job.warnings };
  check("a manager that refuses costs a mode and one warning", isWell === true && job.warnings.length === 1, detail);
};

const checkEscapes = async (launches: number): Promise<void> => {
  const { inside, outside, incomplete } = await countEscapes(launches);
  const detail = `${launches} launches, ${inside} processes inside, ${outside} outside, ${incomplete} incomplete`;
  check("nothing escapes", outside === 0 && incomplete === 0, detail);
};

checkSelftest();
checkKill();
await checkNeighbour();
checkScore();
if (isKernelMode) checkNested();
if (readlinkSync("/proc/self/ns/pid") !== FIRST_PID_NAMESPACE) checkOtherPids();
if (expectedMode === "systemd-user") {
  await checkCalls();
  await checkRefusal();
}
if (isKernelMode && Number(launchesWord) > 0) await checkEscapes(Number(launchesWord));
