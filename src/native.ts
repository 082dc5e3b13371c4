/**
 * Loads the native addon. Importing this never throws: on a system without it the rest of the package
 * works on, and `nativeStatus()` says why it is missing.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** The addon's exports; `native/index.d.ts` is their reference. */
export type Native = typeof import("../native/index.js");

/** Why the addon is not in use. */
export type NativeReason =
  | "unsupported-platform"
  | "unsupported-architecture"
  | "package-missing"
  | "load-failed"
  | "version-mismatch";

export type NativeStatus =
  | { available: true; file: string }
  | { available: false; reason: NativeReason; detail: string; fix: string };

/** What the loader needs to know of its surroundings; tests give another one. */
export interface LoaderHost {
  platform: string;
  arch: string;
  libc: "gnu" | "musl";
  packageVersion: string;
  require: (id: string) => unknown;
}

const ARCHITECTURES: readonly string[] = ["x64", "arm64"];

/** Tries to load the addon in the given surroundings. */
export const resolveNative = (host: LoaderHost): { native?: Native; status: NativeStatus } => {
  const { platform, arch, libc, packageVersion } = host;
  if (platform !== "linux") {
    return missing(
      "unsupported-platform",
      `memory boxes need Linux, this is ${platform}`,
      "Run it on a Linux machine.",
    );
  }
  if (!ARCHITECTURES.includes(arch)) {
    return missing(
      "unsupported-architecture",
      `there is no prebuilt addon for ${arch}`,
      "Build it from the repository: npm start (needs Rust).",
    );
  }
  const target = `linux-${arch}-${libc}`;
  const candidates = [`../native/headroom.${target}.node`, `hermes-headroom-${target}`];
  const failures: string[] = [];
  for (const file of candidates) {
    try {
      const native = host.require(file) as Native;
      const version = native.version();
      if (version !== packageVersion) {
        return missing(
          "version-mismatch",
          `${file} has version ${version}, the package has ${packageVersion}`,
          "Install both anew: npm install hermes-headroom@latest (in the repository: npm start).",
        );
      }
      return { native, status: { available: true, file } };
    } catch (error) {
      if (!isModuleNotFound(error)) {
        return missing(
          "load-failed",
          `${file}: ${error instanceof Error ? error.message : String(error)}`,
          "Install the package again on this very machine; a node_modules folder copied from another one does not fit.",
        );
      }
      failures.push(file);
    }
  }
  return missing(
    "package-missing",
    `none of ${failures.join(", ")} is installed`,
    `npm install hermes-headroom-${target}@${packageVersion} (npm leaves it out with --omit=optional); in the repository: npm start`,
  );
};

/** What the addon says went wrong, without the code before it. */
export const nativeMessage = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/^E_[A-Z_]+: /, "");

let loaded: ReturnType<typeof resolveNative> | undefined;

/** The addon, or `undefined`; `nativeStatus()` then says why. */
export const loadNative = (): Native | undefined => load().native;

/** Whether the addon is in use, and why not. Never throws. */
export const nativeStatus = (): NativeStatus => load().status;

const load = (): ReturnType<typeof resolveNative> => {
  loaded ??= resolveNative({
    platform: process.platform,
    arch: process.arch,
    libc: detectLibc(),
    packageVersion: ownVersion(),
    require: createRequire(import.meta.url),
  });
  return loaded;
};

/** This package's version. */
export const ownVersion = (): string => {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
};

const missing = (reason: NativeReason, detail: string, fix: string): { status: NativeStatus } => ({
  status: { available: false, reason, detail, fix },
});

const isModuleNotFound = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND";

/** Reading ldd takes 0.02 ms, a process report 4 ms. */
const detectLibc = (): "gnu" | "musl" => {
  try {
    return readFileSync("/usr/bin/ldd", "latin1").includes("musl") ? "musl" : "gnu";
  } catch {
    return "gnu";
  }
};
