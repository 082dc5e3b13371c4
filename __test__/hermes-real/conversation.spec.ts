import test from "ava";
import { RELEASES } from "../../hermes-bed/releases.js";
import { until, World } from "../../hermes-bed/world.js";

const LEAKY = `const kept = [];
setInterval(() => { for (let i = 0; i < 20; i += 1) kept.push(Buffer.alloc(1 << 20, 1)); }, 1);
`;
const PACKAGE = JSON.stringify({
  name: "leaky",
  scripts: { test: "node leak.js", "test:unit": "node --test unit.js" },
});
/** Eats more than its box has, without Node's help. */
const HOG = `#!/usr/bin/env python3
kept = []
while True:
    kept.append(b"x" * (8 << 20))
`;

for (const release of RELEASES) {
  test.serial(
    `${release.name}: a leaky test run is ended, the model is told, its lighter command passes`,
    async (t) => {
      const world = await World.make(t, release);
      world.addFile("package.json", PACKAGE);
      world.addFile("leak.js", LEAKY);
      world.addFile("unit.js", `require("node:test")("adds", () => {});\n`);
      const hermes = await world.start();
      const { tools, final } = await hermes.say("chat", "run npm test\nrun npm run test:unit");

      t.is(tools.length, 2);
      const [first, second] = tools;
      t.true(first?.headroom?.oom_killed, JSON.stringify(first));
      t.is(first?.exit_code, 137);
      t.regex(first?.headroom?.note ?? "", /npm test.*150 MB memory cap.*Next:/s);
      t.is(second?.exit_code, 0, JSON.stringify(second));
      t.false(second?.headroom?.oom_killed);
      t.is(final, "done npm test");
      // What the model reads is what counts.
      const read = world.chat.requests.at(-2)?.filter(({ role }) => role === "tool") ?? [];
      const { headroom } = JSON.parse(String(read.at(-1)?.content)) as {
        headroom: { oom_killed: boolean; note: string };
      };
      t.true(headroom.oom_killed);
      t.is(headroom.note, first?.headroom?.note ?? "");
    },
  );

  test.serial(`${release.name}: light commands start no daemon, and their results are untouched`, async (t) => {
    const world = await World.make(t, release);
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "run echo light; pwd\nrun ls /nowhere");
    t.is(tools[0]?.output, `light\n${world.project}`);
    t.true((tools[1]?.exit_code ?? 0) > 0);
    t.deepEqual(
      tools.map(({ headroom }) => headroom),
      [undefined, undefined],
    );
    t.is(world.daemonPid(), undefined);
  });

  test.serial(
    `${release.name}: a job behind the chat that its cap has ended is told in the next turn, once`,
    async (t) => {
      const world = await World.make(t, release, { programs: { pytest: HOG } });
      const hermes = await world.start();
      const { tools } = await hermes.say("chat", "behind pytest -q");
      t.regex(String(tools[0]?.session_id), /^proc_/);
      t.is(tools[0]?.headroom?.memory_cap_mb, 150, JSON.stringify(tools[0]));
      await until("the job has been ended", () => world.events().some(({ event }) => event === "finished"));
      await hermes.say("chat", "hello");
      await hermes.say("chat", "hello again");
      const told = world.chat.requests.map(
        (messages) => JSON.stringify(messages.filter(({ role }) => role === "user")).split("Background job").length - 1,
      );
      // It stays in the history of the chat where it was given, and is not given again.
      t.is(Math.max(...told), 1, JSON.stringify(world.chat.requests.at(-1)));
      t.regex(JSON.stringify(world.chat.requests), /Background job proc_\w+: .*pytest/);
    },
  );

  test.serial(`${release.name}: code of execute_code is boxed with the same cap`, async (t) => {
    const world = await World.make(t, release);
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "code kept = [bytearray(8 << 20) for _ in range(100)]");
    t.true(tools[0]?.headroom?.oom_killed, JSON.stringify(tools[0]));
    t.is(tools[0]?.headroom?.memory_cap_mb, 150);
    t.regex(tools[0]?.headroom?.note ?? "", /150 MB/);
  });

  test.serial(`${release.name}: the command that is approved is the lighter one`, async (t) => {
    const world = await World.make(t, release, {
      programs: { jest: `#!/bin/sh\necho "jest $*"\n` },
    });
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "run jest --maxWorkers=16");
    t.regex(tools[0]?.output ?? "", /^jest (--runInBand|--maxWorkers=1)/);
    t.true((tools[0]?.headroom?.lightened?.length ?? 0) > 0, JSON.stringify(tools[0]));
  });
}
