/** Proves isolation here, and says what would make it better. */
import { availableParallelism } from "node:os";
import { HeadroomError } from "../errors.js";
import { sweepJobs } from "../job/adopt.js";
import { measureMemory, type MemorySnapshot } from "../memory.js";
import { candidates, probeModes, type Modes } from "../modes/choose.js";
import { isIsolated, MODE_DESCRIPTIONS, MODES, type Mode } from "../modes/mode.js";
import { loadNative, nativeStatus } from "../native.js";
import { BOX_TEST_SIZES, runBoxTest, type BoxTest } from "./box-test.js";

export interface Check {
  name: string;
  status: "ok" | "warn" | "fail";
  detail: string;
  /** What to type or change. */
  fix?: string;
}

/** The result, as `selftest --json` prints it. */
export interface SelftestResult {
  result: "pass" | "degraded" | "fail";
  mode: Mode;
  memory: { available_mb: number; total_mb: number };
  cpus: number;
  /** The kernel reports memory pressure. */
  psi: boolean;
  checks: Check[];
  oom?: { killed_by: "kernel" | "headroom" | null; where: string; count: number; shell_survived: boolean };
  took_ms: number;
}

/** Runs every check. `mode` asks for one mode instead of the best. */
export const selftest = async (mode: Mode | undefined): Promise<SelftestResult> => {
  const began = performance.now();
  const native = loadNative();
  if (!native) return withoutAddon(began);
  const memory = measureMemory(native);
  const psi = native.memoryPressure() !== null;
  if (mode === "off") throw new HeadroomError("E_USAGE", "mode off holds nothing: there is nothing to prove");
  const modes = probeModes(native);
  const usable = candidates(modes, mode);
  const checks = [
    { name: "addon", status: "ok", detail: `native addon ${native.version()} loaded` } satisfies Check,
    checkMemory(memory),
    checkPressure(psi),
  ];
  const { path: runtimeDir, problem } = native.runtimeDirectory();
  const sweep = sweepJobs(native, runtimeDir ?? null, usable);
  checks.push(checkRecords(runtimeDir ?? null, problem ?? sweep.problem, sweep.jobs.length));
  const test = await runBoxTest(native, usable, runtimeDir);
  checks.push(checkMode(test.mode, mode), ...checkBetterModes(modes, test.mode), checkBox(test));
  return {
    result: verdict(checks, test.mode),
    mode: test.mode,
    memory: { available_mb: memory.available_mb, total_mb: memory.total_mb },
    cpus: availableParallelism(),
    psi,
    checks,
    oom: { killed_by: test.killedBy ?? null, where: test.where, count: test.count, shell_survived: test.shellSurvived },
    took_ms: Math.round(performance.now() - began),
  };
};

const verdict = (checks: readonly Check[], mode: Mode): SelftestResult["result"] => {
  if (checks.some(({ status }) => status === "fail")) return "fail";
  return isIsolated(mode) ? "pass" : "degraded";
};

const withoutAddon = (began: number): SelftestResult => {
  const status = nativeStatus();
  const check: Check = status.available
    ? { name: "addon", status: "fail", detail: "unknown" }
    : { name: "addon", status: "fail", detail: `${status.detail} (${status.reason})`, fix: status.fix };
  return {
    result: "fail",
    mode: "off",
    memory: { available_mb: 0, total_mb: 0 },
    cpus: availableParallelism(),
    psi: false,
    checks: [check],
    took_ms: Math.round(performance.now() - began),
  };
};

const checkMemory = ({ available_mb, total_mb }: MemorySnapshot): Check => ({
  name: "memory",
  status: "ok",
  detail: `${available_mb} MB available of ${total_mb} MB, ${availableParallelism()} CPUs`,
});

const checkPressure = (psi: boolean): Check =>
  psi
    ? { name: "pressure", status: "ok", detail: "the kernel reports memory pressure (PSI)" }
    : {
        name: "pressure",
        status: "warn",
        detail: "the kernel does not report memory pressure (PSI)",
        fix: "Append psi=1 to the kernel command line (on a Raspberry Pi: /boot/firmware/cmdline.txt) and reboot.",
      };

const checkRecords = (runtimeDir: string | null, problem: string | null, running: number): Check =>
  runtimeDir === null || problem !== null
    ? {
        name: "records",
        status: "warn",
        detail: `jobs are not on record: ${problem ?? "no directory"}`,
        fix: "Remove what stands in the way, or set XDG_RUNTIME_DIR to a directory of your own with mode 0700.",
      }
    : { name: "records", status: "ok", detail: `jobs are on record in ${runtimeDir}, ${running} running or left` };

const checkMode = (mode: Mode, asked: Mode | undefined): Check => ({
  name: "mode",
  status: isIsolated(mode) ? "ok" : "warn",
  detail: `${mode}${asked === mode ? ", as asked for" : ""}: ${MODE_DESCRIPTIONS[mode]}`,
});

/** Each better mode that is not in use: why, and what would enable it. */
const checkBetterModes = (modes: Modes, inUse: Mode): Check[] =>
  MODES.slice(0, MODES.indexOf(inUse)).flatMap((mode): Check[] => {
    const reason = modes.unusable.find((unusable) => unusable.mode === mode);
    if (!reason) return [{ name: `mode ${mode}`, status: "ok", detail: "works here too, not asked for" }];
    const { detail, fix } = reason;
    // Once the kernel holds the job, another way to have it do so is no gain worth a warning.
    const status = isIsolated(inUse) ? "ok" : "warn";
    return [{ name: `mode ${mode}`, status, detail: `not in use: ${detail}`, ...(fix !== undefined && { fix }) }];
  });

const checkBox = (test: BoxTest): Check => {
  const { boxMb, wantedMb } = BOX_TEST_SIZES;
  const detail = `a process that wanted ${wantedMb} MB in a ${boxMb} MB box`;
  if (test.problem !== undefined && (test.killedBy === undefined || !test.shellSurvived)) {
    return { name: "box", status: "fail", detail: `${detail}: ${test.problem}` };
  }
  if (!test.untouched)
    return { name: "box", status: "fail", detail: `${detail}: the kernel killed something outside the box` };
  return {
    name: "box",
    status: test.problem === undefined ? "ok" : "warn",
    detail: `${detail} was killed by ${test.killedBy === "kernel" ? "the kernel" : "headroom"} inside it; its shell lived and saw 137, this process was not touched${test.problem === undefined ? "" : ` (${test.problem})`}`,
  };
};
