/** A virtual environment of Python with one release of Hermes: made by pip once, kept in the cache. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../vm/command.js";
import { withLock } from "../vm/lock.js";
import { cacheDir } from "../vm/paths.js";
import type { HermesRelease } from "./releases.js";

/** Both releases run on these. */
const PYTHONS = ["python3.11", "python3.12", "python3.13", "python3"];

/** The directory in which `release` is kept, whether or not it is there yet. */
export const venvOf = (release: HermesRelease): string => {
  const recipe = JSON.stringify([release.requirement, release.dependencies]);
  const digest = createHash("sha256").update(recipe).digest("hex").slice(0, 8);
  return join(cacheDir(), `hermes-${release.name}-${digest}`);
};

/** Makes it when it is missing; its directory. Throws what pip says. */
export const ensureVenv = async (release: HermesRelease, onProgress: (line: string) => void): Promise<string> => {
  const dir = venvOf(release);
  // A virtual environment knows its own path, so it is made in place; the mark says that it is whole.
  const mark = join(dir, "ready");
  await withLock(
    `${dir}.lock`,
    async () => {
      if (existsSync(mark)) return;
      onProgress(`installing ${release.requirement} in ${dir}`);
      rmSync(dir, { recursive: true, force: true });
      await run(python(), ["-m", "venv", dir], {});
      const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
      const own = join(dir, "bin/python");
      await run(own, [...pip, "--no-deps", release.requirement], {});
      await run(own, [...pip, ...release.dependencies], {});
      writeFileSync(mark, "");
    },
    (pid) => onProgress(`waiting for process ${pid}, which installs ${release.requirement}`),
  );
  return dir;
};

const CHECK = "import sys, venv, ensurepip; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else 1)";

const python = (): string => {
  const found = PYTHONS.find((name) => spawnSync(name, ["-c", CHECK], { stdio: "ignore" }).status === 0);
  if (found === undefined) throw new Error("Python 3.11 to 3.13 with venv is needed (Debian: python3 python3-venv)");
  return found;
};
