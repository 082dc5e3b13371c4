/** Whatever is wrong with what headroom finds: one clear line, the job runs with its cap, nothing good is lost. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { appendEvent, dataDirectory } from "../../src/events/log.js";
import type { HeadroomReport } from "../../src/outcome/report.js";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { fullDisk, mountProblem, noMoreFiles, readOnly, runCliOn } from "../support/bad-places.js";
import { isAlive } from "../support/leftovers.js";
import { native } from "../support/modes.js";
import { type CliResult, finishCli, runCli, startCli } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-bad-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;

interface World {
  /** `XDG_RUNTIME_DIR`. */
  runtime: string;
  records: string;
  home: string;
  data: string;
  env: { XDG_RUNTIME_DIR: string; HERMES_HOME: string };
}

let worlds = 0;
const world = (): World => {
  worlds += 1;
  const runtime = join(scratch, `runtime-${worlds}`);
  const home = join(scratch, `home-${worlds}`);
  mkdirSync(runtime, { mode: 0o700 });
  mkdirSync(home, { mode: 0o700 });
  return {
    runtime,
    records: join(runtime, "hermes-headroom"),
    home,
    data: dataDirectory({ HERMES_HOME: home }),
    env: { XDG_RUNTIME_DIR: runtime, HERMES_HOME: home },
  };
};

type Cli = (words: string[]) => Promise<CliResult>;

const HOG = "head -c 500m /dev/zero | tail > /dev/null; exit $((128 + 9))";

const ENDS_WITH_7 = { words: ["sh", "-c", "echo out; exit 7"], code: 7 };

/** What it does is not known beforehand, so its peak is learnt; it stays long enough to be sampled. */
const MAKE = { words: ["make", "-s", "-C", join(scratch, "made")], code: 0 };
mkdirSync(join(scratch, "made"));
writeFileSync(join(scratch, "made", "Makefile"), "all:\n\t@./out\n");
writeFileSync(join(scratch, "made", "out"), "#!/bin/sh\necho out\nsleep 1\n", { mode: 0o755 });

/** The job's exit code and output are its own, it has its cap, and stderr has these lines and no others. */
const assertRuns = async (t: ExecutionContext, cli: Cli, lines: RegExp[], command = ENDS_WITH_7): Promise<void> => {
  const file = join(scratch, `report-${Math.random()}.json`);
  const job = ["--memory", "100", "--swap", "0", "--report", file, "--"];
  const { code, stdout, stderr } = await cli(["run", ...job, ...command.words]);
  t.deepEqual([code, stdout], [command.code, "out\n"], stderr);
  const said = stderr.split("\n").filter((line) => line !== "");
  t.is(said.length, lines.length, stderr);
  for (const line of lines)
    t.true(
      said.some((each) => line.test(each)),
      `${line} in ${stderr}`,
    );
  const report = JSON.parse(readFileSync(file, "utf8")) as HeadroomReport;
  t.deepEqual([report.memory_cap_mb, report.mode === "off"], [100, false]);
};

/** Whoever wants too much is killed at the cap. */
const assertIsCapped = async (t: ExecutionContext, cli: Cli): Promise<void> => {
  const { code, stderr } = await cli(["run", "--memory", "100", "--swap", "0", "--", "sh", "-c", HOG]);
  t.is(code, 137, stderr);
  t.regex(stderr, /100 MB memory cap/);
};

const assertShows = async (t: ExecutionContext, cli: Cli, problem: RegExp | null): Promise<void> => {
  const { code, stdout, stderr } = await cli(["status", "--json"]);
  t.deepEqual([code, stderr], [0, ""]);
  const snapshot = JSON.parse(stdout) as StatusSnapshot;
  if (problem === null) t.is(snapshot.problem, null);
  else t.regex(snapshot.problem ?? "", problem);
  t.true(snapshot.memory.total_mb > 0 && snapshot.processes.length > 0, "the rest is shown");
};

const inWorld =
  ({ env }: World): Cli =>
  async (words) =>
    runCli(words, { env, queue: true });

const UNSAFE: Record<string, [make: (path: string) => void, why: string]> = {
  "a symbolic link": [(path) => symlinkSync(scratch, path), "is a symbolic link, must be a directory: remove it"],
  "a link to nowhere": [(path) => symlinkSync("nowhere", path), "is a symbolic link, must be a directory: remove it"],
  "a file": [(path) => writeFileSync(path, ""), "is not a directory: remove it"],
  "open to others": [
    (path) => {
      mkdirSync(path);
      chmodSync(path, 0o777);
    },
    "can be reached by other users, must have mode 0700: remove it, or chmod 700 it if all in it is yours",
  ],
  ...(isRoot
    ? {
        "another user's": [
          (path: string) => {
            mkdirSync(path, { mode: 0o700 });
            chownSync(path, 65_534, 65_534);
          },
          "belongs to another user: remove it, or set XDG_RUNTIME_DIR to a directory of yours",
        ] as const,
      }
    : {}),
} as Record<string, [make: (path: string) => void, why: string]>;

for (const [name, [make, why]] of Object.entries(UNSAFE)) {
  test(`a runtime directory that is ${name}`, async (t) => {
    const place = world();
    make(place.records);
    const cli = inWorld(place);
    await assertRuns(t, cli, [
      new RegExp(`^headroom: jobs are not on record, and do not take turns: ${place.records}: ${why}$`),
    ]);
    await assertShows(t, cli, new RegExp(why));
    t.is((await cli(["events"])).code, 0);
  });

  test(`a directory of slots that is ${name}`, async (t) => {
    const place = world();
    mkdirSync(place.records, { mode: 0o700 });
    make(join(place.records, "slots"));
    const cli = inWorld(place);
    await assertRuns(t, cli, [new RegExp(`^headroom: jobs do not take turns: ${place.records}/slots: ${why}$`)]);
    await assertShows(t, cli, new RegExp(why));
  });
}

test("without records a job is held to its cap all the same", async (t) => {
  const place = world();
  writeFileSync(place.records, "");
  await assertIsCapped(t, inWorld(place));
});

const onDisk =
  ({ env, runtime, home }: World, script: string, of: "runtime" | "home"): Cli =>
  async (words) =>
    runCliOn(script, [of === "runtime" ? runtime : home], words, { env });

const FREE = "No space left on device.*: free some space there$";
const WRITABLE = "Read-only file system.*: make it writable, or set XDG_RUNTIME_DIR to a directory of yours that is$";
const MAKE_RECORDS = 'mkdir -m 700 "$1/hermes-headroom"';

const DISKS: [name: string, script: string, lines: string[], problem: RegExp | null][] = [
  ["full", fullDisk(MAKE_RECORDS), [`^headroom: the job is not on record: .*${FREE}`], null],
  ["full before anything was made", fullDisk(), [`^headroom: the job is not on record: .*${FREE}`], null],
  [
    "without room for one more file",
    noMoreFiles(MAKE_RECORDS),
    [
      `^headroom: jobs do not take turns: .*${FREE}`,
      `^headroom: the job is not on record: .*${FREE}`,
      `^headroom: no watchdog: .*${FREE}`,
    ],
    null,
  ],
  [
    "without room for the directory",
    noMoreFiles(),
    [`^headroom: jobs are not on record, and do not take turns: .*${FREE}`],
    /free some space there$/,
  ],
  [
    "read-only",
    readOnly(MAKE_RECORDS),
    [
      `^headroom: jobs do not take turns: .*${WRITABLE}`,
      `^headroom: the job is not on record: .*${WRITABLE}`,
      `^headroom: no watchdog: .*${WRITABLE}`,
    ],
    null,
  ],
  [
    "read-only before anything was made",
    readOnly(),
    [`^headroom: jobs are not on record, and do not take turns: .*${WRITABLE}`],
    /make it writable/,
  ],
];

for (const [name, script, lines, problem] of DISKS) {
  test(`a runtime directory on a disk that is ${name}`, async (t) => {
    if (mountProblem !== undefined) {
      t.log(`skipped: ${mountProblem}`);
      t.pass();
      return;
    }
    const cli = onDisk(world(), script, "runtime");
    await assertRuns(
      t,
      cli,
      lines.map((line) => new RegExp(line)),
    );
    await assertIsCapped(t, cli);
    await assertShows(t, cli, problem);
    t.is((await cli(["events"])).code, 0);
  });
}

test("the directory in /tmp, where others were first", async (t) => {
  if (mountProblem !== undefined || !isRoot) {
    t.log(`skipped: ${mountProblem ?? "only root can give a directory away"}`);
    t.pass();
    return;
  }
  const uid = process.getuid?.() ?? 0;
  const path = `/tmp/hermes-headroom-${uid}`;
  // What stands there now is only covered.
  const isNew = !existsSync(path);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  t.teardown(() => {
    if (isNew) rmSync(path, { recursive: true, force: true });
  });
  const place = world();
  const script = `if [ -d /run/user ]; then mount -t tmpfs none /run/user; fi\nmount -t tmpfs -o mode=1777 none ${path}`;
  const cli: Cli = async (words) =>
    runCliOn(script, [], words, { env: { HERMES_HOME: place.home, XDG_RUNTIME_DIR: "" } });
  await assertRuns(t, cli, [new RegExp(`turns: ${path}: can be reached by other users, must have mode 0700: remove`)]);
});

const DATA_DISKS: [name: string, script: string, lines: RegExp[]][] = [
  [
    "full",
    fullDisk('mkdir -p -m 700 "$1/plugin-data/headroom"'),
    [
      /events\.jsonl cannot be written: ENOSPC.*free some space there$/,
      /peaks\.json cannot be written: ENOSPC.*free some space/,
    ],
  ],
  [
    "read-only",
    readOnly(),
    [
      /plugin-data cannot be used: EROFS|headroom cannot be used: EROFS.*make it writable, or set HERMES_HOME to a directory that is$/,
    ],
  ],
];

for (const [name, script, lines] of DATA_DISKS) {
  test(`events and peaks on a disk that is ${name}`, async (t) => {
    if (mountProblem !== undefined) {
      t.log(`skipped: ${mountProblem}`);
      t.pass();
      return;
    }
    const cli = onDisk(world(), script, "home");
    await assertRuns(t, cli, lines, MAKE);
    t.deepEqual(await cli(["events"]), { code: 0, signal: null, stdout: "no events yet\n", stderr: "" });
    await assertShows(t, cli, null);
  });
}

test("events and peaks where a file is in the way", async (t) => {
  const place = world();
  writeFileSync(join(place.home, "plugin-data"), "");
  const cli = inWorld(place);
  await assertRuns(t, cli, [/plugin-data\/headroom cannot be used: .*ENOTDIR.*move it away$/]);
  const { code, stdout, stderr } = await cli(["events"]);
  t.deepEqual([code, stdout], [0, ""]);
  t.regex(stderr, /cannot be read: ENOTDIR.*move it away/);
});

test("a store of peaks that is none is set aside, told, and begun anew", async (t) => {
  const place = world();
  mkdirSync(place.data, { recursive: true });
  writeFileSync(join(place.data, "peaks.json"), "\0\0{");
  const cli = inWorld(place);
  await assertRuns(
    t,
    cli,
    [/peaks\.json was no store of peaks: it is now peaks\.json\.bad, and a new one was begun/],
    MAKE,
  );
  t.is(readFileSync(join(place.data, "peaks.json.bad"), "utf8"), "\0\0{");
  await assertRuns(t, cli, [], MAKE);
});

test("an event log with broken lines goes on, and events shows all that is whole", async (t) => {
  const place = world();
  appendEvent(place.data, { event: "started", pid: 1, exit_code: 1 });
  writeFileSync(
    join(place.data, "events.jsonl"),
    Buffer.concat([Buffer.alloc(3000, 0xff), Buffer.from('\n{"at":"20')]),
    {
      flag: "a",
    },
  );
  const cli = inWorld(place);
  await assertRuns(t, cli, []);
  const { code, stdout, stderr } = await cli(["events", "--json"]);
  t.is(code, 0);
  t.deepEqual(
    stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { event: string }).event),
    ["started", "started", "finished"],
  );
  t.regex(stderr, /^headroom: .*events\.jsonl: 2 lines are no events and were left out; .*\n$/);
});

const CONFIGS: Record<string, [make: (path: string) => void, line: RegExp]> = {
  "a directory": [
    (path) => mkdirSync(path),
    /config\.yaml: not read, it is no regular file; the defaults are in force$/,
  ],
  "no YAML": [(path) => writeFileSync(path, "headroom: ["), /config\.yaml: is no YAML: .*; the defaults are in force$/],
  "no text": [
    (path) =>
      writeFileSync(
        path,
        Buffer.concat([
          Buffer.from("plugins: {entries: {headroom: {settings: "),
          Buffer.alloc(99, 0xfe),
          Buffer.from("}}}"),
        ]),
      ),
    /settings: a mapping is wanted; the defaults are in force$/,
  ],
  huge: [(path) => writeFileSync(path, "x".repeat(2_000_000)), /larger than 1 MB; the defaults are in force$/],
  "a loop of links": [(path) => symlinkSync("config.yaml", path), /config\.yaml: cannot be read: ELOOP/],
  "a mapping with a bad value": [
    (path) =>
      writeFileSync(path, "plugins: {entries: {headroom: {settings: {max_heavy_jobs: 65, queue_timeout_s: 20}}}}"),
    /max_heavy_jobs: 65 is not allowed: a whole number from 0 to 64; 0 stays in force$/,
  ],
};

for (const [name, [make, line]] of Object.entries(CONFIGS)) {
  test(`a settings file that is ${name}`, async (t) => {
    const place = world();
    make(join(place.home, "config.yaml"));
    const cli = inWorld(place);
    await assertRuns(t, cli, [line]);
    const { code, stdout, stderr } = await cli(["status", "--json"]);
    t.is(code, 0);
    t.regex(stderr.trim(), line);
    t.is((JSON.parse(stdout) as StatusSnapshot).problem, null);
    t.is((await cli(["events"])).code, 0);
  });
}

const removed = (number: number): RegExp =>
  new RegExp(`${number}-2-3\\.job\\.json was no whole record of a job and is removed; a job that it stood for runs on`);
const stays = (number: number): RegExp => new RegExp(`${number}-2-3\\.job\\.json is no record of a job: remove it`);

test("records that are none are told once, with what to do, and hide no other", async (t) => {
  const place = world();
  mkdirSync(place.records, { mode: 0o700 });
  const cli = inWorld(place);
  const child = startCli(["run", "--memory", "100", "--", "sh", "-c", "echo $$; exec sleep 60"], { env: place.env });
  const ended = finishCli(child);
  const [line] = (await once(child.stdout!, "data")) as [Buffer];
  const pid = Number(String(line));
  t.teardown(() => {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
  });
  const cutShort = (): void => {
    writeFileSync(join(place.records, "1-2-3.job.json"), '{"id":"1-2-3","mode":"cgr');
    writeFileSync(join(place.records, "2-2-3.job.json"), Buffer.alloc(1_000_000, 0xfe));
    writeFileSync(join(place.records, "3-2-3.job.json"), "");
  };
  cutShort();
  mkdirSync(join(place.records, "4-2-3.job.json"));
  await once(spawn("mkfifo", [join(place.records, "5-2-3.job.json")]), "exit");
  await assertRuns(t, cli, [removed(1), removed(2), removed(3), stays(4), stays(5)]);
  await assertRuns(t, cli, [stays(4), stays(5)]);
  cutShort();
  const first = await cli(["status", "--json"]);
  const { jobs, problem } = JSON.parse(first.stdout) as StatusSnapshot;
  t.deepEqual([first.code, jobs.map((job) => job.pid)], [0, [pid]]);
  for (const expected of [removed(1), removed(2), removed(3), stays(4), stays(5)]) t.regex(problem ?? "", expected);
  await assertShows(t, cli, /^[^;]*4-2-3[^;]*: remove it; [^;]*5-2-3[^;]*: remove it$/);
  child.kill("SIGTERM");
  t.is((await ended).code, 143);
});

test("what is broken in the files of the line costs nobody a slot", async (t) => {
  const place = world();
  const slots = join(place.records, "slots");
  mkdirSync(slots, { recursive: true, mode: 0o700 });
  chmodSync(place.records, 0o700);
  const garbage = Buffer.alloc(100_000, 0xfd);
  for (const name of ["slot-0", "line", "ticket-00000000000000000000", "ticket-00000000000000000007"])
    writeFileSync(join(slots, name), garbage);
  mkdirSync(join(slots, "slot-1"));
  mkdirSync(join(slots, "ticket-00000000000000000003"));
  symlinkSync("nowhere", join(slots, "slot-2"));
  const cli = inWorld(place);
  await assertRuns(t, cli, []);
  await assertShows(t, cli, null);
});

test("status shows a waiter that could not write down who it is", async (t) => {
  const place = world();
  mkdirSync(place.records, { mode: 0o700 });
  // This process stands in the line, and says nothing that could be understood.
  const holder = native.SlotQueue.join(place.records, 1, "");
  t.true(holder.tryTake().taken);
  const waiter = native.SlotQueue.join(place.records, 1, "{");
  const cli = inWorld(place);
  const unknown = { command: null, kind: null, reason: null, waiting_s: null };
  const { waiting } = JSON.parse((await cli(["status", "--json"])).stdout) as StatusSnapshot;
  t.deepEqual(
    waiting.map((each) => ({ ...each, who: each.who.pid })),
    [1, 2].map((position) => ({ ...unknown, pid: process.pid, position, who: process.pid })),
  );
  t.regex((await cli(["status"])).stdout, / {2}– 1\. not known: it could not be written down\n.* 2\. not known/);
  writeFileSync(join(place.records, "slots/slot-0"), "");
  const { code, stderr } = await cli(["run", "--set", "max_heavy_jobs=1", "--set", "queue_timeout_s=0", "--", "true"]);
  t.is(code, 75);
  t.regex(
    stderr,
    /refused after 0 s in the queue. Running: a job whose name could not be written down. Nothing was run/,
  );
  waiter.leave();
  holder.leave();
});
