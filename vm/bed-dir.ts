/**
 * The folder mounted at /mnt/host-bed in the guest: the test bed's own shell files, the script and the run's settings.
 */
import { chmodSync, cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { inGuestFile } from "./paths.js";

export type SwapKind = "none" | "zram" | "disk";
export type UserManager = "linger" | "no-bus" | "none";

export interface BedSettings {
  script: string | { text: string };
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  shareDir?: string;
  outDir?: string;
  dataDisk?: string;
  swap: SwapKind;
  swapMb: number;
  userManager?: UserManager;
}

/** Fills `dir` and returns the run's nonce, with which every marker line begins. */
export const fillBedDir = (dir: string, settings: BedSettings): string => {
  if (typeof settings.script === "string" && settings.shareDir === undefined) {
    throw new TypeError("Expected `shareDir` with a `script` given as a path");
  }
  mkdirSync(dir, { mode: 0o755 });
  for (const name of ["runner.sh", "lib.sh", "bin"]) cpSync(inGuestFile(name), join(dir, name), { recursive: true });
  // Packing may have lost the mode bits, and hermes must be able to read and run them.
  for (const name of ["bin", ...readdirSync(join(dir, "bin")).map((program) => `bin/${program}`)]) {
    chmodSync(join(dir, name), 0o755);
  }
  if (typeof settings.script !== "string") writeFileSync(join(dir, "script.sh"), settings.script.text, { mode: 0o644 });

  const nonce = `@@bed-${randomBytes(6).toString("hex")}`;
  const lines = [
    `BED_NONCE=${nonce}`,
    `BED_SCRIPT=${quote(typeof settings.script === "string" ? `/mnt/host/${settings.script}` : "/mnt/host-bed/script.sh")}`,
    `BED_ARGS=(${(settings.args ?? []).map(quote).join(" ")})`,
    `BED_SHARE=${settings.shareDir === undefined ? 0 : 1}`,
    `BED_OUT=${settings.outDir === undefined ? 0 : 1}`,
    `BED_DATA=${settings.dataDisk === undefined ? 0 : 1}`,
    `BED_SWAP=${settings.swap}`,
    `BED_SWAP_MB=${settings.swapMb}`,
    `BED_USER_MANAGER=${settings.userManager ?? "linger"}`,
    ...Object.entries(settings.env ?? {}).map(([name, value]) => `export ${name}=${quote(value)}`),
  ];
  writeFileSync(join(dir, "params.sh"), `${lines.join("\n")}\n`, { mode: 0o644 });
  return nonce;
};

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
