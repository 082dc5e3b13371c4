import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { loadNative, nativeStatus, type Native } from "../../src/native.js";

const native = loadNative() as Native;
const status = nativeStatus();
const addon = status.available ? createRequire(import.meta.url).resolve(`../${status.file}`) : "";

/** A runtime directory that is gone after the test. */
const folder = (t: ExecutionContext): string => {
  const path = mkdtempSync(join(tmpdir(), "headroom-slots-"));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

test("the first takes a slot, the second waits until it is given back", (t) => {
  const dir = folder(t);
  const first = native.SlotQueue.join(dir, 1, '{"command":"npm ci"}');
  const second = native.SlotQueue.join(dir, 1, '{"command":"cargo build"}');
  t.deepEqual(second.tryTake(), { taken: false, ahead: 1 });
  t.deepEqual(first.tryTake(), { taken: true, ahead: 0 });
  t.deepEqual(first.tryTake(), { taken: true, ahead: 0 });
  t.deepEqual(second.tryTake(), { taken: false, ahead: 0 });
  const { holders, waiting } = native.listSlots(dir);
  const own = { pid: process.pid, alive: true, stopped: false };
  t.deepEqual(holders, [{ ...own, number: 0, description: '{"command":"npm ci"}' }]);
  t.deepEqual(waiting, [{ ...own, number: 1, description: '{"command":"cargo build"}' }]);
  first.leave();
  first.leave();
  t.deepEqual(second.tryTake(), { taken: true, ahead: 0 });
  second.leave();
  t.deepEqual(native.listSlots(dir), { holders: [], waiting: [] });
});

test("whoever leaves the line is not waited for", (t) => {
  const dir = folder(t);
  const [first, second] = [native.SlotQueue.join(dir, 1, ""), native.SlotQueue.join(dir, 1, "")];
  first.leave();
  t.true(second.tryTake().taken);
  t.throws(() => first.tryTake(), { message: /^E_ARGUMENT: / });
  t.false(first.describe("gone"));
  second.leave();
});

test("the description can be replaced while waiting and while holding", (t) => {
  const dir = folder(t);
  const queue = native.SlotQueue.join(dir, 1, "first");
  t.true(queue.describe("waits"));
  t.is(native.listSlots(dir).waiting[0]?.description, "waits");
  queue.tryTake();
  t.is(native.listSlots(dir).holders[0]?.description, "waits");
  t.true(queue.describe("holds\n"));
  t.is(native.listSlots(dir).holders[0]?.description, "holds\n");
  queue.leave();
});

test("a process that is killed gives its slot back, and its job does not keep it", async (t) => {
  const dir = folder(t);
  const script = `const queue = require(process.argv[1]).SlotQueue.join(process.argv[2], 1, "other");
    if (!queue.tryTake().taken) throw new Error("not taken");
    const job = require("node:child_process").spawn("sleep", ["1000"], { stdio: "ignore" });
    console.log(job.pid);
    setInterval(() => queue.describe("alive"), 1000);`;
  const child = spawn(process.execPath, ["-e", script, addon, dir], { stdio: ["ignore", "pipe", "inherit"] });
  t.teardown(() => child.kill("SIGKILL"));
  const [job] = (await once(child.stdout, "data")) as [Buffer];
  t.teardown(() => process.kill(Number(job.toString()), "SIGKILL"));
  const queue = native.SlotQueue.join(dir, 1, "own");
  t.deepEqual(queue.tryTake(), { taken: false, ahead: 0 });
  t.is(native.listSlots(dir).holders[0]?.pid, child.pid);
  child.kill("SIGKILL");
  await once(child, "exit");
  t.true(queue.tryTake().taken);
  queue.leave();
});

test("a directory that does not allow for taking turns is an error that says why", (t) => {
  const dir = folder(t);
  const message = (path: string): string =>
    t.throws(() => native.SlotQueue.join(path, 1, ""), { instanceOf: Error })?.message ?? "";
  t.regex(message(join(dir, "absent", "run")), /^E_IO: .*absent/);
  symlinkSync(dir, join(dir, "link"));
  t.regex(message(join(dir, "link")), /^E_UNSAFE_DIRECTORY: .*link: is a symbolic link/);
  mkdirSync(join(dir, "slots"));
  chmodSync(join(dir, "slots"), 0o777);
  t.regex(message(dir), /^E_UNSAFE_DIRECTORY: .*slots: .*0700/);
  t.throws(() => native.listSlots(dir), { message: /^E_UNSAFE_DIRECTORY: / });
});

test("no slots, and more than there can be, are refused", (t) => {
  const dir = folder(t);
  for (const limit of [0, 65, 1000]) {
    t.throws(() => native.SlotQueue.join(dir, limit, ""), { message: /^E_ARGUMENT: .* 1 to 64/ });
  }
  // The highest that the setting allows.
  native.SlotQueue.join(dir, 64, "").leave();
});
