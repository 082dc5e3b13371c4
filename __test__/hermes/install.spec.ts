import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { HeadroomError } from "../../src/errors.js";
import { PLUGINS_BLOCK } from "../../src/hermes/config.js";
import { installPlugin } from "../../src/hermes/install.js";
import { PACKAGE_PLUGIN } from "../../src/hermes/plugin-files.js";
import type { HermesResult } from "../../src/hermes/steps.js";
import { uninstallPlugin } from "../../src/hermes/uninstall.js";

interface Place {
  home: string;
  plugin: string;
  target: string;
  install: () => HermesResult;
}

const put = (path: string, text: string): void => {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
};

/** A home of Hermes, and a small plugin with a folder and what Python leaves behind. */
const place = (t: ExecutionContext): Place => {
  const root = mkdtempSync(join(tmpdir(), "headroom-install-"));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const home = join(root, "home");
  const plugin = join(root, "plugin");
  mkdirSync(home);
  put(join(plugin, "plugin.yaml"), "name: headroom\n");
  put(join(plugin, "__init__.py"), "def register(ctx):\n    pass\n");
  put(join(plugin, "parts", "client.py"), "A = 1\n");
  put(join(plugin, "__pycache__", "__init__.cpython-311.pyc"), "compiled");
  const install = (): HermesResult =>
    installPlugin({ home, plugin, version: "1.0.0", node: "/usr/bin/node", cli: "/opt/headroom/bin/cli.js" });
  return { home, plugin, target: join(home, "plugins", "headroom"), install };
};

/** Every file below, with its text. */
const filesOf = (directory: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
      .map((path) => [path.slice(directory.length + 1), readFileSync(path, "utf8")]),
  );

const doneWith = ({ steps }: HermesResult, end: string): string | undefined =>
  steps.find(({ subject }) => subject.endsWith(end))?.done;

test("installing copies the plugin, writes the launcher and enables it", (t) => {
  const { home, target, install } = place(t);
  const result = install();
  t.true(result.ok);
  t.is(result.next, "Next: hermes gateway restart");
  t.deepEqual(Object.keys(filesOf(target)), [
    ".installed.json",
    "__init__.py",
    "launcher.json",
    "parts/client.py",
    "plugin.yaml",
  ]);
  t.deepEqual(JSON.parse(filesOf(target)["launcher.json"] ?? ""), {
    node: "/usr/bin/node",
    cli: "/opt/headroom/bin/cli.js",
  });
  t.is(filesOf(home)["config.yaml"], PLUGINS_BLOCK);
  t.is(lstatSync(join(home, "config.yaml")).mode & 0o777, 0o600);
});

test("a launcher that names npx's cache is told, for that goes away", (t) => {
  const { home, plugin } = place(t);
  const cli = "/home/me/.npm/_npx/1a2b/node_modules/hermes-headroom/bin/hermes-headroom.js";
  const { ok, steps } = installPlugin({ home, plugin, version: "1", node: "/usr/bin/node", cli });
  t.true(ok);
  t.regex(steps.find(({ subject }) => subject.endsWith("launcher.json"))?.detail ?? "", /npm install --global/);
});

test("the plugin of this package can be installed", (t) => {
  const { home, target } = place(t);
  t.true(installPlugin({ home, plugin: PACKAGE_PLUGIN, version: "1", node: "/n", cli: "/c" }).ok);
  t.true(existsSync(join(target, "first_filter.py")));
  t.false(existsSync(join(target, "__pycache__")));
});

test("installing a second time changes nothing", (t) => {
  const { home, install } = place(t);
  install();
  const before = filesOf(home);
  const numbers = readdirSync(join(home, "plugins", "headroom")).map(
    (name) => lstatSync(join(home, "plugins", "headroom", name)).ino,
  );
  const result = install();
  t.true(result.ok);
  t.is(result.next, "Already installed, up to date.");
  t.true(result.steps.every(({ done }) => done === "same"));
  t.deepEqual(filesOf(home), before);
  t.deepEqual(
    readdirSync(join(home, "plugins", "headroom")).map(
      (name) => lstatSync(join(home, "plugins", "headroom", name)).ino,
    ),
    numbers,
    "no file was written again",
  );
});

test("a newer version replaces what is ours and takes away what is no longer part of it", (t) => {
  const { plugin, target, install } = place(t);
  install();
  put(join(plugin, "__init__.py"), "# newer\n");
  put(join(plugin, "new.py"), "B = 2\n");
  rmSync(join(plugin, "parts"), { recursive: true });
  const result = install();
  t.true(result.ok);
  t.is(doneWith(result, "__init__.py"), "updated");
  t.is(doneWith(result, "new.py"), "written");
  t.is(doneWith(result, "parts/client.py"), "removed");
  t.is(filesOf(target)["__init__.py"], "# newer\n");
  t.false(existsSync(join(target, "parts", "client.py")));
});

test("a file that somebody edited is kept, named, and kept again", (t) => {
  const { home, plugin, target, install } = place(t);
  install();
  put(join(target, "__init__.py"), "# mine\n");
  put(join(plugin, "__init__.py"), "# newer\n");
  put(join(plugin, "parts", "client.py"), "A = 2\n");
  for (const result of [install(), install()]) {
    t.false(result.ok);
    t.is(doneWith(result, "__init__.py"), "kept");
    t.regex(result.steps.find(({ done }) => done === "kept")?.detail ?? "", /changed since it was installed/);
  }
  t.is(filesOf(target)["__init__.py"], "# mine\n");
  t.is(filesOf(target)["parts/client.py"], "A = 2\n", "the others are brought up to date");
  const gone = uninstallPlugin(home);
  t.false(gone.ok);
  t.is(filesOf(target)["__init__.py"], "# mine\n");
});

test("a file that was there before and is not ours is kept, and the plugin is not enabled", (t) => {
  const { home, target, install } = place(t);
  put(join(target, "plugin.yaml"), "name: other\n");
  const result = install();
  t.false(result.ok);
  t.is(doneWith(result, "plugin.yaml"), "kept");
  t.is(filesOf(target)["plugin.yaml"], "name: other\n");
  t.false(existsSync(join(home, "config.yaml")));
});

test("uninstalling gives everything back as it was", (t) => {
  const { home, install } = place(t);
  put(join(home, "config.yaml"), "# mine\nmodel: x   # good\nplugins:\n  enabled: [one]\n");
  put(join(home, "plugins", "one", "plugin.yaml"), "name: one\n");
  const before = filesOf(home);
  install();
  put(join(home, "plugins", "headroom", "__pycache__", "__init__.cpython-313.pyc"), "compiled");
  const result = uninstallPlugin(home);
  t.true(result.ok);
  t.deepEqual(filesOf(home), before);
  t.false(existsSync(join(home, "plugins", "headroom")));
  t.is(uninstallPlugin(home).next, "It was not installed.");
});

test("a configuration that only we made goes with us", (t) => {
  const { home, install } = place(t);
  install();
  install();
  uninstallPlugin(home);
  t.false(existsSync(join(home, "config.yaml")));
});

test("data and foreign files stay, and are named", (t) => {
  const { home, target, install } = place(t);
  install();
  put(join(target, "notes.txt"), "mine");
  put(join(home, "plugin-data", "headroom", "events.jsonl"), "{}\n");
  const result = uninstallPlugin(home);
  t.true(result.ok);
  t.is(doneWith(result, "plugin-data/headroom"), "left");
  t.is(doneWith(result, "plugins/headroom"), "left");
  t.deepEqual(Object.keys(filesOf(target)), ["notes.txt"]);
  t.true(existsSync(join(home, "plugin-data", "headroom", "events.jsonl")));
});

test("the configuration keeps its mode, and no copy of it lies about", (t) => {
  const { home, install } = place(t);
  const config = join(home, "config.yaml");
  put(config, "api_key: sk-secret\n");
  for (const mode of [0o600, 0o640]) {
    chmodSync(config, mode);
    install();
    t.is(lstatSync(config).mode & 0o777, mode);
    uninstallPlugin(home);
    t.is(lstatSync(config).mode & 0o777, mode);
  }
  t.deepEqual(Object.keys(filesOf(home)), ["config.yaml"]);
});

test("a configuration that does not parse is left alone, with what to do, and not quoted", (t) => {
  const { home, install } = place(t);
  put(join(home, "config.yaml"), 'api_key: "sk-secret\n');
  const result = install();
  t.false(result.ok);
  t.is(doneWith(result, "config.yaml"), "refused");
  t.regex(JSON.stringify(result), /add headroom to the list plugins.enabled/);
  t.notRegex(JSON.stringify(result), /sk-secret/);
  t.is(filesOf(home)["config.yaml"], 'api_key: "sk-secret\n');
});

test("a plugin that was disabled stays so; the files are in place", (t) => {
  const { home, target, install } = place(t);
  put(join(home, "config.yaml"), "plugins:\n  disabled: [headroom]\n");
  const result = install();
  t.false(result.ok);
  t.regex(JSON.stringify(result.steps), /plugins\.disabled has headroom/);
  t.is(filesOf(home)["config.yaml"], "plugins:\n  disabled: [headroom]\n");
  t.true(existsSync(join(target, "plugin.yaml")));
});

test("a link is followed within the home, and never out of it", (t) => {
  const { home, install } = place(t);
  const outside = join(home, "..", "outside.yaml");
  writeFileSync(outside, "model: x\n");
  symlinkSync(outside, join(home, "config.yaml"));
  const refused = install();
  t.false(refused.ok);
  t.regex(JSON.stringify(refused.steps), /outside of Hermes' home/);
  t.is(readFileSync(outside, "utf8"), "model: x\n");
  rmSync(join(home, "config.yaml"));
  put(join(home, "shared.yaml"), "model: x\n");
  symlinkSync("shared.yaml", join(home, "config.yaml"));
  t.true(install().ok);
  t.is(readFileSync(join(home, "shared.yaml"), "utf8"), `model: x\n${PLUGINS_BLOCK}`);
  t.true(lstatSync(join(home, "config.yaml")).isSymbolicLink());
});

test("links in the place of the plugin or of its files are refused", (t) => {
  const { home, target, install } = place(t);
  const elsewhere = join(home, "..", "elsewhere");
  mkdirSync(elsewhere);
  mkdirSync(join(home, "plugins"));
  symlinkSync(elsewhere, target);
  const result = install();
  t.false(result.ok);
  t.regex(JSON.stringify(result.steps), /is a symbolic link: remove it/);
  t.deepEqual(readdirSync(elsewhere), []);
  t.false(uninstallPlugin(home).ok);
  rmSync(target);
  mkdirSync(target);
  symlinkSync(join(elsewhere, "written"), join(target, "plugin.yaml"));
  t.is(doneWith(install(), "plugin.yaml"), "refused");
  t.deepEqual(readdirSync(elsewhere), []);
});

test("a list of files that leads elsewhere is not believed", (t) => {
  const { home, target, install } = place(t);
  install();
  const victim = join(home, "victim");
  put(victim, "x");
  for (const file of ["../../victim", victim, "a//b", "./x", ""]) {
    put(join(target, ".installed.json"), JSON.stringify({ version: "1", files: { [file]: "0" } }));
    t.false(uninstallPlugin(home).ok);
    t.regex(JSON.stringify(install().steps), /is damaged/);
  }
  t.true(existsSync(victim));
});

test("without a home there is nothing to install into, and none is made", (t) => {
  const { home } = place(t);
  const missing = join(home, "nothing");
  for (const act of [
    () => uninstallPlugin(missing),
    () => installPlugin({ home: missing, plugin: PACKAGE_PLUGIN, version: "1", node: "/n", cli: "/c" }),
  ]) {
    const error = t.throws(act, { instanceOf: HeadroomError });
    t.is(error?.code, "E_HERMES_HOME");
    t.regex(error?.message ?? "", /is Hermes Agent installed/);
  }
  t.false(existsSync(missing));
});
