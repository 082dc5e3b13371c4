import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { measureMemory } from "../../src/memory.js";
import type { HeadroomReport } from "../../src/outcome/report.js";
import { holdingModes, native } from "../support/modes.js";
import { runCli } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-demo-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

const runDemo = async (t: ExecutionContext, mode: string, memoryMb: number, ...script: string[]) => {
  t.timeout(110_000);
  const file = join(scratch, `${mode}-${memoryMb}-${script.join("")}.json`);
  const words = ["run", "--mode", mode, "--memory", String(memoryMb), "--report", file, "--"];
  const result = await runCli([...words, "npm", "--prefix", "demo/leaky-report", ...script]);
  return { ...result, report: JSON.parse(readFileSync(file, "utf8")) as HeadroomReport };
};

for (const { mode } of holdingModes) {
  test.serial(`${mode}: in 300 MB the suite fails by itself and is explained`, async (t) => {
    const { code, stderr, report } = await runDemo(t, mode, 300, "test");
    t.true(code === 137 || code === 134 || code === 1, String(code));
    t.is(report.memory_cap_mb, 300);
    t.is(report.isolated, mode !== "userspace");
    t.is(report.mode, mode);
    t.true(report.oom_killed);
    if (report.isolated) t.true((report.peak_mb ?? 999) <= 300);
    t.regex(report.note ?? "", /`npm --prefix demo\/leaky-report test` hit its 300 MB.*Next: /);
    t.true(stderr.includes(report.note ?? "-"));
  });

  test.serial(`${mode}: the lighter way fits in 300 MB`, async (t) => {
    const { code, report } = await runDemo(t, mode, 300, "run", "test:month");
    t.is(code, 0);
    t.false(report.oom_killed);
    t.is(report.note, undefined);
  });

  if (measureMemory(native).available_mb > 4000) {
    test.serial(`${mode}: in 3000 MB the suite passes and its true peak is told`, async (t) => {
      const { code, stdout, report } = await runDemo(t, mode, 3000, "test");
      t.is(code, 0);
      const heapMb = Number(/heap (\d+) MB/.exec(stdout)?.[1]);
      t.true((report.peak_mb ?? 0) >= heapMb, `peak ${report.peak_mb} MB, heap ${heapMb} MB`);
      t.true((report.peak_mb ?? 0) <= 3000);
      t.false(report.oom_killed);
    });
  } else {
    test.skip(`${mode}: in 3000 MB the suite passes (skipped: less than 4000 MB available here)`, () => {});
  }
}
