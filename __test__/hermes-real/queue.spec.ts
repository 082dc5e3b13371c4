import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { RELEASES } from "../../hermes-bed/releases.js";
import { until, World } from "../../hermes-bed/world.js";

/** Says when it begins and ends, and ends when it may. */
const TAKES_A_WHILE = `#!/bin/sh
echo "begin $1" >> log
while [ ! -e go ]; do sleep 0.05; done
sleep 0.2
echo "end $1" >> log
echo "did $1"
`;
const CHATS = 10;

for (const release of RELEASES) {
  test.serial(`${release.name}: ten chats, one slot: one at a time, in their order, none lost`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: TAKES_A_WHILE } });
    const hermes = await world.start();
    const turns = [];
    for (let index = 0; index < CHATS; index += 1) {
      turns.push(hermes.say(`chat-${index}`, `run pytest ${index}`));
      await until(`chat ${index} has its place`, async () => {
        const { jobs, waiting } = await world.status();
        return jobs.length === 1 && waiting.length === index;
      });
    }
    world.addFile("go", "");
    const results = (await Promise.all(turns)).map(({ tools }) => tools[0]);
    t.deepEqual(
      results.map((result) => result?.output),
      Array.from({ length: CHATS }, (_, index) => `did ${index}`),
    );
    t.deepEqual(
      world.read("log").trim().split("\n"),
      Array.from({ length: CHATS }, (_, index) => [`begin ${index}`, `end ${index}`]).flat(),
    );
    t.true(
      results.every((result) => result?.headroom?.memory_cap_mb === 150),
      JSON.stringify(results),
    );
    t.true((results.at(-1)?.headroom?.queued_s ?? 0) > 0);
    t.deepEqual((await world.status()).waiting, []);
  });

  test.serial(`${release.name}: whoever is called off while waiting leaves, and runs nothing`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: TAKES_A_WHILE } });
    const hermes = await world.start();
    const first = hermes.say("one", "run pytest first");
    await until("the first one runs", () => world.read("log") === "begin first\n");
    const second = hermes.say("two", "run pytest second");
    await until("the second one waits", async () => (await world.status()).waiting.length === 1);
    hermes.interrupt("two");
    const { tools } = await second;
    t.regex(JSON.stringify(tools), /called off|interrupt|cancel/i);
    await until("nobody waits", async () => (await world.status()).waiting.length === 0);
    world.addFile("go", "");
    t.is((await first).tools[0]?.output, "did first");
    await sleep(1000);
    t.is(world.read("log"), "begin first\nend first\n");
    t.deepEqual((await world.status()).jobs, []);
  });

  test.serial(`${release.name}: a call whose time is over while it waits is refused, and runs never`, async (t) => {
    const world = await World.make(t, release, {
      programs: { pytest: TAKES_A_WHILE },
      environment: { HERMES_CONCURRENT_TOOL_TIMEOUT_S: "12" },
    });
    // Whoever holds the slot is another agent, so that its own call does not run out of time.
    const other = world.cli("run", "--", "pytest", "first");
    await until("the first one runs", () => world.read("log") === "begin first\n");
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "run pytest second");
    t.regex(JSON.stringify(tools[0]), /Nothing was run|was refused|timed out/i);
    t.regex(JSON.stringify(tools[0]), /pytest first|time/);
    world.addFile("go", "");
    await other;
    await sleep(1500);
    t.is(world.read("log"), "begin first\nend first\n");
    const { jobs, waiting } = await world.status();
    t.deepEqual([jobs, waiting], [[], []]);
  });

  test.serial(`${release.name}: who has waited too long is refused, and told who holds the turn`, async (t) => {
    const world = await World.make(t, release, {
      programs: { pytest: TAKES_A_WHILE },
      environment: { HEADROOM_QUEUE_TIMEOUT_S: "2" },
    });
    const hermes = await world.start();
    const first = hermes.say("one", "run pytest first");
    await until("the first one runs", () => world.read("log") === "begin first\n");
    const { tools } = await hermes.say("two", "run pytest second");
    t.regex(tools[0]?.error ?? "", /pytest first/);
    t.is(tools[0]?.status, "blocked");
    world.addFile("go", "");
    t.is((await first).tools[0]?.exit_code, 0);
    t.is(world.read("log"), "begin first\nend first\n");
  });
}
