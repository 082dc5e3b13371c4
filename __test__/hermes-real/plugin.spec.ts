/** The plugin as people install it, look at it and ask it. */
import test from "ava";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RELEASES } from "../../hermes-bed/releases.js";
import { World } from "../../hermes-bed/world.js";

const PLUGIN = fileURLToPath(new URL("../../hermes-plugin", import.meta.url));

for (const release of RELEASES) {
  test.serial(`${release.name}: hermes-headroom hermes install, and Hermes has it`, async (t) => {
    const world = await World.make(t, release, {
      isBare: true,
      programs: { pytest: "#!/bin/sh\necho did it\n" },
      environment: { HEADROOM_CLI: "" },
    });
    const told = await world.cli("hermes", "install");
    t.is(told.code, 0, told.stderr);
    t.regex(readFileSync(join(world.hermesHome, "config.yaml"), "utf8"), /headroom/);
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "run pytest -q");
    t.is(tools[0]?.output, "did it");
    t.is(tools[0]?.headroom?.memory_cap_mb, 150, JSON.stringify(tools[0]));
    const again = await world.cli("hermes", "install");
    t.is(again.code, 0, again.stderr);
    t.is((await world.cli("hermes", "uninstall")).code, 0);
    const without = await world.start();
    t.is((await without.say("chat", "run pytest -q")).tools[0]?.headroom, undefined);
  });

  test.serial(`${release.name}: hermes headroom status, events, explain, selftest`, async (t) => {
    const world = await World.make(t, release);
    const status = await world.hermes("headroom", "status");
    t.is(status.code, 0, status.stderr);
    t.regex(status.stdout, /available/);
    const explained = await world.hermes("headroom", "explain", "--", "npm", "test");
    t.is(explained.code, 0, explained.stderr);
    t.regex(explained.stdout, /npm test/);
    t.is((await world.hermes("headroom", "events")).code, 0);
    const selftest = await world.hermes("headroom", "selftest");
    t.is(selftest.code, 0, selftest.stdout + selftest.stderr);
    t.regex(selftest.stdout, /PASS/);
  });

  test.serial(`${release.name}: the model may ask headroom_status`, async (t) => {
    const world = await World.make(t, release);
    const hermes = await world.start();
    const answer = (await hermes.call("chat", { command: "npm test && ls" }, "headroom_status")) as unknown as {
      status: { memory: { total_mb: number } };
      explain: { heavy: boolean; kind: string };
    };
    t.true(answer.status.memory.total_mb > 0, JSON.stringify(answer));
    t.true(answer.explain.heavy);
    t.is(answer.explain.kind, "test");
  });

  if (release.isNewer) {
    for (const words of [["validate"], ["doctor", "--ci"]]) {
      test.serial(`${release.name}: hermes plugins ${words.join(" ")} finds nothing wrong`, async (t) => {
        const world = await World.make(t, release);
        const copy = join(world.folder, "copy");
        cpSync(PLUGIN, copy, { recursive: true, filter: (path) => !path.includes("__pycache__") });
        const [word = "", ...more] = words;
        const found = await world.hermes("plugins", word, copy, ...more);
        t.log(found.stdout.trim());
        t.is(found.code, 0, found.stdout + found.stderr);
      });
    }
  } else {
    test.serial(`${release.name}: hermes plugins install takes the directory of a repository`, async (t) => {
      const world = await World.make(t, release, {
        isBare: true,
        programs: { pytest: "#!/bin/sh\necho did it\n" },
      });
      const repository = join(world.folder, "repository");
      mkdirSync(repository);
      cpSync(PLUGIN, join(repository, "hermes-plugin"), {
        recursive: true,
        filter: (path) => !path.includes("__pycache__"),
      });
      writeFileSync(join(repository, "README.md"), "the whole project");
      const git = (...words: string[]): void =>
        void execFileSync("git", ["-C", repository, "-c", "user.name=t", "-c", "user.email=t@t", ...words]);
      git("init", "--quiet");
      git("add", "--all");
      git("commit", "--quiet", "--message=all");
      const told = await world.hermes("plugins", "install", `file://${repository}#hermes-plugin`, "--enable");
      t.is(told.code, 0, told.stdout + told.stderr);
      const hermes = await world.start();
      const { tools } = await hermes.say("chat", "run pytest -q");
      t.is(tools[0]?.headroom?.memory_cap_mb, 150, JSON.stringify(tools[0]));
    });
  }
}
