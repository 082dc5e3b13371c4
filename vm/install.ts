/**
 * The host tools of the test bed: a check, and on Debian and Ubuntu an installation through apt.
 */
import { accessSync, constants, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { run } from "./command.js";

/** Programs needed on the host, each with the Debian package which brings it. */
const TOOLS: Readonly<Record<string, string>> = {
  "qemu-system-x86_64": "qemu-system-x86",
  mmdebstrap: "mmdebstrap",
  mke2fs: "e2fsprogs",
  setpriv: "util-linux",
  tar: "tar",
  xz: "xz-utils",
  zstd: "zstd",
};
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

export type InstallResult = { ready: true; installed: readonly string[] } | { ready: false; message: string };

/** Makes the host ready, or says what to type. Never throws for a missing tool. */
export const ensureHostTools = async (onProgress: (line: string) => void = () => {}): Promise<InstallResult> => {
  const missing = missingPackages();
  if (missing.length === 0) return { ready: true, installed: [] };
  const aptGet = ["install", "-y", "--no-install-recommends", ...missing];
  const typed = `sudo apt-get update && sudo apt-get ${aptGet.join(" ")}`;
  if (process.platform !== "linux" || process.arch !== "x64") {
    return {
      ready: false,
      message: `The guests are x86-64 Linux and are built on such a host, not on ${process.platform}-${process.arch}.`,
    };
  }
  if (!isDebianLike()) {
    return {
      ready: false,
      message: `Missing for the guests: ${missing.join(", ")} (Debian's package names). Install them with your distribution's tools.`,
    };
  }
  if (process.getuid?.() !== 0)
    return { ready: false, message: `Missing for the guests: ${missing.join(", ")}. Type:\n  ${typed}` };
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    await run("apt-get", ["update"], { env, onLine: onProgress });
    await run("apt-get", aptGet, { env, onLine: onProgress });
  } catch (error) {
    return { ready: false, message: `apt-get failed: ${(error as Error).message}\nType:\n  ${typed}` };
  }
  const left = missingPackages();
  if (left.length > 0) return { ready: false, message: `Still missing after apt-get: ${left.join(", ")}.` };
  return { ready: true, installed: missing };
};

/** Debian packages still to be installed for the test bed. */
export const missingPackages = (): string[] => {
  const packages = Object.entries(TOOLS)
    .filter(([tool]) => !onPath(tool))
    .map(([, name]) => name);
  if (!readable(KEYRING)) packages.push("debian-archive-keyring");
  // Without root mmdebstrap works in a user namespace, which needs newuidmap.
  if (process.getuid?.() !== 0 && !onPath("newuidmap")) packages.push("uidmap");
  return [...new Set(packages)];
};

// A user's PATH often leaves out sbin, where mke2fs is.
const onPath = (tool: string): boolean =>
  [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"].some((dir) => executable(join(dir, tool)));

const executable = (path: string): boolean => allows(path, constants.X_OK);
const readable = (path: string): boolean => allows(path, constants.R_OK);

const allows = (path: string, mode: number): boolean => {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
};

const isDebianLike = (): boolean => {
  try {
    return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync("/etc/os-release", "utf8"));
  } catch {
    return false;
  }
};
