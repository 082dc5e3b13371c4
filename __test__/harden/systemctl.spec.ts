import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import {
  isServiceName,
  isSliceName,
  lingers,
  listUnitFiles,
  showUnit,
  systemTools,
  userUnitDirectory,
  type RunTool,
} from "../../src/harden/systemctl.js";

const says =
  (stdout: string, ok = true): RunTool =>
  () =>
    Promise.resolve({ ok, stdout, problem: "" });

test("properties are read as they are shown, those without a value too", async (t) => {
  const shown = await showUnit(says("OOMPolicy=stop\nUser=\nDropInPaths=/a=b /c\nnoise\n"), "user", "a.service", []);
  t.deepEqual(shown, { OOMPolicy: "stop", User: "", DropInPaths: "/a=b /c" });
  t.is(await showUnit(says("", false), "user", "a.service", []), undefined);
});

test("units are listed without templates, headings or what is no name of one", async (t) => {
  const text = "hermes-gateway.service enabled enabled\nhermes-gateway@.service static -\n\n0 unit files listed.\n";
  t.deepEqual(await listUnitFiles(says(text), "user", "x"), ["hermes-gateway.service"]);
  t.deepEqual(await listUnitFiles(says("", false), "system", "x"), []);
});

test("the place of drop-ins is the manager's own, never a runtime directory", async (t) => {
  const path = (text: string): Promise<string | undefined> => userUnitDirectory(says(`UnitPath=${text}\n`));
  t.is(await path("/h/.config/systemd/user.control /run/user/1/systemd/user.control /etc"), "/h/.config/systemd/user");
  t.is(await path("/etc/systemd/user"), undefined);
  t.is(await path("relative/systemd/user.control"), undefined);
  t.is(await userUnitDirectory(says("", false)), undefined);
});

test("whether a user lingers is yes, no, or not known", async (t) => {
  t.is(await lingers(says("Linger=yes\n"), "a"), true);
  t.is(await lingers(says("Linger=no\n"), "a"), false);
  t.is(await lingers(says("", false), "a"), undefined);
  const problem = "Failed to look up user a: User ID 1000 is not logged in or lingering";
  t.is(await lingers(() => Promise.resolve({ ok: false, stdout: "", problem }), "a"), false);
});

test("names that could be an option or leave their directory are no units", (t) => {
  for (const name of ["hermes-gateway.service", "a@b.service", "a\\x2db.service", "user@1000.service"]) {
    t.true(isServiceName(name), name);
  }
  for (const name of [
    "-x.service",
    "../a.service",
    "a/b.service",
    "a b.service",
    ".service",
    "a.scope",
    "a.service\n",
  ]) {
    t.false(isServiceName(name), name);
  }
  t.true(isSliceName("app-hermes.slice"));
  t.false(isSliceName("../app.slice"));
});

/** A program of that name on a PATH of its own. */
const fakeTool = (t: ExecutionContext, script: string): RunTool => {
  const directory = mkdtempSync(join(tmpdir(), "headroom-systemctl-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "systemctl");
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return systemTools({ PATH: `${directory}:/usr/bin:/bin`, SECRET_TOKEN: "abc" }, 1234);
};

test("tools get the words as they are, and of the environment only what they need", async (t) => {
  const run = fakeTool(t, `printf '%s\\n' "$@"; env`);
  const { ok, stdout } = await run("systemctl", ["--user", "show", "--", "$(id) ;x"]);
  t.true(ok);
  t.deepEqual(stdout.split("\n").slice(0, 6), ["--no-pager", "--no-ask-password", "--user", "show", "--", "$(id) ;x"]);
  t.regex(stdout, /^XDG_RUNTIME_DIR=\/run\/user\/1234$/m);
  t.notRegex(stdout, /SECRET_TOKEN/);
});

test("a tool that fails, is missing or says too much is a result, not an exception", async (t) => {
  const failing = await fakeTool(t, "echo 'Failed to connect to bus' >&2; echo more >&2; exit 1")("systemctl", []);
  t.deepEqual([failing.ok, failing.problem], [false, "Failed to connect to bus"]);
  t.false((await fakeTool(t, "exec head -c 3000000 /dev/zero")("systemctl", [])).ok);
  const missing = await systemTools({ PATH: "/nonexistent" }, 0)("loginctl", []);
  t.false(missing.ok);
  t.regex(missing.problem, /ENOENT/);
});
