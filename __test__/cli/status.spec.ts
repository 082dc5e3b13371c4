import { spawn } from "node:child_process";
import { once } from "node:events";
import test from "ava";
import { render } from "../../src/cli/status.js";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { holdingModes } from "../support/modes.js";
import { CLI, type CliResult, finishCli, runCli, startCli } from "../support/run-cli.js";

const plain = (_style: unknown, text: string): string => text;
const snapshotOf = (text: string): StatusSnapshot => JSON.parse(text) as StatusSnapshot;

const inShell = async (script: string): Promise<CliResult> =>
  finishCli(spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "pipe"] }));

for (const { mode } of holdingModes) {
  test(`${mode}: a running job is shown with its cap and what it uses`, async (t) => {
    const script = "head -c 40m /dev/zero | (tail & sleep 0.5; echo ready >&2; sleep 30)";
    const child = startCli(["run", "--mode", mode, "--memory", "200", "--", "sh", "-c", `MY_TOKEN=abcdef; ${script}`]);
    await once(child.stderr!, "data");
    const { jobs } = snapshotOf((await runCli(["status", "--json"])).stdout);
    const job = jobs.find(({ who }) => who.pid === child.pid);
    t.is(job?.state, "running");
    t.is(job?.cap_mb, 200);
    t.is(job?.swap_cap_mb, 256);
    t.is(job?.mode, mode);
    t.true((job?.now_mb ?? 0) > 0);
    t.true((job?.processes.length ?? 0) >= 1);
    t.false(job?.command.includes("abcdef"));
    const text = (await runCli(["status"])).stdout;
    t.regex(text, /running/);
    child.kill("SIGKILL");
    for (const { pid } of job?.processes ?? []) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended by itself.
      }
    }
    await finishCli(child);
    await runCli(["status"]);
  });
}

const EMPTY: StatusSnapshot = {
  memory: { available_mb: 800, total_mb: 1024, swap_free_mb: 0, swap_total_mb: 0 },
  pressure: null,
  mode: "userspace",
  next_cap_mb: 544,
  limits: { reserve_mb: 256, critical_mb: 96, max_heavy_jobs: 1, min_start_mb: 192 },
  jobs: [],
  waiting: [],
  processes: [{ pid: 5, name: "python3", command: "python3 /usr/bin/hermes gateway run", rss_mb: 187, hermes: true }],
  problem: null,
};

test("text for people names memory, swap, pressure, mode, the next cap and who is Hermes'", (t) => {
  const text = render(EMPTY, plain, 80).join("\n");
  for (const part of [
    "800 MB available of 1,024 MB",
    "no swap",
    "not reported",
    "userspace",
    "544 MB",
    "none",
    "hermes: python3",
  ]) {
    t.true(text.includes(part), part);
  }
});

test("lines are cut to the terminal's width", (t) => {
  const processes = [{ pid: 5, name: "x", command: "x".repeat(500), rss_mb: 1, hermes: false }];
  for (const line of render({ ...EMPTY, processes }, plain, 80)) t.true(line.length <= 80, line);
});

test("a problem with the records is shown", (t) => {
  t.regex(render({ ...EMPTY, problem: "is a symbolic link" }, plain, 80).join("\n"), /symbolic link/);
});

test("a full disk behind stdout is an error, a reader that went away is not", async (t) => {
  const full = await inShell(`${process.execPath} ${CLI} status > /dev/full`);
  t.is(full.code, 1);
  t.regex(full.stderr, /stdout cannot be written/);
  t.is((await inShell(`${process.execPath} ${CLI} status --json | true`)).stderr, "");
});

test("a running job's rows fit into 80 columns, its command too", (t) => {
  const job = {
    id: "1-2-3",
    state: "running",
    pid: 1_234_567,
    kind: "test",
    command: "npm test -- 日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語",
    mode: "cgroup2",
    cap_mb: 9999,
    swap_cap_mb: 256,
    now_mb: 9999,
    peak_mb: 9999,
    age_s: 7000,
    who: { pid: 1_234_567, name: "node" },
    processes: [],
  };
  const lines = render({ ...EMPTY, jobs: [job] }, plain, 80);
  t.true(lines.some((line) => line.includes("npm test")));
  t.true(
    lines.some((line) => /1234567 running .* 9,999 MB .*node \(1234567\)/.test(line)),
    lines.join("\n"),
  );
});
