/**
 * A user's manager that comes and goes beside an agent that stays, inside a guest: a system service with `User=`, in
 * which this program runs. Switching needs root: the user of the guests may `sudo`.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { poolLimits } from "../../dist/admission/pool.js";
import { startJob } from "../../dist/job/start.js";
import { measureMemory } from "../../dist/memory.js";
import { candidates, probeModes } from "../../dist/modes/choose.js";
import { loadNative } from "../../dist/native.js";
import type { HeadroomReport } from "../../dist/outcome/report.js";
import { becomesTrue, cgroupOf, check, CLI, readOr } from "./support.js";

const BUS = "/run/user/1000/bus";
const LOGIN = "check-login.service";
/** A manager stays 10 s longer than it is needed. */
const SWITCH_SECONDS = 60;
const NOTICE_SECONDS = 60;

const scratch = mkdtempSync(join(tmpdir(), "linger-"));
const native = loadNative();
if (!native) throw new Error("no addon");

const asRoot = (...words: string[]): void => {
  const { status, stderr } = spawnSync("sudo", words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
};

const sessions = (): string => spawnSync("loginctl", ["list-sessions", "--no-legend"], { encoding: "utf8" }).stdout;

const isUp = (): boolean => existsSync(BUS);

/** A job started by this very process: what it chose, and how that went. */
const ownJob = async () => {
  const { path } = native.runtimeDirectory();
  const job = startJob(native, candidates(probeModes(native), undefined), {
    argv: ["sh", "-c", "exit 5"].map((word) => Buffer.from(word)),
    text: "linger",
    kind: "custom",
    memoryMb: 80,
    swapMb: 0,
    pool: poolLimits(measureMemory(native)),
    stdio: ["null", "null", "null"],
    runtimeDir: path ?? null,
    collectsOrphans: false,
  });
  if (!job.started) return { mode: job.message, ran: false, warnings: job.warnings };
  const ending = (await job.ended)?.ending;
  const ran = !!ending && "exit_code" in ending && ending.exit_code === 5;
  return { mode: job.mode as string, ran, warnings: job.warnings };
};

const cliJob = (name: string, script: string) => {
  const file = join(scratch, `${name}.json`);
  const words = ["run", "--no-queue", "--memory", "80", "--report", file, "--", "sh", "-c", script];
  const child = spawn(process.execPath, [CLI, ...words], { stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => (stderr += String(chunk)));
  const ended = (async () => {
    const [code] = (await once(child, "close")) as [number | null];
    return { code, stderr, report: JSON.parse(readOr(file, "{}")) as Partial<HeadroomReport> };
  })();
  const started = (async () => {
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    return String(line).trim();
  })();
  return { started, ended };
};

const checkBusComes = async (): Promise<void> => {
  const before = await ownJob();
  const isNext = before.ran && !before.mode.startsWith("systemd") && before.warnings.length === 0;
  check("without a bus a job runs in the next mode", !isUp() && isNext, before);
  asRoot("loginctl", "enable-linger", "hermes");
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;
  let after = await ownJob();
  const modes = [after];
  while (after.mode !== "systemd-user" && seconds() < NOTICE_SECONDS) {
    await sleep(1000);
    after = await ownJob();
    modes.push(after);
  }
  const isNoticed = after.mode === "systemd-user" && seconds() <= NOTICE_SECONDS && modes.every(({ ran }) => ran);
  check("a bus that appears is noticed within a minute by a process that runs", isNoticed, {
    seconds: Math.round(seconds()),
    modes: modes.map(({ mode }) => mode),
    warnings: modes.flatMap(({ warnings }) => warnings),
  });
  const { code, report, stderr } = await cliJob("new", "exit 6").ended;
  const isWell = code === 6 && report.mode === "systemd-user" && stderr === "";
  check("and by a new one", isWell, { code, mode: report.mode, stderr });
};

/** Nobody lingers; a login holds the manager, and the agent's job is in its pool when that login ends. */
const checkLastLogout = async (): Promise<void> => {
  const properties = ["PAMName=login", "User=hermes", "TimeoutStartSec=infinity"].flatMap((each) => ["-p", each]);
  asRoot("systemd-run", "--quiet", `--unit=${LOGIN}`, ...properties, "sleep", "1000");
  await becomesTrue(SWITCH_SECONDS, () => sessions().includes("hermes"));
  asRoot("loginctl", "disable-linger", "hermes");
  const { started, ended } = cliJob("logout", "echo $$; sleep 600");
  const cgroup = cgroupOf(await started);
  asRoot("systemctl", "stop", LOGIN);
  const giveUp = setTimeout(() => asRoot("systemctl", "stop", "user@1000.service"), SWITCH_SECONDS * 1000);
  const { code, report, stderr } = await ended;
  clearTimeout(giveUp);
  const wasInPool = cgroup.includes("/user@1000.service/") && cgroup.includes("headroom-pool-");
  const isTold = code === 143 && /ended from outside.*loginctl enable-linger hermes/.test(report.note ?? "");
  check("without linger the last logout ends the jobs in the pool, and their run tells it", wasInPool && isTold, {
    cgroup,
    code,
    report,
    stderr,
  });
  const isDown = await becomesTrue(SWITCH_SECONDS, () => !isUp());
  const next = cliJob("next", "exit 7");
  const { code: nextCode, report: nextReport, stderr: nextStderr } = await next.ended;
  const isWell = isDown && nextCode === 7 && nextReport.mode !== "systemd-user" && nextStderr === "";
  check("the next job runs in the next mode", isWell, { code: nextCode, mode: nextReport.mode, stderr: nextStderr });
};

asRoot("loginctl", "disable-linger", "hermes");
if (!(await becomesTrue(SWITCH_SECONDS, () => !isUp()))) throw new Error("the user's manager does not end");
await checkBusComes();
await checkLastLogout();
