import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import test, { type ExecutionContext } from "ava";
import type { HeadroomReport } from "../../src/outcome/report.js";
import { holdingModes } from "../support/modes.js";
import { ROOT, runCli, type CliResult } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-work-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

const unharmed = async (t: ExecutionContext, mode: string, memoryMb: number, cwd: string, command: string[]) => {
  const file = join(scratch, "report.json");
  const words = ["run", "--mode", mode, "--memory", String(memoryMb), "--report", file, "--"];
  const result: CliResult = await runCli([...words, ...command], { cwd });
  const report = JSON.parse(readFileSync(file, "utf8")) as HeadroomReport;
  t.log(`${mode}: ${command.join(" ")}: exit code ${result.code}, peak ${report.peak_mb} of ${memoryMb} MB`);
  t.is(result.code, 0, result.stderr);
  t.false(report.oom_killed);
  t.is(report.note, undefined);
  return report;
};

const has = (program: string, ...words: string[]): boolean =>
  spawnSync(program, words, { stdio: "ignore", timeout: 60_000 }).status === 0;

const canInstall = has("npm", "view", "react@19.2.0", "version");
const canBuildRust = has("cargo", "--version");

for (const { mode } of holdingModes) {
  if (canInstall) {
    test.serial(`${mode}: npm ci and a build of a real small web project pass unharmed`, async (t) => {
      t.timeout(240_000);
      const project = join(scratch, mode);
      cpSync(fileURLToPath(new URL("fixtures/web", import.meta.url)), project, { recursive: true });
      await unharmed(t, mode, 1024, project, ["npm", "ci", "--no-audit", "--no-fund"]);
      await unharmed(t, mode, 1024, project, ["npm", "run", "build"]);
      t.true(existsSync(join(project, "dist", "index.html")));
    });
  } else {
    test.skip(`${mode}: npm ci of a real project (skipped: no package registry can be reached)`, () => {});
  }

  if (canBuildRust) {
    test.serial(`${mode}: cargo build of this repository's core passes unharmed`, async (t) => {
      t.timeout(600_000);
      const target = join(scratch, `target-${mode}`);
      const command = ["cargo", "build", "--locked", "-p", "headroom-core", "--target-dir", target];
      const report = await unharmed(t, mode, 2048, ROOT, command);
      t.true((report.peak_mb ?? 0) > 0);
    });
  } else {
    test.skip(`${mode}: cargo build of this repository (skipped: no Rust toolchain)`, () => {});
  }
}
