import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { applyPlan, type Applied } from "../../src/harden/apply.js";
import { readDropIn } from "../../src/harden/drop-in.js";
import type { Facts } from "../../src/harden/facts.js";
import { planHardening } from "../../src/harden/policy.js";
import type { RunTool } from "../../src/harden/systemctl.js";
import { undoHardening } from "../../src/harden/undo.js";
import { BARE, factsOf, userGateway } from "./facts.js";

const UNIT = "hermes-gateway.service";

const answer = (stdout: string) => Promise.resolve({ ok: true, stdout, problem: "" });

/** A manager that reads its drop-ins when it is reloaded, as systemd does. */
class FakeManager {
  readonly directory: string;
  readonly calls: string[] = [];
  readonly refused: string[] = [];
  #values: Record<string, Record<string, string>> = {};

  constructor(t: ExecutionContext) {
    const root = mkdtempSync(join(tmpdir(), "headroom-harden-"));
    t.teardown(() => rmSync(root, { recursive: true, force: true }));
    this.directory = join(root, ".config", "systemd", "user");
  }

  path(unit = UNIT): string {
    return join(this.directory, `${unit}.d`, "50-headroom.conf");
  }

  facts(changes: Partial<Facts> = {}): Facts {
    return factsOf({
      uid: process.getuid?.() ?? 0,
      unit_directories: { system: null, user: this.directory },
      gateways: [userGateway({ properties: { ...BARE, ...this.#values[UNIT] } })],
      above: { "user app.slice": { MemoryMin: "0", MemoryLow: "0", ...this.#values["app.slice"] } },
      ...changes,
    });
  }

  readonly run: RunTool = (program, words) => {
    this.calls.push([program, ...words].join(" "));
    if (this.refused.some((word) => words.includes(word))) {
      return Promise.resolve({ ok: false, stdout: "", problem: "Access denied" });
    }
    if (words.includes("daemon-reload")) {
      this.#values = {};
      for (const unit of [UNIT, "app.slice"]) {
        if (existsSync(this.path(unit)))
          this.#values[unit] = shown(readDropIn(readFileSync(this.path(unit), "utf8")).values);
      }
    }
    if (!words.includes("show")) return answer("");
    const values = { ...BARE, ...this.#values[words.at(-1) ?? ""], DropInPaths: this.path() };
    return answer(
      Object.entries(values)
        .map(([key, value]) => `${key}=${value}`)
        .join("\n"),
    );
  };

  write(changes: Partial<Facts> = {}): Promise<Applied> {
    const facts = this.facts(changes);
    return applyPlan(planHardening(facts), facts, this.run);
  }

  undo(): Promise<Applied> {
    return undoHardening(this.facts(), this.run);
  }
}

/** `160M` is shown as bytes. */
const shown = (values: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      value.replace(/^(\d+)M$/, (_all, mb) => String(Number(mb) * 1_048_576)),
    ]),
  );

const done = ({ changes }: Applied): string[] => changes.map((each) => each.done);

test("writing makes a drop-in for the unit and its slice, and has systemd read them", async (t) => {
  const manager = new FakeManager(t);
  const applied = await manager.write();
  t.deepEqual(done(applied), ["written", "written", "reloaded"]);
  t.deepEqual(applied.restart, [{ unit: UNIT, manager: "user", keys: ["OOMScoreAdjust"] }]);
  t.is(lstatSync(manager.path()).mode & 0o777, 0o644);
  t.is(readDropIn(readFileSync(manager.path("app.slice"), "utf8")).values["MemoryMin"], "160M");
  t.is(manager.calls.filter((call) => call.includes("daemon-reload")).length, 1);
  t.false(manager.calls.some((call) => / (start|restart|stop) /.test(call)));
});

test("writing a second time finds everything in order and touches nothing", async (t) => {
  const manager = new FakeManager(t);
  await manager.write();
  const before = lstatSync(manager.path());
  manager.calls.length = 0;
  const applied = await manager.write();
  t.deepEqual(done(applied), ["already", "already"]);
  t.is(lstatSync(manager.path()).ino, before.ino);
  t.deepEqual(manager.calls, []);
});

test("what came to be missing is added, and the rest stays as it was", async (t) => {
  const manager = new FakeManager(t);
  await manager.write({ gateways: [userGateway({ manager_oom_score_adj: null })] });
  t.is(readDropIn(readFileSync(manager.path(), "utf8")).values["OOMScoreAdjust"], undefined);
  const grown = manager.facts().gateways.map((gateway) => ({ ...gateway, rss_mb: 170 }));
  await manager.write({ gateways: grown });
  const { values, ownership } = readDropIn(readFileSync(manager.path(), "utf8"));
  t.is(ownership, "ours");
  t.deepEqual([values["OOMScoreAdjust"], values["MemoryMin"]], ["100", "160M"]);
});

test("undoing takes away what was written, and nothing else", async (t) => {
  const manager = new FakeManager(t);
  const own = join(manager.directory, `${UNIT}.d`, "override.conf");
  mkdirSync(dirname(own), { recursive: true });
  writeFileSync(own, "[Service]\nRestartSec=9\n");
  await manager.write();
  const applied = await manager.undo();
  t.deepEqual(done(applied), ["removed", "removed", "reloaded"]);
  t.false(existsSync(manager.path()));
  t.true(existsSync(own));
  t.false(existsSync(dirname(manager.path("app.slice"))), "an empty directory of ours goes as well");
  t.deepEqual(done(await manager.undo()), []);
});

test("a drop-in that somebody changed is neither written over nor removed, and is named", async (t) => {
  const manager = new FakeManager(t);
  await manager.write({ gateways: [userGateway({ manager_oom_score_adj: null })] });
  const changed = readFileSync(manager.path(), "utf8").replace("160M", "170M");
  writeFileSync(manager.path(), changed);
  for (const applied of [await manager.write(), await manager.undo()]) {
    const refused = applied.changes.find((each) => each.done === "refused");
    t.is(refused?.subject, manager.path());
    t.regex(refused?.detail ?? "", /changed by somebody/);
  }
  t.is(readFileSync(manager.path(), "utf8"), changed);
});

test("a file of that name that is not ours is left alone", async (t) => {
  const manager = new FakeManager(t);
  mkdirSync(dirname(manager.path()), { recursive: true });
  writeFileSync(manager.path(), "[Service]\nNice=5\n");
  const applied = await manager.write();
  t.regex(applied.changes[0]?.detail ?? "", /is not from harden/);
  await manager.undo();
  t.is(readFileSync(manager.path(), "utf8"), "[Service]\nNice=5\n");
});

test("links are not followed, neither in the place of the file nor of its directories", async (t) => {
  const manager = new FakeManager(t);
  const elsewhere = join(manager.directory, "..", "elsewhere");
  mkdirSync(elsewhere, { recursive: true });
  mkdirSync(manager.directory, { recursive: true });
  symlinkSync(elsewhere, dirname(manager.path()));
  t.regex((await manager.write()).changes[0]?.detail ?? "", /is a symbolic link/);
  rmSync(dirname(manager.path()));
  mkdirSync(dirname(manager.path()));
  symlinkSync(join(elsewhere, "file"), manager.path());
  t.is((await manager.write()).changes[0]?.done, "refused");
  t.false(existsSync(join(elsewhere, "file")));
  t.false(existsSync(join(elsewhere, "50-headroom.conf")));
});

test("what stands in the place of a directory is told with its name, and stays", async (t) => {
  const manager = new FakeManager(t);
  mkdirSync(dirname(dirname(manager.directory)), { recursive: true });
  writeFileSync(dirname(manager.directory), "mine");
  t.is((await manager.write()).changes[0]?.detail, `${dirname(manager.directory)} is no directory: move it away`);
  t.is(readFileSync(dirname(manager.directory), "utf8"), "mine");
});

test("system units are root's, and the line to type is told", async (t) => {
  const manager = new FakeManager(t);
  const facts = {
    ...manager.facts(),
    uid: 1000,
    gateways: [userGateway({ manager: "system", manager_uid: null, slices: [] })],
    unit_directories: { system: manager.directory, user: null },
  };
  const applied = await applyPlan(planHardening(facts), facts, manager.run);
  t.deepEqual(done(applied), ["refused"]);
  t.is(applied.changes[0]?.detail, "needs root: sudo hermes-headroom harden --write");
  t.false(existsSync(manager.path()));
});

test("lingering that was switched on is switched off again", async (t) => {
  const manager = new FakeManager(t);
  const applied = await manager.write({ linger: { hermes: false } });
  t.deepEqual(done(applied), ["linger-on", "written", "written", "reloaded"]);
  t.true(manager.calls.includes("loginctl enable-linger hermes"));
  t.is(readDropIn(readFileSync(manager.path(), "utf8")).linger, "hermes");
  t.true(done(await manager.undo()).includes("linger-off"));
  t.is(manager.calls.filter((call) => call === "loginctl disable-linger hermes").length, 1);
});

test("lingering that was on before stays on", async (t) => {
  const manager = new FakeManager(t);
  await manager.write();
  await manager.undo();
  t.false(manager.calls.some((call) => call.startsWith("loginctl")));
});

test("lingering that may not be switched on is told, and the rest is done", async (t) => {
  const manager = new FakeManager(t);
  manager.refused.push("enable-linger");
  const applied = await manager.write({ linger: { hermes: false } });
  t.deepEqual(done(applied), ["refused", "written", "written", "reloaded"]);
  t.is(applied.changes[0]?.detail, "Access denied; as root: loginctl enable-linger hermes");
  t.is(readDropIn(readFileSync(manager.path(), "utf8")).linger, null);
});

test("a value that another drop-in overrules is told", async (t) => {
  const manager = new FakeManager(t);
  const stubborn: RunTool = async (program, words) => {
    const result = await manager.run(program, words);
    const stdout = result.stdout
      .replace("OOMPolicy=continue", "OOMPolicy=kill")
      .replace("DropInPaths=", "DropInPaths=/x/override.conf ");
    return { ...result, stdout };
  };
  const facts = manager.facts();
  const { changes } = await applyPlan(planHardening(facts), facts, stubborn);
  const refused = changes.find((each) => each.done === "refused");
  t.is(refused?.subject, "OOMPolicy");
  t.regex(refused?.detail ?? "", /see \/x\/override.conf/);
});

test("a reload that fails is told", async (t) => {
  const manager = new FakeManager(t);
  manager.refused.push("daemon-reload");
  const { changes } = await manager.write();
  t.is(changes.find((each) => each.done === "refused")?.detail, "Access denied");
});
