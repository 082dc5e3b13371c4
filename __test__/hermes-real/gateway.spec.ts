import test from "ava";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { RELEASES } from "../../hermes-bed/releases.js";
import { ended, until, World } from "../../hermes-bed/world.js";
import { isAlive } from "../support/leftovers.js";

const HEARTBEAT = fileURLToPath(new URL("../../hermes-bed/plugins/heartbeat", import.meta.url));
/** Eats its box slowly, so that there is time for a second chat. */
const SLOW_HOG = `#!/usr/bin/env python3
import time
kept = []
while True:
    kept.append(b"x" * (2 << 20))
    time.sleep(0.05)
`;
/** A message in the same second as an answer interrupts, and gets no reply. */
const BETWEEN_MS = 1200;

for (const release of RELEASES) {
  test.serial(`${release.name}: while a job of one chat eats its box, the other chat is answered`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: SLOW_HOG }, plugins: { heartbeat: HEARTBEAT } });
    const gateway = await world.startGateway();
    const { chat } = world;
    const replied = (text: string): boolean => chat.replies.some((reply) => reply.text.includes(text));
    for (const user of ["alice", "bob"]) {
      chat.send(user, `hello from ${user}`);
      await until(`${user} is greeted`, () => replied(`heard hello from ${user}`));
      await sleep(BETWEEN_MS);
    }
    const heartbeat = (): { thread_ms: number; loop_ms: number; beats: number } =>
      JSON.parse(readFileSync(join(world.folder, "heartbeat.json"), "utf8")) as never;
    t.true(heartbeat().beats > 50);

    // What matters is from now on.
    writeFileSync(join(world.folder, "heartbeat.anew"), "");
    chat.send("alice", "run pytest -q");
    await until("the job runs", () => world.events().some(({ event }) => event === "started"));
    let answers = 0;
    const isOver = (): boolean => world.events().some(({ event }) => event === "finished");
    while (!isOver() && answers < 3) {
      chat.send("bob", `ping ${answers}`);
      await until(`bob is answered the ${answers}th time`, () => replied(`heard ping ${answers}`));
      if (!isOver()) answers += 1;
      await sleep(BETWEEN_MS);
    }
    t.true(answers > 0, "nobody was answered while the job ran");
    await until("alice is answered", () => replied("done pytest -q"));
    const { headroom } = JSON.parse(chat.toolResults.at(-1) ?? "{}") as {
      headroom?: { oom_killed: boolean; note: string };
    };
    t.true(headroom?.oom_killed, chat.toolResults.at(-1) ?? "no result");
    t.regex(headroom?.note ?? "", /memory cap/);
    t.is(gateway.exitCode, null);
    const { thread_ms, loop_ms } = heartbeat();
    t.log(`longest silence: thread ${thread_ms} ms, event loop ${loop_ms} ms`);
    t.true(thread_ms <= 1000 && loop_ms <= 1000, `${thread_ms} ms, ${loop_ms} ms`);

    gateway.kill("SIGTERM");
    await ended(gateway);
    t.false(isAlive(gateway.pid ?? 0));
  });

  test.serial(`${release.name}: a gateway that is told to end leaves no job, no slot and no box behind`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: `#!/bin/sh\nsleep 600\n` } });
    const gateway = await world.startGateway();
    const { chat } = world;
    chat.send("alice", "run pytest -q");
    await until("the job runs", async () => (await world.status()).jobs.length === 1);
    const jobPid = (): number | undefined =>
      world.processes().find(({ words }) => words.some((word) => word.endsWith("bin/pytest")))?.pid;
    await until("the command runs", () => jobPid() !== undefined);
    const pid = jobPid() ?? 0;
    chat.send("bob", "run pytest --other");
    await until("the second job waits", async () => (await world.status()).waiting.length === 1);
    gateway.kill("SIGTERM");
    await ended(gateway);
    await until("nothing is left", async () => {
      const { jobs, waiting } = await world.status();
      return jobs.length === 0 && waiting.length === 0;
    });
    t.false(isAlive(pid));
    t.is(world.events().filter(({ event }) => event === "started").length, 1, JSON.stringify(world.events()));
  });
}
