import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { nativeSlots } from "../../src/admission/native-slots.js";
import type { SlotDescription } from "../../src/admission/slots.js";
import { native } from "../support/modes.js";

const folder = (t: ExecutionContext): string => {
  const path = mkdtempSync(join(tmpdir(), "headroom-slots-"));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

const DESCRIPTION: SlotDescription = {
  pid: process.pid,
  id: "7",
  command: "npm test",
  kind: "test",
  since_ms: 5,
  cap_mb: null,
  reason: "waits for its turn",
  job: null,
};
const LIFE = { isAlive: true, isStopped: false };
const UNKNOWN = {
  isKnown: false,
  id: null,
  command: null,
  kind: null,
  since_ms: null,
  cap_mb: null,
  reason: null,
  job: null,
};

test("who holds and who waits is listed as described", (t) => {
  const slots = nativeSlots(native, folder(t));
  const [holder, waiter] = [slots.join(1, DESCRIPTION), slots.join(1, DESCRIPTION)];
  t.true(holder.tryTake().taken);
  holder.describe({ ...DESCRIPTION, cap_mb: 300, reason: null });
  t.deepEqual(slots.list(), {
    holders: [{ ...LIFE, isKnown: true, ...DESCRIPTION, cap_mb: 300, reason: null }],
    waiting: [{ ...LIFE, isKnown: true, ...DESCRIPTION }],
  } as unknown as ReturnType<typeof slots.list>);
  holder.leave();
  waiter.leave();
});

test("what is broken in a file hides who it is, and drops nobody", (t) => {
  const directory = folder(t);
  const slots = nativeSlots(native, directory);
  const [holder, waiter] = [slots.join(1, DESCRIPTION), slots.join(1, DESCRIPTION)];
  t.true(holder.tryTake().taken);
  const files = readdirSync(join(directory, "slots")).filter((name) => name !== "line");
  const start = JSON.parse(native.listSlots(directory).holders[0]?.description ?? "") as SlotDescription;
  t.deepEqual(start, DESCRIPTION);
  for (const text of ["", "{", "\0\0\0", "null\n", "[]\n", "x".repeat(1_000_000)]) {
    for (const name of files) writeFileSync(join(directory, "slots", name), text);
    const nobody = { ...UNKNOWN, isAlive: false, isStopped: false, pid: null };
    t.deepEqual(slots.list() as unknown, { holders: [nobody], waiting: [nobody] });
  }
  // The process is known, what it says of itself is no description.
  for (const text of ["", "null", "5", "{}", '{"command":5,"since_ms":5}', '{"command":"a"}']) {
    const queue = native.SlotQueue.join(directory, 2, text);
    t.deepEqual(slots.list().waiting.at(-1) as unknown, { ...UNKNOWN, ...LIFE, pid: process.pid });
    queue.leave();
  }
  holder.leave();
  waiter.leave();
  t.deepEqual(slots.list(), { holders: [], waiting: [] });
});

test("a number that another process has by now is not alive", (t) => {
  const directory = folder(t);
  const slots = nativeSlots(native, directory);
  const holder = slots.join(1, DESCRIPTION);
  t.true(holder.tryTake().taken);
  const line = { pid: process.pid, start_ticks: 1, description: JSON.stringify(DESCRIPTION) };
  writeFileSync(join(directory, "slots", "slot-0"), `${JSON.stringify(line)}\n`);
  t.like(slots.list().holders[0], { isAlive: false, isStopped: false, isKnown: true, pid: process.pid });
  holder.leave();
});
