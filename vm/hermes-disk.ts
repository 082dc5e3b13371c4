/**
 * A file system image with a real Hermes and what it needs, for Python 3.11: made once by pip and mke2fs, and kept
 * in the cache as `<cache>/hermes-disk-<hash>/disk.img`.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { RELEASES } from "../hermes-bed/releases.js";
import { run } from "./command.js";
import { withLock } from "./lock.js";
import { cacheDir } from "./paths.js";

const [{ requirement: HERMES, dependencies: NEEDED }] = RELEASES;
/** Wheels for the guest's Python, whatever the host's is. */
const FOR_GUEST = [
  ..."--python-version 3.11 --implementation cp --abi cp311 --only-binary=:all:".split(" "),
  ...["manylinux2014_x86_64", "manylinux_2_28_x86_64", "any"].flatMap((platform) => ["--platform", platform]),
];
const DISK_mb = 320;

/** The image's path. */
export const ensureHermesDisk = async (onProgress: (line: string) => void): Promise<string> => {
  const recipe = createHash("sha256").update(JSON.stringify([HERMES, NEEDED, FOR_GUEST, DISK_mb]));
  const dir = join(cacheDir(), `hermes-disk-${recipe.digest("hex").slice(0, 12)}`);
  const disk = join(dir, "disk.img");
  await withLock(
    `${dir}.lock`,
    async () => {
      if (!existsSync(disk)) await build(dir, onProgress);
    },
    (pid) => onProgress(`waiting for process ${pid}, which builds the disk with Hermes`),
  );
  return disk;
};

const build = async (dir: string, onProgress: (line: string) => void): Promise<void> => {
  onProgress(`building the disk with ${HERMES}`);
  mkdirSync(cacheDir(), { recursive: true });
  const work = mkdtempSync(`${dir}.building-`);
  try {
    const root = join(work, "root");
    const site = join(root, "site-packages");
    const pip = ["-m", "pip", "install", "--quiet", "--no-warn-script-location", "--target", site, ...FOR_GUEST];
    await run("python3", [...pip, "--no-deps", HERMES], {});
    await run("python3", [...pip, ...NEEDED], {});
    const out = join(work, "out");
    mkdirSync(out);
    const image = join(out, "disk.img");
    await run("truncate", ["-s", `${DISK_mb}M`, image], {});
    const options = ["-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-L", "bed-data", "-d", root, image];
    await run("mke2fs", options, { env: { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` } });
    renameSync(out, dir);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
};
