/**
 * `npm run test:vm`: boots the guests of the matrix one after another, runs the checks in each situation,
 * and prints a table. `-- --all` runs every boot, `-- NAME …` those with that name, or else with that word in it.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { bootGuest, type GuestResult } from "./guest.js";
import { ensureHermesDisk } from "./hermes-disk.js";
import { ensureHostTools } from "./install.js";
import { BOOTS, type Boot } from "./matrix.js";
import { stagePackage } from "./stage.js";

const LAUNCHES = { short: 100, all: 1000 };
/** Emulation on a busy machine: a boot takes 10 to 40 s, a situation 30 to 90 s, 1000 launches 2 to 5 min. */
const BOOT_LIMIT_MS = { short: 15 * 60_000, all: 40 * 60_000 };

interface Row {
  boot: string;
  situation: string;
  passed: number;
  failed: string[];
  seconds: number;
}

const words = process.argv.slice(2);
const isAll = words.includes("--all");
const names = words.filter((word) => !word.startsWith("--"));
const isChosen = (boot: Boot): boolean =>
  names.length > 0
    ? names.some(
        (name) => boot.name === name || (!BOOTS.some((other) => other.name === name) && boot.name.includes(name)),
      )
    : isAll || boot.isShort;
const boots = BOOTS.filter(isChosen);

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const readRows = (boot: Boot, { consoleText, exitCode, timedOut, bootMs, runMs }: GuestResult): Row[] => {
  const rows: Row[] = [];
  let row: Row | undefined;
  for (const line of consoleText.split("\n")) {
    const cell = /^CELL (\S+)/.exec(line)?.[1];
    if (cell !== undefined) {
      row = cell === "end" ? undefined : { boot: boot.name, situation: cell, passed: 0, failed: [], seconds: 0 };
      if (row) rows.push(row);
      continue;
    }
    const [, verdict, text] = /^CHECK (ok|FAIL) (.*)/.exec(line) ?? [];
    if (!row || verdict === undefined) continue;
    if (verdict === "ok") row.passed += 1;
    else row.failed.push(text ?? "");
  }
  const wanted = boot.cells.length + (boot.extras?.length ?? 0);
  const ended = consoleText.includes("CELL end");
  if (!ended || exitCode !== 0 || rows.length !== wanted) {
    const why = timedOut
      ? "the time limit was reached"
      : `the script ended with ${exitCode}, ${rows.length} of ${wanted} situations ran`;
    rows.push({ boot: boot.name, situation: "(boot)", passed: 0, failed: [why], seconds: 0 });
  }
  for (const each of rows) {
    if (each.passed === 0 && each.failed.length === 0) each.failed.push("no check ran");
    each.seconds = Math.round((bootMs + runMs) / 1000);
  }
  return rows;
};

const runBoot = async (boot: Boot, shareDir: string): Promise<Row[]> => {
  say(`\n== ${boot.name}`);
  const args = [
    String(isAll ? LAUNCHES.all : LAUNCHES.short),
    ...boot.cells.map(({ situation, mode }) => `${situation}:${mode}`),
    ...(boot.extras ?? []),
  ];
  const result = await bootGuest({
    suite: boot.suite,
    script: "target/guest-side/checks.sh",
    args,
    shareDir,
    timeoutMs: isAll ? BOOT_LIMIT_MS.all : BOOT_LIMIT_MS.short,
    onLine: say,
    ...(boot.hasHermes ? { dataDisk: await ensureHermesDisk(say) } : {}),
    ...boot.options,
  });
  return readRows(boot, result);
};

const printTable = (rows: readonly Row[]): void => {
  const width = Math.max(...rows.map(({ boot }) => boot.length));
  say(`\n${"BOOT".padEnd(width)}  ${"SITUATION".padEnd(24)} ${"CHECKS".padStart(8)}  RESULT`);
  for (const { boot, situation, passed, failed } of rows) {
    const checks = `${passed}/${passed + failed.length}`;
    say(
      `${boot.padEnd(width)}  ${situation.padEnd(24)} ${checks.padStart(8)}  ${failed.length === 0 ? "ok" : "FAILED"}`,
    );
    for (const reason of failed) say(`${" ".repeat(width + 2)}  ${reason.slice(0, 400)}`);
  }
};

/** Logs are often cut to their end, so what failed stands there once more, whole. */
const printFailures = (rows: readonly Row[]): void => {
  const lines = rows.flatMap(({ boot, situation, failed }) =>
    failed.map((reason) => `${boot} · ${situation} · CHECK FAIL ${reason}`),
  );
  if (lines.length > 0) say(`\n${lines.join("\n")}`);
};

const main = async (): Promise<number> => {
  if (boots.length === 0) {
    say(`No boot has such a name. There are: ${BOOTS.map(({ name }) => JSON.stringify(name)).join(", ")}`);
    return 2;
  }
  const tools = await ensureHostTools((line) => say(`apt: ${line}`));
  if (!tools.ready) {
    say(tools.message);
    return 1;
  }
  const stages = new Map<boolean, string>();
  const rows: Row[] = [];
  try {
    for (const boot of boots) {
      const needsOldGlibc = boot.suite === "bullseye";
      const stage = stages.get(needsOldGlibc) ?? stagePackage(needsOldGlibc);
      stages.set(needsOldGlibc, stage);
      rows.push(...(await runBoot(boot, stage)));
    }
  } finally {
    for (const stage of stages.values()) rmSync(join(stage), { recursive: true, force: true });
  }
  printTable(rows);
  printFailures(rows);
  const passed = rows.reduce((sum, row) => sum + row.passed, 0);
  const failed = rows.reduce((sum, row) => sum + row.failed.length, 0);
  say(`\n${passed} passed, ${failed} failed`);
  return failed > 0 || passed === 0 ? 1 : 0;
};

process.exitCode = await main();
