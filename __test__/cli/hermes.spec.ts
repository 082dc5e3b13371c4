import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { render } from "../../src/cli/hermes.js";
import type { HermesResult } from "../../src/hermes/steps.js";
import { CLI, runCli } from "../support/run-cli.js";

const homeOf = (t: ExecutionContext): string => {
  const home = mkdtempSync(join(tmpdir(), "headroom-hermes-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
};

test("the plugin is installed, brought up to date and taken away by the command line", async (t) => {
  const home = homeOf(t);
  writeFileSync(join(home, "config.yaml"), "# mine\napi_key: sk-secret\n", { mode: 0o600 });
  const first = await runCli(["hermes", "install", "--home", home]);
  t.is(first.code, 0, first.stderr);
  t.regex(first.stdout, /^written {3}plugins\/headroom\/first_filter.py$/m);
  t.regex(first.stdout, /^enabled {3}config.yaml$/m);
  t.regex(first.stdout, /Next: hermes gateway restart\n$/);
  t.notRegex(first.stdout + first.stderr, /sk-secret/);
  const launcher = JSON.parse(readFileSync(join(home, "plugins", "headroom", "launcher.json"), "utf8")) as object;
  t.deepEqual(launcher, { node: process.execPath, cli: CLI });
  const second = await runCli(["hermes", "install", "--home", home]);
  t.deepEqual([second.code, second.stdout], [0, "Already installed, up to date.\n"]);
  const gone = await runCli(["hermes", "uninstall", "--json"], { env: { HERMES_HOME: home } });
  t.is(gone.code, 0, gone.stderr);
  t.is((JSON.parse(gone.stdout) as HermesResult).action, "uninstall");
  t.false(existsSync(join(home, "plugins", "headroom")));
  t.is(readFileSync(join(home, "config.yaml"), "utf8"), "# mine\napi_key: sk-secret\n");
});

test("what could not be done is an exit code of 1, with what to do", async (t) => {
  const home = homeOf(t);
  writeFileSync(join(home, "config.yaml"), "plugins: [\n");
  const { code, stdout } = await runCli(["hermes", "install", "--home", home]);
  t.is(code, 1);
  t.regex(stdout, /^refused {3}config.yaml\n {10}it is no valid YAML \(line \d+: [A-Z_]+\); add headroom to the list/m);
});

test("without Hermes there is one message, and nothing is made", async (t) => {
  const home = join(homeOf(t), "none");
  for (const words of [["install"], ["uninstall"]]) {
    const { code, stderr } = await runCli(["hermes", ...words, "--home", home]);
    t.is(code, 1);
    t.regex(stderr, /there is no .*none: is Hermes Agent installed\? \[E_HERMES_HOME\]\n {2}If Hermes is installed/);
  }
  t.false(existsSync(home));
});

test("hermes alone shows what there is, and a word that it does not know is named", async (t) => {
  const alone = await runCli(["hermes"]);
  t.is(alone.code, 2);
  t.regex(alone.stdout + alone.stderr, /uninstall/);
  const unknown = await runCli(["hermes", "remove"]);
  t.is(unknown.code, 2);
  t.regex(unknown.stderr, /unknown command 'remove'/);
});

test("details are broken between words, below what they belong to", (t) => {
  const detail = "it was changed since it was installed: remove it, or move it away, and run this again";
  const steps: HermesResult["steps"] = [{ done: "kept", subject: "/h/plugins/headroom/a.py", detail }];
  const result: HermesResult = {
    action: "install",
    home: "/h",
    directory: "/h/plugins/headroom",
    steps,
    ok: false,
    next: "Next.",
  };
  const lines = render(result, (_style, text) => text, 60);
  t.is(lines[1], "kept      plugins/headroom/a.py");
  t.true(lines.length > 4);
  t.true(lines.every((line) => line.length <= 60));
});
