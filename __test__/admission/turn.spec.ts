import test from "ava";
import type { SlotDescription, Slots, SlotUser } from "../../src/admission/slots.js";
import {
  takeTurn,
  type RecordedJob,
  type Turn,
  type TurnLimits,
  type TurnRequest,
  type TurnWorld,
} from "../../src/admission/turn.js";

const LIMITS: TurnLimits = { maxHeavyJobs: 2, reserveMb: 614, minStartMb: 409, jobMemoryMaxMb: 0, queueTimeoutS: 300 };

/** Slots without files: one line, one clock. */
class FakeSlots implements Slots {
  readonly holders: SlotDescription[] = [];
  readonly line: { description: SlotDescription }[] = [];
  /** What is otherwise with some of them, by their numbers. */
  readonly changes = new Map<number, Partial<SlotUser>>();
  /** Who holds a slot and could not write down who they are. */
  readonly unknown: SlotUser[] = [];

  join(limit: number, first: SlotDescription) {
    const ticket = { description: first };
    this.line.push(ticket);
    let held: SlotDescription | undefined;
    return {
      tryTake: () => {
        const ahead = this.line.indexOf(ticket);
        if (ahead > 0 || this.holders.length + this.unknown.length >= limit)
          return { taken: false, ahead: Math.max(ahead, 0) };
        this.line.shift();
        held = ticket.description;
        this.holders.push(held);
        return { taken: true, ahead: 0 };
      },
      describe: (description: SlotDescription) => {
        if (held === undefined) ticket.description = description;
        else Object.assign(held, description);
      },
      leave: () => {
        if (held !== undefined) this.holders.splice(this.holders.indexOf(held), 1);
        else if (this.line.includes(ticket)) this.line.splice(this.line.indexOf(ticket), 1);
      },
    };
  }

  list() {
    const shown = (description: SlotDescription): SlotUser =>
      ({
        isAlive: true,
        isStopped: false,
        isKnown: true,
        ...description,
        ...this.changes.get(description.pid),
      }) as SlotUser;
    return {
      holders: [...this.unknown, ...this.holders.map(shown)],
      waiting: this.line.map(({ description }) => shown(description)),
    };
  }
}

/** A 4 GB machine whose clock only goes on while somebody sleeps. */
class FakeMachine {
  now = 0;
  availableMb = 3000;
  jobs: RecordedJob[] = [];
  readonly slots = new FakeSlots();
  readonly reasons: string[] = [];
  /** Done at these times. */
  readonly later = new Map<number, () => void>();

  world(): TurnWorld {
    return {
      slots: this.slots,
      measureMemory: () => ({ available_mb: this.availableMb, total_mb: 4096, swap_free_mb: 0, swap_total_mb: 0 }),
      recordedJobs: () => this.jobs,
      largestProcesses: () => [{ pid: 9, name: "java", rssMb: 2000 }],
      nowMs: () => this.now,
      sleep: async (ms) => {
        this.now += ms;
        for (const [at, action] of this.later) {
          if (at > this.now) continue;
          this.later.delete(at);
          action();
        }
        await Promise.resolve();
      },
      onWaiting: (reason) => this.reasons.push(reason),
    };
  }

  take(pid: number, change: Partial<TurnRequest> = {}, limits: Partial<TurnLimits> = {}): Promise<Turn> {
    return takeTurn(
      { command: `job ${pid}`, kind: "test", pid, id: String(pid), ...change },
      { ...LIMITS, ...limits },
      this.world(),
    );
  }
}

test("alone it starts at once, with what is free less the reserve", async (t) => {
  const machine = new FakeMachine();
  t.like(await machine.take(1), { admitted: true, capMb: 2386, queuedMs: 0 });
  t.deepEqual(machine.reasons, []);
});

test("a third job waits for a slot, and is told for whom", async (t) => {
  const machine = new FakeMachine();
  const first = await machine.take(1, {}, { jobMemoryMaxMb: 800 });
  await machine.take(2, {}, { jobMemoryMaxMb: 800 });
  machine.later.set(5000, () => first.admitted && first.place?.leave());
  const third = await machine.take(3, {}, { jobMemoryMaxMb: 800 });
  t.true(third.admitted);
  t.true(third.queuedMs >= 5000);
  t.deepEqual(machine.reasons, ["waits for its turn: `job 1` (pid 1) runs"]);
});

test("with a free slot it still waits for memory that a running job may grow into", async (t) => {
  const machine = new FakeMachine();
  const first = await machine.take(1);
  machine.jobs = [record(2386, 100, first)];
  machine.availableMb = 2900;
  machine.later.set(4000, () => {
    if (first.admitted) first.place?.leave();
    machine.jobs = [];
    machine.availableMb = 3000;
  });
  const second = await machine.take(2);
  t.like(second, { admitted: true, capMb: 2386 });
  t.regex(machine.reasons[0] ?? "", /^waits for memory: 0 MB free/);
});

test("two that start at once are never promised the same memory", async (t) => {
  const machine = new FakeMachine();
  const turns = [machine.take(1, {}, { queueTimeoutS: 2 }), machine.take(2, {}, { queueTimeoutS: 2 })];
  const [first, second] = await Promise.all(turns);
  t.like(first, { admitted: true, capMb: 2386 });
  t.like(second, { admitted: false });
});

test("without hope it is refused after 30 s, naming the largest processes", async (t) => {
  const machine = new FakeMachine();
  machine.availableMb = 700;
  const turn = await machine.take(1);
  t.false(turn.admitted);
  t.true(turn.queuedMs >= 30_000 && turn.queuedMs < 31_000);
  if (!turn.admitted) t.regex(turn.message, /^refused: it waits for memory.*java \(pid 9, 2000 MB\).*Nothing was run/);
  t.deepEqual(machine.slots.holders, []);
});

test("after the queue's time it is refused, naming the holder", async (t) => {
  const machine = new FakeMachine();
  const first = await machine.take(1, {}, { maxHeavyJobs: 1 });
  machine.jobs = [record(2386, 640, first)];
  const turn = await machine.take(2, {}, { maxHeavyJobs: 1 });
  t.false(turn.admitted);
  if (!turn.admitted) t.regex(turn.message, /refused after 300 s.*`job 1` \(pid 1, for 5 min, 640 of 2386 MB\)/);
  t.deepEqual(machine.slots.line, []);
});

/** A job on record, with its starter's slot if it is told whose. */
const record = (capMb: number, nowMb: number, turn?: Turn): RecordedJob => {
  if (turn?.admitted) turn.place?.started("a job");
  return { id: "a job", command: "job", hasLostSlot: false, capMb, nowMb };
};

const UNKNOWN: SlotUser = {
  isAlive: true,
  isStopped: false,
  isKnown: false,
  pid: 77,
  id: null,
  command: null,
  kind: null,
  since_ms: null,
  cap_mb: null,
  reason: null,
  job: null,
};

test("a holder that could not write down who it is keeps its slot, and nobody waits for its memory", async (t) => {
  const machine = new FakeMachine();
  machine.slots.unknown.push(UNKNOWN);
  t.like(await machine.take(1), { admitted: true, capMb: 2386 });
  const second = await machine.take(2, {}, { queueTimeoutS: 10 });
  t.deepEqual(machine.reasons, ["waits for its turn: a job whose name could not be written down (pid 77) runs"]);
  t.false(second.admitted);
  if (!second.admitted)
    t.regex(
      second.message,
      /Running: a job whose name could not be written down \(pid 77\), `job 1` \(pid 1, for 10 s/,
    );
});

test("a number that may be another process's by now is not given to people", async (t) => {
  const machine = new FakeMachine();
  machine.slots.unknown.push({ ...UNKNOWN, isAlive: false });
  await machine.take(1);
  machine.slots.changes.set(1, { isAlive: false });
  const second = await machine.take(2, {}, { queueTimeoutS: 10 });
  t.false(second.admitted);
  if (!second.admitted) t.regex(second.message, /could not be written down, `job 1` \(for 10 s, cap 2386 MB\)/);
  t.false(machine.reasons.join().includes("pid"));
});

test("who waits for memory with a slot is served first, unless it is stopped", async (t) => {
  const machine = new FakeMachine();
  machine.availableMb = 900;
  machine.jobs = [record(300, 300)];
  const first = machine.take(1, { askedMb: 600 }, { queueTimeoutS: 60 });
  const seconds = [machine.take(2, { askedMb: 200 }, { queueTimeoutS: 20 })];
  const [second] = await Promise.all(seconds);
  t.false(second?.admitted);
  t.true(machine.reasons.includes("waits behind `job 1`, which waits for memory"));
  machine.slots.changes.set(1, { isStopped: true });
  t.like(await machine.take(3, { askedMb: 200 }, { queueTimeoutS: 20 }), { admitted: true, capMb: 200 });
  t.false((await first).admitted);
});

test("a cap counts until its job is on record", async (t) => {
  const machine = new FakeMachine();
  t.like(await machine.take(1, {}, { jobMemoryMaxMb: 1000 }), { admitted: true, capMb: 1000 });
  machine.jobs = [record(100, 100)];
  t.like(await machine.take(2), { admitted: true, capMb: 1386 });
});

test("a job that was taken over has its turn as long as it runs", async (t) => {
  const machine = new FakeMachine();
  machine.jobs = [{ ...record(500, 500), command: "npm test", hasLostSlot: true }];
  machine.later.set(3000, () => (machine.jobs = []));
  const turn = await machine.take(1, {}, { maxHeavyJobs: 1 });
  t.true(turn.admitted);
  t.true(turn.queuedMs >= 3000);
  t.deepEqual(machine.reasons, ["waits for its turn: `npm test` runs on although its starter is gone"]);
});

test("one process may hold several slots and wait for more", async (t) => {
  const machine = new FakeMachine();
  const first = await machine.take(1, { id: "1-1", askedMb: 200 });
  const second = await machine.take(1, { id: "1-2", askedMb: 200 });
  t.true(first.admitted && second.admitted);
  t.false((await machine.take(1, { id: "1-3", askedMb: 200 }, { queueTimeoutS: 5 })).admitted);
});

test("called off while it waits, it leaves the line", async (t) => {
  const machine = new FakeMachine();
  await machine.take(1, {}, { maxHeavyJobs: 1 });
  machine.later.set(1000, () => {
    throw new Error("called off");
  });
  await t.throwsAsync(machine.take(2, {}, { maxHeavyJobs: 1 }), { message: "called off" });
  t.deepEqual(machine.slots.line, []);
});

test("a learned peak waits for the running job to end", async (t) => {
  const machine = new FakeMachine();
  const first = await machine.take(1, {}, { jobMemoryMaxMb: 1000 });
  machine.jobs = [record(1000, 900, first)];
  machine.availableMb = 2100;
  machine.later.set(2000, () => {
    if (first.admitted) first.place?.leave();
    machine.jobs = [];
    machine.availableMb = 3000;
  });
  const second = await machine.take(2, { learnedPeakMb: 2000 });
  t.like(second, { admitted: true, capMb: 2386 });
  t.regex(machine.reasons[0] ?? "", /needed 2000 MB before/);
});

test("without slots only memory counts", async (t) => {
  const machine = new FakeMachine();
  const turn = await takeTurn({ command: "a", kind: "test", pid: 1, id: "1" }, LIMITS, {
    ...machine.world(),
    slots: undefined,
  });
  t.like(turn, { admitted: true, capMb: 2386, place: undefined });
});
