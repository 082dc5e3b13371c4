import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "ava";
import { classify } from "../../src/classify/classify.js";
import { normaliseCommand, projectDirectory } from "../../src/peaks/key.js";
import { PeakStore } from "../../src/peaks/store.js";

const scratch = mkdtempSync(join(tmpdir(), "headroom-peaks-"));
test.after.always(() => rmSync(scratch, { recursive: true, force: true }));
let count = 0;
const fresh = (): string => join(scratch, String((count += 1)));
const keyOf = (text: string): string => normaliseCommand(classify(text));
const exists = (path: string): boolean => path === "/a/b/package.json" || path === "/a/.git";
const sample = (peak_mb: number, killed = false) => ({ peak_mb, killed, at: 1 });

test("the largest of the last five peaks is recalled", (t) => {
  const store = new PeakStore(fresh());
  t.is(store.recall("/p", "npm test"), undefined);
  for (const peak of [9000, 100, 300, 200, 250, 120]) t.is(store.remember("/p", "npm test", sample(peak)), undefined);
  t.deepEqual(store.recall("/p", "npm test"), { peak_mb: 300, samples: 5, killed: 0 });
  t.is(store.recall("/q", "npm test"), undefined);
});

test("kills are counted", (t) => {
  const store = new PeakStore(fresh());
  store.remember("/p", "a", sample(300, true));
  t.deepEqual(store.recall("/p", "a"), { peak_mb: 300, samples: 1, killed: 1 });
});

test("the file is its owner's alone and bounded", (t) => {
  const directory = fresh();
  const store = new PeakStore(directory);
  for (let index = 0; index < 520; index += 1) store.remember("/p", `c${index}`, sample(index));
  t.is(statSync(join(directory, "peaks.json")).mode & 0o777, 0o600);
  t.is(store.recall("/p", "c0"), undefined);
  t.not(store.recall("/p", "c519"), undefined);
  t.deepEqual(readdirSync(directory), ["peaks.json"]);
});

test("a file that is no store is set aside and told once", (t) => {
  for (const text of ["", "{", "[]", '{"version":2,"entries":{}}', '{"version":1,"entries":{"a":[{"peak_mb":"x"}]}}']) {
    const directory = fresh();
    const store = new PeakStore(directory);
    store.remember("/p", "a", sample(1));
    writeFileSync(join(directory, "peaks.json"), text);
    t.is(store.recall("/p", "a"), undefined);
    t.is(readFileSync(join(directory, "peaks.json"), "utf8"), text, "who only reads changes nothing");
    t.regex(store.remember("/p", "a", sample(2)) ?? "", /was no store of peaks/);
    t.is(readFileSync(join(directory, "peaks.json.bad"), "utf8"), text);
    t.is(store.remember("/p", "a", sample(3)), undefined);
    t.is(store.recall("/p", "a")?.samples, 2);
  }
});

const IN_ITS_PLACE: Record<string, (path: string) => void> = {
  "a huge file": (path) => writeFileSync(path, "x".repeat(3_000_000)),
  "bytes that are no text": (path) => writeFileSync(path, Buffer.alloc(1000, 0xfe)),
  "a directory": (path) => mkdirSync(path),
  "a link to nowhere": (path) => symlinkSync("nowhere", path),
  "a pipe": (path) => void spawnSync("mkfifo", [path]),
};

for (const [name, make] of Object.entries(IN_ITS_PLACE)) {
  test(`${name} in the store's place is set aside, and told`, (t) => {
    const directory = fresh();
    const store = new PeakStore(directory);
    mkdirSync(directory);
    const path = join(directory, "peaks.json");
    make(path);
    t.is(store.recall("/p", "a"), undefined);
    t.regex(store.remember("/p", "a", sample(2)) ?? "", /it is now peaks\.json\.bad.*delete it if/);
    t.truthy(lstatSync(`${path}.bad`));
    t.is(store.remember("/p", "a", sample(3)), undefined);
    t.is(store.recall("/p", "a")?.peak_mb, 3);
  });
}

test("where it cannot be set aside it is overwritten, and that is told", (t) => {
  const directory = fresh();
  const store = new PeakStore(directory);
  mkdirSync(join(directory, "peaks.json.bad"), { recursive: true });
  writeFileSync(join(directory, "peaks.json"), "{");
  t.regex(store.remember("/p", "a", sample(2)) ?? "", /was no store of peaks, and was overwritten/);
  t.is(store.recall("/p", "a")?.peak_mb, 2);
});

test("what a process of the same number left unfinished is no hindrance", (t) => {
  const directory = fresh();
  const store = new PeakStore(directory);
  mkdirSync(directory);
  const temporary = join(directory, `peaks.json.${process.pid}`);
  writeFileSync(temporary, "{");
  t.is(store.remember("/p", "a", sample(2)), undefined);
  t.false(existsSync(temporary));
});

test("samples of any time count: the clock may have jumped", (t) => {
  const store = new PeakStore(fresh());
  for (const at of [Date.now(), 0, -5, Date.now() + 1e12, 1])
    store.remember("/p", "a", { peak_mb: 9, killed: false, at });
  t.is(store.recall("/p", "a")?.samples, 5);
});

test("what cannot be written is told and never throws", (t) => {
  t.not(new PeakStore("/proc/headroom").remember("/p", "a", sample(1)), undefined);
  t.is(new PeakStore("/proc/headroom").recall("/p", "a"), undefined);
});

test("a command is known again whatever changes from run to run", (t) => {
  for (const text of ["timeout 60 npm test", "NODE_OPTIONS=--x npm test", "cd web && npm test", "/usr/bin/npm test"])
    t.is(keyOf(text), "npm test", text);
  t.is(keyOf("make -j8 all"), keyOf("make -j2 all"));
  t.is(keyOf("pytest --seed=1 /tmp/a/b"), keyOf("pytest --seed=2 /tmp/c"));
  t.is(keyOf("npm ci && npm test"), "npm ci && npm test");
  t.not(keyOf("npm run build"), keyOf("npm run lint"));
});

test("the project is the nearest directory that is one", (t) => {
  t.is(projectDirectory("/a/b/c/d", exists), "/a/b");
  t.is(projectDirectory("/a/x", exists), "/a");
  t.is(projectDirectory("/z/y", exists), "/z/y");
});
