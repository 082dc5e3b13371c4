/**
 * Disk images of the guests, built once per suite and recipe with mmdebstrap and kept in the cache:
 * `<cache>/guests/<suite>-<hash>/{disk.img,vmlinuz,initrd}`. Building takes a lock and ends in one rename,
 * so a folder in the cache is always whole.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { run } from "./command.js";
import { withLock } from "./lock.js";
import { cacheDir, inGuestFile } from "./paths.js";
import { DISK_mb, GUEST_NODE, mmdebstrapArgs, recipeHash } from "./recipe.js";
import type { Suite } from "./suites.js";
import { unpackKernel } from "./vmlinux.js";

export interface GuestImage {
  suite: Suite;
  dir: string;
  disk: string;
  kernel: string;
  initrd: string;
  kernelVersion: string;
  systemdVersion: string;
  /** True when this call built it. */
  built: boolean;
}

const UNUSED_MS = 14 * 24 * 3600 * 1000;

type OnProgress = (line: string) => void;

/** The image of a suite, built if the cache has none. `onProgress` gets mmdebstrap's lines. */
export const ensureImage = async (suite: Suite, onProgress: OnProgress = () => {}): Promise<GuestImage> => {
  const guests = join(cacheDir(), "guests");
  const dir = join(guests, `${suite}-${recipeHash(suite)}`);
  const ready = (): boolean => existsSync(join(dir, "disk.img"));
  if (ready()) return describe(suite, dir, false);
  return await withLock(
    `${dir}.lock`,
    async () => {
      if (ready()) return describe(suite, dir, false);
      await build(suite, dir, onProgress);
      return describe(suite, dir, true);
    },
    (pid) => onProgress(`waiting for process ${pid}, which builds ${suite}`),
  );
};

const describe = (suite: Suite, dir: string, built: boolean): GuestImage => {
  utimesSync(dir, new Date(), new Date()); // the last use, for `prune`
  const line = (name: string): string => readFileSync(join(dir, name), "utf8").trim();
  return {
    suite,
    dir,
    built,
    disk: join(dir, "disk.img"),
    kernel: join(dir, "vmlinuz"),
    initrd: join(dir, "initrd"),
    kernelVersion: line("kernel-version"),
    systemdVersion: line("systemd-version"),
  };
};

const build = async (suite: Suite, dir: string, onProgress: OnProgress): Promise<void> => {
  const startedMs = Date.now();
  const node = await ensureGuestNode(onProgress);
  prune(suite, dir);
  const work = mkdtempSync(`${dir}.building-`);
  try {
    const out = join(work, "out");
    mkdirSync(out);
    await bootstrap(suite, node, work, out, onProgress);
    const kernel = unpackKernel(join(out, "vmlinuz"));
    if (kernel) {
      rmSync(join(out, "vmlinuz")); // may belong to a sub-uid: replaced, not overwritten
      writeFileSync(join(out, "vmlinuz"), kernel);
    } else onProgress("the kernel could not be unpacked: it will unpack itself, which is slower");
    chmodSync(out, 0o755);
    renameSync(out, dir);
    onProgress(`built ${suite} in ${Math.round((Date.now() - startedMs) / 1000)} s: ${dir}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
};

/** Removes what killed builds of this recipe left, and images of older recipes which nobody used for two weeks. */
const prune = (suite: Suite, dir: string): void => {
  for (const name of readdirSync(dirname(dir))) {
    const path = join(dirname(dir), name);
    const leftover = name.startsWith(`${basename(dir)}.building-`); // we hold the lock: nobody is building it
    const old = new RegExp(`^${suite}-[0-9a-f]+$`).test(name) && Date.now() - statSync(path).mtimeMs > UNUSED_MS;
    if (leftover || old) rmSync(path, { recursive: true, force: true });
  }
};

const bootstrap = async (
  suite: Suite,
  node: string,
  work: string,
  out: string,
  onProgress: OnProgress,
): Promise<void> => {
  // mmdebstrap quotes the whole hook: only its one-line messages are progress.
  const onLine = (line: string): void => {
    if (/^[IWE]: (?!running --\w+-hook)/.test(line)) onProgress(line);
  };
  const options = { cwd: work, onLine };
  const root = join(work, "root");
  const mirrors = process.env.HERMES_HEADROOM_TEST_MIRROR?.split(/\s+/) ?? []; // none: mmdebstrap's own default
  const recipe = mmdebstrapArgs(suite, node);
  const finish = ["sh", inGuestFile("finish.sh"), root, out, String(DISK_mb)];
  if (process.getuid?.() === 0) {
    await run("nice", ["-n", "5", "mmdebstrap", "--mode=root", ...recipe, suite, root, ...mirrors], options);
    await run("nice", ["-n", "5", ...finish], options);
    return;
  }
  // Without root: the tree only exists inside a user namespace, so that its owners come out right.
  // Device nodes cannot be made there, and devtmpfs brings its own.
  for (const folder of [work, out]) chmodSync(folder, 0o777);
  const tarball = join(work, "root.tar");
  await run("nice", ["-n", "5", "mmdebstrap", "--mode=unshare", ...recipe, suite, tarball, ...mirrors], options);
  const script = `mkdir "$1" && tar -C "$1" --exclude='./dev/*' -xf "$4" && sh -c "$0" finish "$1" "$2" "$3"; code=$?; rm -rf "$1"; exit $code`;
  const finishText = readFileSync(inGuestFile("finish.sh"), "utf8");
  await run(
    "mmdebstrap",
    ["--unshare-helper", "sh", "-c", script, finishText, root, out, String(DISK_mb), tarball],
    options,
  );
};

/** The guest's Node binary, from the npm registry by way of `npm pack`, kept in the cache. */
const ensureGuestNode = async (onProgress: OnProgress): Promise<string> => {
  const dir = join(cacheDir(), `${GUEST_NODE.name}-${GUEST_NODE.version}`);
  const binary = join(dir, "node");
  await withLock(`${dir}.lock`, async () => {
    if (existsSync(binary)) return;
    const work = mkdtempSync(`${dir}.fetching-`);
    try {
      onProgress(`fetching ${GUEST_NODE.name}@${GUEST_NODE.version} from the npm registry`);
      const packed = await run("npm", ["pack", "--silent", `${GUEST_NODE.name}@${GUEST_NODE.version}`], { cwd: work });
      const tarball = packed.trim().split("\n").at(-1) ?? "";
      await run("tar", ["-xzf", tarball, "--strip-components=2", "package/bin/node"], { cwd: work });
      mkdirSync(dir, { recursive: true });
      chmodSync(join(work, "node"), 0o755);
      renameSync(join(work, "node"), binary);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return binary;
};
