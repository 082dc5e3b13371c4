import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "ava";
import { loadSettings, type LoadedSettings } from "../../src/settings/load.js";
import { defaultSettings, SETTING_KEYS } from "../../src/settings/defaults.js";
import { settingDescription } from "../../src/settings/schema.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-settings-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));
let homes = 0;

/** Settings with this config.yaml, environment and words of `--set`. */
const load = async (
  yaml: string | undefined,
  environment: Record<string, string> = {},
  set: string[] = [],
): Promise<LoadedSettings> => {
  homes += 1;
  const home = join(scratch, String(homes));
  mkdirSync(home);
  if (yaml !== undefined) writeFileSync(join(home, "config.yaml"), yaml);
  return loadSettings({ environment: { HERMES_HOME: home, ...environment }, set });
};

const settingsYaml = (body: string): string =>
  `plugins:\n  entries:\n    headroom:\n      settings:\n${body.replaceAll(/^/gm, "        ")}\n`;

test("without anything the defaults are in force", async (t) => {
  t.deepEqual(await load(undefined), { settings: defaultSettings(), patterns: undefined, problems: [] });
  t.deepEqual((await load("model: x\n")).settings, defaultSettings());
  t.deepEqual((await loadSettings({ environment: { HOME: "/nonexistent" } })).problems, []);
});

test("every setting is described", async (t) => {
  for (const key of SETTING_KEYS) t.not(settingDescription(key), "", key);
});

test("the last layer wins", async (t) => {
  const yaml = settingsYaml("max_heavy_jobs: 2\nreserve_mb: 300\nlighten: false");
  const { settings, problems } = await load(yaml, { HEADROOM_MAX_HEAVY_JOBS: "3", HEADROOM_RESERVE_MB: "400" }, [
    "reserve_mb=500",
  ]);
  t.deepEqual(problems, []);
  t.like(settings, { max_heavy_jobs: 3, reserve_mb: 500, lighten: false });
});

test("values of every type are read from text", async (t) => {
  const { settings, problems, patterns } = await load(undefined, {
    HEADROOM_MODE: "observe",
    HEADROOM_LIGHTEN: "No",
    HEADROOM_ISOLATE: "1",
    HEADROOM_SWAP_MB: "-1",
    HEADROOM_EXTRA_HEAVY_PATTERNS: '["^a", "b"]',
    HEADROOM_EXCLUDE_PATTERNS: "^c\nd",
    HEADROOM_JOB_ID: "x",
    HEADROOM_WARMING_ENABLED: "true",
  });
  t.deepEqual(problems, []);
  t.like(settings, { mode: "observe", lighten: false, isolate: true, swap_mb: -1 });
  t.deepEqual(settings.extra_heavy_patterns, ["^a", "b"]);
  t.deepEqual(settings.exclude_patterns, ["^c", "d"]);
  t.true(patterns?.excludes("c"));
});

const BAD: [set: string, message: RegExp][] = [
  ["max_heavy_jobs=abc", /--set: max_heavy_jobs: "abc" is not allowed: a whole number from 0 to 64; 0 stays in force/],
  ["max_heavy_jobs=65", /--set: max_heavy_jobs: 65 is not allowed: a whole number from 0 to 64; 0 stays in force/],
  ["max_heavy_jobs=12abc", /is not allowed/],
  ["max_heavy_jobs=-1", /is not allowed/],
  ["max_heavy_jobs=1.5", /is not allowed/],
  ["max_heavy_jobs=1e309", /is not allowed/],
  ["max_heavy_jobs=NaN", /is not allowed/],
  ["max_heavy_jobs=", /is not allowed/],
  ["reserve_mb=999999999999999999", /is not allowed/],
  ["mode=enforced", /"enforced" is not allowed: enforce, observe, off/],
  ["lighten=maybe", /true or false/],
  ["extra_heavy_patterns=[1]", /a list of texts/],
  ["extra_heavy_patterns=[", /a list of texts/],
  ["max_heavy_job=1", /unknown setting "max_heavy_job"; did you mean max_heavy_jobs\?/],
  ["__proto__=1", /unknown setting "__proto__"$/],
  ["constructor=1", /unknown setting/],
  ["novalue", /key=value is wanted/],
  ["=1", /key=value is wanted/],
];

for (const [set, message] of BAD) {
  test(`--set ${set} is told, and changes nothing`, async (t) => {
    const { settings, problems } = await load(undefined, {}, [set]);
    t.is(problems.length, 1);
    t.regex(problems[0] ?? "", message);
    t.deepEqual(settings, defaultSettings());
  });
}

test("as many jobs at once as there are slots can be set", async (t) => {
  const { settings, problems } = await load(undefined, {}, ["max_heavy_jobs=64"]);
  t.deepEqual([settings.max_heavy_jobs, problems], [64, []]);
});

test("a bad value leaves the lower layer's in force", async (t) => {
  const { settings, problems } = await load(settingsYaml("max_heavy_jobs: 2"), { HEADROOM_MAX_HEAVY_JOBS: "x" });
  t.is(settings.max_heavy_jobs, 2);
  t.regex(problems[0] ?? "", /environment HEADROOM_MAX_HEAVY_JOBS: max_heavy_jobs: "x".*; 2 stays in force/);
});

test("odd values in YAML are told one by one", async (t) => {
  const { settings, problems } = await load(
    settingsYaml(
      "max_heavy_jobs: [1]\nreserve_mb:\nlighten: 'yes'\nmode: 3\nswap_mb: .nan\ncritical_mb: .inf\nqueue_timeout_s: 10\n__proto__: 1\nwarming: {enabled: true}",
    ),
  );
  t.is(problems.length, 7);
  t.is(settings.queue_timeout_s, 10);
  t.is(settings.max_heavy_jobs, 0);
});

const ODD_FILES: Record<string, [text: string, problems: number]> = {
  "broken YAML": ["headroom: [", 1],
  "a list instead of a mapping": [settingsYaml("- 1"), 1],
  "an empty file": ["", 0],
  "a bare word": ["headroom", 0],
  "a bomb of aliases": [
    `headroom: 1\na: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `${"bcdefghij"[i]}: &${"bcdefghij"[i]} [${Array(9).fill(`*${"abcdefghi"[i]}`).join(",")}]`).join("\n")}\n`,
    1,
  ],
  "plugins of another kind": ["plugins: [headroom]\n", 0],
};

for (const [name, [text, count]] of Object.entries(ODD_FILES)) {
  test(`${name} is no reason to throw`, async (t) => {
    const { settings, problems } = await load(text);
    t.is(problems.length, count, problems.join("\n"));
    t.deepEqual(settings, defaultSettings());
  });
}

test("what is wrong with the YAML is told by its line, never by its text", async (t) => {
  for (const broken of ["key: *sk-secret", "key: !sk-secret {", "sk-secret: [\nsk-secret", 'key: "sk-secret']) {
    const { problems } = await load(`# headroom\n${broken}\n`);
    t.false(problems.join().includes("sk-secret"), problems.join());
  }
  t.regex((await load("# headroom\na: [\n")).problems.join(), /is no YAML: [A-Z_]+ at line \d+; the defaults/);
});

test("a config that is no file, too large, or a loop of links is told", async (t) => {
  const home = join(scratch, "odd");
  mkdirSync(join(home, "config.yaml"), { recursive: true });
  t.regex((await loadSettings({ environment: { HERMES_HOME: home } })).problems[0] ?? "", /no regular file/);
  t.regex((await load("#".repeat(1_100_000))).problems[0] ?? "", /larger than 1 MB/);
  const loop = join(scratch, "loop");
  mkdirSync(loop);
  symlinkSync("config.yaml", join(loop, "config.yaml"));
  t.is((await loadSettings({ environment: { HERMES_HOME: loop } })).problems.length, 1);
  if (process.getuid?.() !== 0) {
    const closed = join(scratch, "closed");
    mkdirSync(closed);
    writeFileSync(join(closed, "config.yaml"), "");
    chmodSync(join(closed, "config.yaml"), 0);
    t.regex((await loadSettings({ environment: { HERMES_HOME: closed } })).problems[0] ?? "", /cannot be read/);
  }
});

test("a pattern that is none is left out, the others work", async (t) => {
  const { patterns, problems } = await load(settingsYaml('extra_heavy_patterns: ["(", "ok"]'));
  t.regex(problems[0] ?? "", /the pattern "\(" is no regular expression/);
  t.is(patterns?.extra("ok"), "ok");
});
