import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import test from "ava";
import type { StatusSnapshot } from "../../src/status/snapshot.js";
import { CLI, finishCli, ROOT, startCli } from "../support/run-cli.js";

const hasScript = spawnSync("script", ["--version"]).status === 0;
const onTerminal = hasScript ? test : test.skip;

const TAKEN = "\u001B[?1049h";
const RETURNED = "\u001B[?7h\u001B[?25h\u001B[?1049l";

/** Starts the view on a terminal of its own, and waits for its first picture. `preload` is run before it. */
const startView = async ({ env = {}, preload }: { env?: NodeJS.ProcessEnv; preload?: string } = {}): Promise<{
  script: ChildProcess;
  text: () => string;
  closed: Promise<unknown>;
}> => {
  const imported = preload === undefined ? "" : `--import 'data:text/javascript,${preload}' `;
  const command = `stty rows 24 cols 80; echo pid=$$; exec '${process.execPath}' ${imported}'${CLI}' status --watch`;
  const script = spawn("script", ["-qec", command, "/dev/null"], {
    cwd: ROOT,
    env: { ...process.env, TERM: "xterm", LC_ALL: "C.UTF-8", SHELL: "/bin/sh", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let text = "";
  const closed = once(script, "close");
  const drawn = new Promise<void>((resolve) => {
    script.stdout.on("data", (chunk) => {
      text += String(chunk);
      if (/quit|cannot be drawn/.test(text)) resolve();
    });
  });
  await Promise.race([drawn, closed]);
  return { script, text: () => text, closed };
};

const pidIn = (text: string): number => Number(/pid=(\d+)/.exec(text)?.[1]);

onTerminal("q ends the view, and the terminal is given back", async (t) => {
  const { script, text, closed } = await startView();
  t.true(text().includes(TAKEN));
  t.regex(text(), /memory/);
  script.stdin?.write("q");
  t.deepEqual(await closed, [0, null]);
  t.true(text().endsWith(RETURNED), JSON.stringify(text().slice(-200)));
});

for (const [name, end] of [
  ["Ctrl-C", (script: ChildProcess): unknown => script.stdin?.write("\u0003")],
  ["SIGTERM", (_script: ChildProcess, pid: number): unknown => process.kill(pid, "SIGTERM")],
] as const) {
  onTerminal(`${name} ends the view as by a signal, and the terminal is given back`, async (t) => {
    const { script, text, closed } = await startView();
    end(script, pidIn(text()));
    t.deepEqual(await closed, [name === "Ctrl-C" ? 130 : 143, null]);
    t.true(text().includes(RETURNED));
  });
}

onTerminal("an error that nobody expected is told on the terminal as it was before", async (t) => {
  const { text, closed } = await startView({ preload: "setTimeout(()=>{throw new Error(`boom`)},1500)" });
  await closed;
  t.true(text().lastIndexOf("Error: boom") > text().lastIndexOf(RETURNED), text().slice(-300));
  t.true(text().includes(RETURNED));
});

onTerminal("keys pause the view and sort the jobs", async (t) => {
  const { script, text, closed } = await startView();
  script.stdin?.write("sp\u001B[A");
  while (!text().includes("PAUSED")) await once(script.stdout!, "data");
  t.regex(text(), /jobs by age/);
  script.stdin?.write("q");
  await closed;
  t.true(text().includes(RETURNED));
});

onTerminal("without colour no style is written", async (t) => {
  const { script, text, closed } = await startView({ env: { NO_COLOR: "1" } });
  script.stdin?.write("q");
  await closed;
  // oxlint-disable-next-line no-control-regex -- styles are what is looked for
  t.notRegex(text(), /\u001B\[[\d;]*m/);
});

onTerminal("a dumb terminal gets text, and is told why", async (t) => {
  const { text, closed } = await startView({ env: { TERM: "dumb" } });
  process.kill(pidIn(text()), "SIGTERM");
  await closed;
  t.regex(text(), /TERM=dumb cannot be drawn on/);
  t.false(text().includes("\u001B"));
});

test("without a terminal the text is printed again and again", async (t) => {
  const child = startCli(["status", "--watch"]);
  let text = "";
  child.stdout?.on("data", (chunk) => (text += String(chunk)));
  while (text.split("\n-- ").length < 2) await once(child.stdout!, "data");
  child.kill("SIGTERM");
  const { signal } = await finishCli(child);
  t.is(signal, "SIGTERM");
  t.regex(text, /^-- \d\d:\d\d:\d\d\nmemory {5}/);
});

test("with --json it is an object a line, until nobody reads", async (t) => {
  const child = startCli(["status", "--watch", "--json"]);
  const [chunk] = (await once(child.stdout!, "data")) as [Buffer];
  const snapshot = JSON.parse(chunk.toString().split("\n")[0] ?? "") as StatusSnapshot;
  t.true(snapshot.limits.reserve_mb >= 256);
  t.deepEqual(snapshot.waiting, []);
  child.stdout?.destroy();
  const [code] = (await once(child, "exit")) as [number];
  t.is(code, 0);
});
