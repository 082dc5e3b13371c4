import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { appendEvent, dataDirectory, type HeadroomEvent, type LoggedEvent } from "../../src/events/log.js";
import { followEvents, readEvents, readLog } from "../../src/events/read.js";
import { eventually } from "../support/leftovers.js";
import { finishCli, ROOT, runCli, startCli } from "../support/run-cli.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-events-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));
let count = 0;
const fresh = (): string => join(scratch, String((count += 1)), "a", "b");

const event = (change: Partial<HeadroomEvent> = {}): HeadroomEvent => ({
  event: "started",
  pid: 1,
  command: "npm test",
  ...change,
});

test("an event is one line in a file that only its owner reads", (t) => {
  const directory = fresh();
  t.is(appendEvent(directory, event({ cap_mb: 300 }), new Date(0)), undefined);
  t.is(
    readFileSync(join(directory, "events.jsonl"), "utf8"),
    '{"at":"1970-01-01T00:00:00.000Z","event":"started","pid":1,"command":"npm test","cap_mb":300}\n',
  );
  t.is(statSync(join(directory, "events.jsonl")).mode & 0o777, 0o600);
  t.is(statSync(directory).mode & 0o777, 0o700);
});

test("secrets are masked and a long line is cut", (t) => {
  const directory = fresh();
  appendEvent(
    directory,
    event({ command: `deploy --token abcdef123456 ${"x".repeat(20_000)}`, lightened: ["y".repeat(9000)] }),
  );
  const text = readFileSync(join(directory, "events.jsonl"), "utf8");
  t.false(text.includes("abcdef123456"));
  t.true(text.length < 8192);
  t.is(readEvents(directory, 9).length, 1);
});

test("the log is rotated at 1 MB and three old ones are kept", (t) => {
  const directory = fresh();
  for (let index = 0; index < 4000; index += 1)
    appendEvent(directory, event({ command: "x".repeat(1900), exit_code: index }));
  const names = readdirSync(directory).toSorted();
  t.deepEqual(names, ["events.jsonl", "events.jsonl.1", "events.jsonl.2", "events.jsonl.3"]);
  for (const name of names) t.true(statSync(join(directory, name)).size < 1_200_000);
  const last = readEvents(directory, 700);
  t.is(last.length, 700);
  t.is(last.at(-1)?.exit_code, 3999);
  t.is(last[0]?.exit_code, 3300);
});

test("processes that write and rotate at once lose nothing but what rotation drops", async (t) => {
  const directory = fresh();
  const program = `import { appendEvent } from ${JSON.stringify(join(ROOT, "src/events/log.ts"))};
    for (let i = 0; i < 400; i += 1) appendEvent(process.argv[1], { event: "started", pid: Number(process.argv[2]), command: "x".repeat(1500), exit_code: i });`;
  const writers = Array.from({ length: 4 }, (_, index) =>
    promisify(execFile)(
      process.execPath,
      ["--import", "@oxc-node/core/register", "--input-type=module", "-e", program, directory, String(index + 1)],
      { cwd: ROOT },
    ),
  );
  await Promise.all(writers);
  const found = readEvents(directory, 100_000);
  t.is(found.length, 1600);
  for (const writer of [1, 2, 3, 4]) t.is(found.filter(({ pid }) => pid === writer).length, 400);
});

test("a lock of a process that died while it rotated is removed, whatever the clock was then", (t) => {
  const directory = fresh();
  appendEvent(directory, event());
  const lock = join(directory, "events.jsonl.lock");
  writeFileSync(lock, "");
  const large = (): void => writeFileSync(join(directory, "events.jsonl"), `${"x".repeat(1_100_000)}\n`);
  large();
  appendEvent(directory, event());
  t.true(existsSync(lock), "a fresh lock is somebody's");
  for (const hours of [-5, 5]) {
    writeFileSync(lock, "");
    const then = Date.now() / 1000 + hours * 3600;
    utimesSync(lock, then, then);
    large();
    appendEvent(directory, event());
    t.false(existsSync(lock), `${hours} h`);
    appendEvent(directory, event());
    t.false(existsSync(join(directory, "events.jsonl")), "it is rotated");
  }
});

test("what cannot be written is told and never throws", (t) => {
  const link = fresh();
  mkdirSync(link, { recursive: true });
  symlinkSync("/dev/null", join(link, "events.jsonl"));
  t.regex(appendEvent(link, event()) ?? "", /cannot be written/);
  const file = join(scratch, "file");
  writeFileSync(file, "");
  t.regex(appendEvent(join(file, "x"), event()) ?? "", /cannot be used/);
  const linked = join(scratch, "linked");
  symlinkSync(scratch, linked);
  t.regex(appendEvent(linked, event()) ?? "", /is no directory/);
  t.not(appendEvent("/proc/headroom", event()), undefined);
  if (process.getuid?.() !== 0) {
    const closed = fresh();
    mkdirSync(closed, { recursive: true });
    chmodSync(closed, 0o500);
    t.regex(appendEvent(closed, event()) ?? "", /cannot be written/);
  }
});

test("a full disk is told", (t) => {
  const full = fresh();
  mkdirSync(full, { recursive: true });
  // Every write to it fails with ENOSPC; the link is refused before that, which is as good.
  symlinkSync("/dev/full", join(full, "events.jsonl"));
  t.not(appendEvent(full, event()), undefined);
});

test("lines that are no events are left out", (t) => {
  const directory = fresh();
  appendEvent(directory, event());
  writeFileSync(join(directory, "events.jsonl"), '\n{"half\nnull\n[]\n{"a":1}\n\0\0\n', { flag: "a" });
  appendEvent(directory, event({ event: "finished" }));
  t.deepEqual(
    readEvents(directory, 9).map(({ event: name }) => name),
    ["started", "finished"],
  );
});

test("what is no event is told, and those before and after it are shown", (t) => {
  const directory = fresh();
  t.deepEqual(readLog(directory, 9), { events: [], problems: [] });
  appendEvent(directory, event({ exit_code: 1 }));
  const path = join(directory, "events.jsonl");
  const at = '"at":"2026-01-01T00:00:00.000Z"';
  const broken = [
    '{"half',
    "null",
    "[]",
    "5",
    '{"a":1}',
    "\0\0",
    "\uFFFD\uFFFD",
    `{${at},"event":5,"pid":1}`,
    '{"at":5,"event":"started","pid":1}',
    '{"at":"yesterday\\u001b[2J","event":"started","pid":1}',
    `{${at},"event":"started","pid":"1"}`,
    `{${at},"event":"started","pid":1,"command":"${"x".repeat(100_000)}`,
  ];
  writeFileSync(path, `${broken.join("\n")}\n\n`, { flag: "a" });
  appendEvent(directory, event({ exit_code: 2 }));
  const { events, problems } = readLog(directory, 99);
  t.deepEqual(
    events.map(({ exit_code }) => exit_code),
    [1, 2],
  );
  t.deepEqual(problems, [
    `${path}: 12 lines are no events and were left out; nothing else is lost, it can be deleted there`,
  ]);
});

test("a fact of the wrong type costs that fact, not the event", async (t) => {
  const home = fresh();
  const directory = dataDirectory({ HERMES_HOME: home });
  mkdirSync(directory, { recursive: true });
  const facts = { cap_mb: null, peak_mb: "many", lightened: 5, reason: {}, killed_by: [], command: 7, exit_code: 3 };
  const line = {
    at: "2026-01-01T00:00:00.000Z",
    event: "finished\u001B[2J",
    pid: 1,
    more: "of a later release",
    ...facts,
  };
  writeFileSync(join(directory, "events.jsonl"), `${JSON.stringify(line)}\n`);
  const { code, stdout, stderr } = await runCli(["events"], { env: { HERMES_HOME: home } });
  t.deepEqual([code, stderr], [0, ""]);
  t.is(stdout, "2026-01-01 00:00:00 finished\\x1b[2J       1  exit 3\n");
  t.like(readEvents(directory, 1)[0] as unknown as Record<string, unknown>, {
    more: "of a later release",
    exit_code: 3,
  });
});

test("half a line that a full disk left behind spoils no other", (t) => {
  const directory = fresh();
  appendEvent(directory, event({ exit_code: 1 }));
  appendEvent(directory, event({ exit_code: 2 }));
  const path = join(directory, "events.jsonl");
  truncateSync(path, statSync(path).size - 20);
  appendEvent(directory, event({ exit_code: 3 }));
  appendEvent(directory, event({ exit_code: 4 }));
  const { events, problems } = readLog(directory, 9);
  t.deepEqual(
    events.map(({ exit_code }) => exit_code),
    [1, 3, 4],
  );
  t.is(problems.length, 1);
  t.regex(problems[0] ?? "", /1 line is no event/);
});

test("of a log that is far too large the end is read, and that is told", (t) => {
  const directory = fresh();
  mkdirSync(directory, { recursive: true });
  const path = join(directory, "events.jsonl");
  writeFileSync(path, Buffer.alloc(20 * 1_048_576, 0xff));
  writeFileSync(path, "\n", { flag: "a" });
  appendEvent(directory, event({ exit_code: 5 }));
  // It was rotated away by that.
  const { events, problems } = readLog(directory, 9);
  t.is(events[0]?.exit_code, 5);
  t.regex(problems.join("\n"), /events\.jsonl\.1 is larger than it can get by itself.*delete it/);
});

test("what stands in the log's place is told, with what to do", async (t) => {
  for (const [make, problem] of [
    [(path: string) => mkdirSync(path), /events\.jsonl is no regular file: move it away/],
    [(path: string) => symlinkSync("events.jsonl", path), /events\.jsonl cannot be read: ELOOP.*remove it/],
    [(path: string) => void spawnSync("mkfifo", [path]), /events\.jsonl is no regular file: move it away/],
  ] as const) {
    const home = fresh();
    const directory = dataDirectory({ HERMES_HOME: home });
    mkdirSync(directory, { recursive: true });
    make(join(directory, "events.jsonl"));
    const { code, stdout, stderr } = await runCli(["events"], { env: { HERMES_HOME: home } });
    t.deepEqual([code, stdout], [0, ""]);
    t.regex(stderr, problem);
    const child = startCli(["events", "--follow"], { env: { HERMES_HOME: home } });
    const followed = finishCli(child);
    await once(child.stderr!, "data");
    rmSync(join(directory, "events.jsonl"), { recursive: true });
    appendEvent(directory, event({ exit_code: 9 }));
    await once(child.stdout!, "data");
    child.kill("SIGTERM");
    t.regex((await followed).stdout, /exit 9/);
  }
});

test("following tells broken lines once, and goes on when the log is emptied", async (t) => {
  const directory = fresh();
  appendEvent(directory, event({ exit_code: 1, command: "x".repeat(1000) }));
  const stop = new AbortController();
  const told: string[] = [];
  const following = followEvents(directory, stop.signal, (problem) => told.push(problem));
  const path = join(directory, "events.jsonl");
  writeFileSync(path, `${"y".repeat(200_000)}\n{\n[]\n`, { flag: "a" });
  appendEvent(directory, event({ exit_code: 2 }));
  t.is((await following.next()).value?.exit_code, 2);
  const next = following.next();
  t.true(await eventually(() => told.length > 0));
  truncateSync(path);
  appendEvent(directory, event({ exit_code: 3 }));
  t.is(((await next).value as LoggedEvent | undefined)?.exit_code, 3);
  stop.abort();
  await following.return(undefined);
  t.deepEqual(told, [
    `${path}: 3 lines are no events and were left out; nothing else is lost, it can be deleted there`,
  ]);
});

test("events stand in the order in which they happened, whatever the clock says", (t) => {
  const directory = fresh();
  const hours = [12, 13, 2, 30, 3, -500_000];
  for (const [index, hour] of hours.entries())
    appendEvent(directory, event({ exit_code: index }), new Date(hour * 3_600_000));
  t.deepEqual(
    readEvents(directory, 9).map(({ exit_code }) => exit_code),
    [0, 1, 2, 3, 4, 5],
  );
});

test("following goes on through a rotation", async (t) => {
  const directory = fresh();
  appendEvent(directory, event({ exit_code: -1 }));
  const stop = new AbortController();
  const following = followEvents(directory, stop.signal);
  const total = 1200;
  for (let index = 0; index < total; index += 1)
    appendEvent(directory, event({ command: "x".repeat(1000), exit_code: index }));
  const seen: number[] = [];
  for await (const { exit_code } of following) {
    seen.push(exit_code ?? -2);
    if (seen.length === total) break;
  }
  stop.abort();
  t.deepEqual(
    seen,
    Array.from({ length: total }, (_, index) => index),
  );
});

test("the directory follows HERMES_HOME", (t) => {
  t.is(dataDirectory({ HERMES_HOME: "/h" }), "/h/plugin-data/headroom");
  t.is(dataDirectory({ HOME: "/nonexistent" }), "/nonexistent/.local/state/hermes-headroom");
  mkdirSync(join(scratch, "u", ".hermes"), { recursive: true });
  t.is(dataDirectory({ HOME: join(scratch, "u") }), join(scratch, "u", ".hermes/plugin-data/headroom"));
});

test("the command prints the last ones, as lines for people or as JSON", async (t) => {
  const home = fresh();
  const directory = dataDirectory({ HERMES_HOME: home });
  t.regex((await runCli(["events"], { env: { HERMES_HOME: home } })).stdout, /no events yet/);
  for (let index = 0; index < 5; index += 1)
    appendEvent(directory, event({ exit_code: index, cap_mb: 300, command: "a\u001B[31m" }));
  const { stdout } = await runCli(["events", "-n", "2"], { env: { HERMES_HOME: home } });
  t.is(stdout.trim().split("\n").length, 2);
  t.regex(stdout, /started .*cap 300 MB, exit 4/);
  t.false(stdout.includes("\u001B"));
  const json = await runCli(["events", "--json", "-n", "1"], { env: { HERMES_HOME: home } });
  t.is((JSON.parse(json.stdout) as { exit_code: number }).exit_code, 4);
  t.is((await runCli(["events", "-n", "x"])).code, 2);
});
