/** Whatever becomes of the daemon, a command's own result reaches the model, and it has run once. */
import test, { type ExecutionContext } from "ava";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RELEASES } from "../../hermes-bed/releases.js";
import type { ToolResult } from "../../hermes-bed/hermes.js";
import { until, World } from "../../hermes-bed/world.js";

const PLUGIN = fileURLToPath(new URL("../../hermes-plugin", import.meta.url));
/** Counts its runs. */
const ONCE = `#!/bin/sh\necho "ran $1" >> log\necho "did $1"\n`;
const TAKES_A_WHILE = `#!/bin/sh
echo "begin $1" >> log
while [ ! -e go ]; do sleep 0.05; done
echo "end $1" >> log
echo "did $1"
`;

const isWarned = (result: ToolResult | undefined): boolean =>
  (result?.headroom?.note ?? "").includes("does not protect this machine now");

/** Something that is no daemon, at the daemon's place. */
const pretender = async (world: World, behave: Parameters<typeof createServer>[1]): Promise<Server> => {
  mkdirSync(world.runtimeDir, { recursive: true, mode: 0o700 });
  const server = createServer(behave);
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(join(world.runtimeDir, "daemon.sock"), resolve));
  server.unref();
  return server;
};

for (const release of RELEASES) {
  const unprotected = async (t: ExecutionContext, world: World, why: RegExp): Promise<void> => {
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "run pytest 1\nrun pytest 2\nrun pytest 3");
    t.deepEqual(
      tools.map(({ output, exit_code }) => [output, exit_code]),
      [
        ["did 1", 0],
        ["did 2", 0],
        ["did 3", 0],
      ],
    );
    t.is(world.read("log"), "ran 1\nran 2\nran 3\n");
    // Said once, and why.
    t.true(isWarned(tools[0]), JSON.stringify(tools[0]));
    t.regex(tools[0]?.headroom?.note ?? "", why);
    t.deepEqual([tools[1]?.headroom, tools[2]?.headroom], [undefined, undefined]);
  };

  test.serial(`${release.name}: no program`, async (t) => {
    const environment = { HEADROOM_CLI: "/nowhere/hermes-headroom.js" };
    const world = await World.make(t, release, { programs: { pytest: ONCE }, environment });
    await unprotected(t, world, /not installed/);
  });

  test.serial(`${release.name}: Node.js is too old`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: ONCE, node: "#!/bin/sh\necho v18.20.0\n" } });
    await unprotected(t, world, /v18\.20\.0; Node\.js 20\.19 or newer/);
  });

  test.serial(`${release.name}: the daemon ends while it starts`, async (t) => {
    const world = await World.make(t, release, {
      programs: { pytest: ONCE, broken: "#!/bin/sh\necho no disk >&2\nexit 1\n" },
    });
    world.environment["HEADROOM_CLI"] = join(world.folder, "bin/broken");
    await unprotected(t, world, /no disk/);
  });

  test.serial(`${release.name}: the daemon hangs`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: ONCE } });
    const server = await pretender(world, () => {});
    await unprotected(t, world, /does not answer/);
    server.close();
  });

  test.serial(`${release.name}: what listens there talks nonsense`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: ONCE } });
    const server = await pretender(
      world,
      (socket) => void socket.on("data", () => socket.write("{]\n")).on("error", () => {}),
    );
    await unprotected(t, world, /not understood/);
    server.close();
  });

  test.serial(`${release.name}: a daemon of another protocol says what to do`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: ONCE } });
    const error = {
      code: -32_001,
      message: "protocol 1 is not 2",
      data: { code: "E_PROTOCOL", fix: "Update the plugin." },
    };
    const server = await pretender(world, (socket) => {
      socket
        .on("data", () => socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, error })}\n`))
        .on("error", () => {});
    });
    await unprotected(t, world, /Update the plugin/);
    server.close();
  });

  test.serial(`${release.name}: killed before, while waiting, while running, before the result`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: TAKES_A_WHILE } });
    const hermes = await world.start();
    const killDaemon = async (): Promise<void> => {
      const pid = world.daemonPid();
      if (pid === undefined) throw new Error("no daemon runs");
      process.kill(pid, "SIGKILL");
      await until("the daemon is gone", () => world.daemonPid() !== pid);
    };
    // Before: the next call finds a dead socket.
    world.addFile("go", "");
    t.is((await hermes.say("one", "run pytest 0")).tools[0]?.headroom?.memory_cap_mb, 150);
    await killDaemon();
    rmSync(join(world.project, "go"));

    const first = hermes.say("one", "run pytest 1");
    await until("the first one runs", () => world.read("log").endsWith("begin 1\n"));
    const second = hermes.say("two", "run pytest 2");
    await until("the second one waits", async () => (await world.status()).waiting.length === 1);
    // While the first one runs, and the second one waits.
    await killDaemon();
    await until("the second one waits again", async () => (await world.status()).waiting.length === 1);
    t.true(world.read("log").endsWith("begin 1\n"), "it has not run without its turn");
    world.addFile("go", "");
    const results = (await Promise.all([first, second])).map(({ tools }) => tools[0]);
    t.deepEqual(
      results.map((result) => [result?.output, result?.headroom?.memory_cap_mb, result?.headroom?.mode]),
      [
        ["did 1", 150, results[1]?.headroom?.mode],
        ["did 2", 150, results[0]?.headroom?.mode],
      ],
    );
    t.deepEqual(world.read("log").trim().split("\n").slice(-4), ["begin 1", "end 1", "begin 2", "end 2"]);
    // Before the result: killed by the command itself.
    world.addProgram("jest", `#!/bin/sh\nkill -9 ${world.daemonPid()}\necho jest >> log\necho did it\n`);
    const { tools } = await hermes.say("one", "run jest");
    t.is(tools[0]?.output, "did it");
    t.is(tools[0]?.headroom?.memory_cap_mb, 150, JSON.stringify(tools[0]));
    await until("no box and no slot is left", async () => {
      const { jobs, waiting } = await world.status();
      return jobs.length === 0 && waiting.length === 0;
    });
  });

  test.serial(`${release.name}: the socket is removed`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: ONCE } });
    const hermes = await world.start();
    t.is((await hermes.say("chat", "run pytest 1")).tools[0]?.headroom?.memory_cap_mb, 150);
    const pid = world.daemonPid();
    rmSync(join(world.runtimeDir, "daemon.sock"));
    const { tools } = await hermes.say("chat", "run pytest 2");
    t.is(tools[0]?.output, "did 2");
    t.is(tools[0]?.headroom?.memory_cap_mb, 150, JSON.stringify(tools[0]));
    t.is(world.daemonPid(), pid, "the same one serves");
  });

  test.serial(`${release.name}: nothing can be written where events and peaks are kept`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: ONCE } });
    mkdirSync(join(world.hermesHome, "plugin-data"), { recursive: true });
    writeFileSync(join(world.hermesHome, "plugin-data/headroom"), "a file where a directory should be");
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "run pytest 1");
    t.is(tools[0]?.output, "did 1");
    t.is(tools[0]?.headroom?.memory_cap_mb, 150, JSON.stringify(tools[0]));
  });

  test.serial(`${release.name}: the plugin is loaded twice`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: ONCE } });
    const copy = join(world.hermesHome, "plugins/second");
    cpSync(PLUGIN, copy, { recursive: true, filter: (path) => !path.includes("__pycache__") });
    const manifest = readFileSync(join(copy, "plugin.yaml"), "utf8").replace(/^name: .*$/m, "name: second");
    writeFileSync(join(copy, "plugin.yaml"), manifest);
    world.configure("plugins:\n  enabled: [headroom, second]\n");
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "run pytest 1");
    t.is(tools[0]?.output, "did 1");
    t.is(tools[0]?.headroom?.memory_cap_mb, 150, JSON.stringify(tools[0]));
    t.is(world.read("log"), "ran 1\n");
    t.is(world.events().filter(({ event }) => event === "started").length, 1);
  });

  test.serial(`${release.name}: Hermes' own timeout ends the job, and nothing of it is left`, async (t) => {
    const world = await World.make(t, release, { programs: { pytest: "#!/bin/sh\n(sleep 600) &\nsleep 600\n" } });
    const hermes = await world.start();
    const { tools } = await hermes.say("chat", "wait:2 pytest 1");
    t.is(tools[0]?.exit_code, 124, JSON.stringify(tools[0]));
    t.is(tools[0]?.headroom?.killed_by, "timeout", JSON.stringify(tools[0]));
    await until("the job is gone", async () => (await world.status()).jobs.length === 0);
    t.false(world.processes().some(({ words }) => words[0] === "sleep"));
  });

  test.serial(`${release.name}: /stop while a job runs ends it, and nothing of it is left`, async (t) => {
    const world = await World.make(t, release, {
      programs: { pytest: "#!/bin/sh\n(sleep 600) &\ntouch here\nsleep 600\n" },
    });
    const hermes = await world.start();
    const turn = hermes.say("chat", "run pytest 1");
    await until("it runs", () => existsSync(join(world.project, "here")));
    hermes.interrupt("chat");
    const { tools } = await turn;
    t.truthy(tools[0], "the model is told something");
    await until("the job is gone", async () => (await world.status()).jobs.length === 0);
    t.false(world.processes().some(({ words }) => words[0] === "sleep"));
  });

  if (release.isNewer) {
    test.serial(`${release.name}: in a plugin host of its own it does nothing, and says so once`, async (t) => {
      const world = await World.make(t, release, { programs: { pytest: ONCE } });
      world.configure("plugins:\n  enabled: [headroom]\n  isolation: host\n");
      const hermes = await world.start();
      const { tools } = await hermes.say("chat", "run pytest 1\nrun pytest 2");
      t.deepEqual(
        tools.map(({ output }) => output),
        ["did 1", "did 2"],
        JSON.stringify([tools, hermes.log]),
      );
      t.is(world.read("log"), "ran 1\nran 2\n");
      const logs = join(world.hermesHome, "logs");
      const texts = readdirSync(logs, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => readFileSync(join(logs, name), "utf8"));
      t.true(texts.some((text) => text.includes("keeps headroom from the commands")));
    });
  }
}
