import test from "ava";
import { render } from "../../src/cli/selftest.js";
import type { SelftestResult } from "../../src/selftest/selftest.js";
import { jobCgroupsOf, recordsOf } from "../support/leftovers.js";
import { kernelModes } from "../support/modes.js";
import { finishCli, runCli, startCli } from "../support/run-cli.js";

const plain = (_style: unknown, text: string): string => text;

test.serial("userspace passes, degraded, with the reason", async (t) => {
  const result = await runCli(["selftest", "--mode", "userspace"]);
  t.is(result.code, 0);
  t.regex(result.stdout, /headroom selftest: PASS \(degraded\) – mode userspace/);
});

test.serial("the JSON has every field of the contract", async (t) => {
  const { code, stdout } = await runCli(["selftest", "--json"]);
  t.is(code, 0);
  const result = JSON.parse(stdout) as SelftestResult;
  t.is(result.result, kernelModes.length > 0 ? "pass" : "degraded");
  t.true(result.memory.total_mb > 0 && result.memory.available_mb > 0);
  t.is(typeof result.psi, "boolean");
  t.true(result.cpus >= 1);
  t.is(result.oom?.shell_survived, true);
  t.is(result.oom?.killed_by, kernelModes.length > 0 ? "kernel" : "headroom");
  t.is(result.oom?.count, 1);
  t.true(result.took_ms > 0);
  for (const check of result.checks) t.true(["ok", "warn", "fail"].includes(check.status) && check.detail !== "");
});

if (kernelModes.length > 0) {
  test.serial("where a kernel limit can be had it passes", async (t) => {
    const result = await runCli(["selftest"]);
    t.is(result.code, 0);
    t.regex(result.stdout, /headroom selftest: PASS\n$/);
    t.regex(result.stdout, /killed by the kernel inside it/);
  });
} else {
  test.skip("where a kernel limit can be had it passes (skipped: no memory cgroup can be written here)", () => {});
}

test.serial("a mode that cannot be had is refused with the reason", async (t) => {
  const result = await runCli(["selftest", "--mode", "systemd-system"]);
  t.is(result.code, 1);
  t.regex(result.stderr, /mode systemd-system cannot be used here/);
});

test.serial("there is nothing to prove about mode off", async (t) => {
  t.is((await runCli(["selftest", "--mode", "off"])).code, 2);
});

test.serial("no box is left behind", async (t) => {
  const child = startCli(["selftest"]);
  t.is((await finishCli(child)).code, 0);
  t.deepEqual([...jobCgroupsOf(child.pid!), ...recordsOf(child.pid!)], []);
});

test("a failed check has its mark, its fix below it, and the verdict at the end", (t) => {
  const lines = render(
    {
      result: "fail",
      mode: "off",
      memory: { available_mb: 0, total_mb: 0 },
      cpus: 1,
      psi: false,
      checks: [{ name: "addon", status: "fail", detail: "not there", fix: "Install it." }],
      took_ms: 5,
    },
    plain,
    80,
  );
  t.regex(lines[0] ?? "", /FAIL {2}addon +not there/);
  t.regex(lines[1] ?? "", /→ Install it\./);
  t.is(lines.at(-1), "headroom selftest: FAIL");
});

test("long text is broken between words, within the terminal's width", (t) => {
  const detail = "word ".repeat(60).trim();
  const checks = [{ name: "mode systemd-system", status: "warn" as const, detail, fix: detail }];
  const memory = { available_mb: 0, total_mb: 0 };
  const lines = render({ result: "pass", mode: "cgroup2", memory, cpus: 1, psi: true, checks, took_ms: 5 }, plain, 80);
  t.true(lines.length > 10);
  for (const line of lines) t.true(line.length <= 80, line);
  t.is(lines.join(" ").match(/word/g)?.length, 120);
});
