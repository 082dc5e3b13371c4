/** Disks that are full or cannot be written to, for one command each. */
import { spawn, spawnSync } from "node:child_process";
import { CLI, finishCli, HERMES_HOME, ROOT, type CliOptions, type CliResult } from "./run-cli.js";

/** Mounts are private to the command, and gone with it. Needs root, or user namespaces. */
const UNSHARE: readonly string[] =
  process.getuid?.() === 0 ? ["unshare", "--mount"] : ["unshare", "--map-root-user", "--mount"];

/** Why nothing can be mounted here; `undefined` where it can. */
export const mountProblem: string | undefined = ((): string | undefined => {
  const [program = "", ...words] = UNSHARE;
  const { status, stderr, error } = spawnSync(program, [...words, "mount", "-t", "tmpfs", "none", "/mnt"], {
    encoding: "utf8",
  });
  return status === 0 ? undefined : `no file system can be mounted here: ${error?.message ?? stderr}`;
})();

/** Runs the command line where a shell script has prepared the mounts; `$1` and on are words of the caller. */
export const runCliOn = async (
  script: string,
  places: readonly string[],
  words: readonly string[],
  { env = {} }: CliOptions = {},
): Promise<CliResult> => {
  const [program = "", ...before] = UNSHARE;
  const prepare = `set -e\n${script}\nshift ${places.length}\nexec "$@"`;
  const child = spawn(program, [...before, "sh", "-c", prepare, "sh", ...places, process.execPath, CLI, ...words], {
    cwd: ROOT,
    env: { ...process.env, NO_COLOR: "1", HERMES_HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return finishCli(child);
};

/** A file system on `$1` with room for `kb`, all of it used up. */
export const fullDisk = (before = "true", kb = 64): string =>
  `mount -t tmpfs -o size=${kb}k,mode=700 none "$1"\n${before}\ncat /dev/zero > "$1/filler" 2> /dev/null || true`;

/** A file system on `$1` on which no further file can be made. */
export const noMoreFiles = (before = "true"): string =>
  `mount -t tmpfs -o nr_inodes=40,mode=700 none "$1"\n${before}\ni=0; while (: > "$1/filler-$i") 2> /dev/null; do i=$((i + 1)); done`;

/** A file system on `$1` that can only be read. */
export const readOnly = (before = "true"): string =>
  `mount -t tmpfs -o size=64k,mode=700 none "$1"\n${before}\nmount -o remount,bind,ro "$1"`;
