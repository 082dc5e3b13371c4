import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "ava";
import { ROOT } from "../support/run-cli.js";

/** A checkout as far as set-up looks at it, without a built addon. */
const checkout = (): string => {
  const dir = mkdtempSync(join(tmpdir(), "headroom-checkout-"));
  for (const part of [
    "scripts",
    "crates",
    "package.json",
    "package-lock.json",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
  ]) {
    cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  return dir;
};

test("without Rust and without an addon set-up says what to type", (t) => {
  const dir = checkout();
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const emptyPath = join(dir, "empty");
  mkdirSync(emptyPath);
  const words = [join(dir, "scripts", "start.mjs")];
  const { status, stderr, stdout } = spawnSync(process.execPath, words, { env: { PATH: emptyPath }, encoding: "utf8" });
  t.is(status, 1);
  t.is(stdout, "");
  t.regex(stderr, /no Rust toolchain/);
  t.regex(stderr, /curl .*rustup/);
  t.notRegex(stderr, /\bat .*:\d+:\d+/, "no stack");
});

test("set-up of a checkout that is ready does nothing", (t) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [join(ROOT, "scripts", "setup.mjs")], {
    encoding: "utf8",
  });
  t.deepEqual({ status, stderr, stdout }, { status: 0, stderr: "", stdout: "" });
});
