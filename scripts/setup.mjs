/**
 * Makes a checkout ready: dependencies, native addon, compiled TypeScript. Each step is skipped when
 * nothing it depends on has changed. Uses only what Node brings, because nothing else is there at first.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const STAMPS = join(ROOT, "node_modules", ".headroom");
const OLDEST_NODE = [20, 19];

/** A message for people; no stack. */
class SetupError extends Error {}

const setup = () => {
  checkNode();
  step(
    "dependencies",
    ["package-lock.json"],
    () => existsSync(join(ROOT, "node_modules")),
    () => npm(["ci", "--no-audit", "--no-fund"]),
  );
  if (process.platform === "linux") {
    const sources = ["crates", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "package.json"];
    step("native addon", sources, hasBuiltAddon, () => {
      if (!hasCargo()) {
        if (hasPrebuiltAddon()) return;
        throw new SetupError(NO_RUST);
      }
      npm(["run", "--silent", "build:native"]);
    });
  }
  step(
    "TypeScript",
    ["src", "native/index.d.ts", "tsconfig.json", "tsconfig.build.json"],
    () => existsSync(join(ROOT, "dist", "cli", "main.js")),
    () => npm(["run", "--silent", "build:ts"]),
  );
};

const NO_RUST = `the native addon must be built, and there is no Rust toolchain (cargo) on PATH.
Install one with this line, open a new shell, and run the command again:

  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y

A C linker is needed as well (Debian, Ubuntu, Raspberry Pi OS: sudo apt install gcc libc6-dev).`;

const checkNode = () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    throw new SetupError(`Node ${OLDEST_NODE.join(".")} or newer is needed, this is ${process.versions.node}.`);
  }
};

/** Runs `build` unless its output exists and its inputs are as they were. */
const step = (name, inputs, outputExists, build) => {
  const stamp = join(STAMPS, `${name.replaceAll(" ", "-")}.sha256`);
  const digest = digestOf(inputs);
  if (outputExists() && existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
  process.stderr.write(`setup: ${name}\n`);
  build();
  mkdirSync(STAMPS, { recursive: true });
  writeFileSync(stamp, digestOf(inputs));
};

const digestOf = (inputs) => {
  const hash = createHash("sha256").update(process.versions.modules).update(process.arch);
  for (const file of inputs.flatMap((input) => filesBelow(join(ROOT, input)))) {
    hash.update(relative(ROOT, file)).update("\0").update(readFileSync(file));
  }
  return hash.digest("hex");
};

const filesBelow = (path) => {
  if (!existsSync(path)) return [];
  try {
    return readdirSync(path)
      .toSorted()
      .flatMap((name) => filesBelow(join(path, name)));
  } catch {
    return [path];
  }
};

const hasBuiltAddon = () =>
  existsSync(join(ROOT, "native")) && readdirSync(join(ROOT, "native")).some((name) => name.endsWith(".node"));

const hasPrebuiltAddon = () =>
  ["gnu", "musl"].some((libc) =>
    existsSync(join(ROOT, "node_modules", `hermes-headroom-linux-${process.arch}-${libc}`)),
  );

const hasCargo = () => spawnSync("cargo", ["--version"], { stdio: "ignore" }).status === 0;

const npm = (words) => {
  // `npm start` tells which npm runs it; a bare `node scripts/setup.mjs` takes the one on PATH.
  const own = process.env.npm_execpath;
  const [program, first] = own?.endsWith(".js") ? [process.execPath, [own]] : ["npm", []];
  const { status } = spawnSync(program, [...first, ...words], { cwd: ROOT, stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new SetupError(`npm ${words.join(" ")} failed.`);
};

try {
  setup();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`setup: ${error.message}\n`);
  process.exit(1);
}
