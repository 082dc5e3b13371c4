/** The plugin's files: those of the package, those that are installed, and whose they are. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readOwned } from "../owned-files.js";

/** Of the package that this module is in. */
export const PACKAGE_PLUGIN: string = fileURLToPath(new URL("../../hermes-plugin/", import.meta.url));
export const PACKAGE_CLI: string = fileURLToPath(new URL("../../bin/hermes-headroom.js", import.meta.url));

export const MANIFEST_FILE = ".installed.json";
export const LAUNCHER_FILE = "launcher.json";

/** What Python leaves behind is never shipped. */
const isLeftOver = (name: string): boolean => name === "__pycache__" || name.endsWith(".pyc");

/** Files by their path below the directory, with `/`. */
export const readPackageFiles = (directory: string): Map<string, Buffer> => {
  const entries = readdirSync(directory, { withFileTypes: true, recursive: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(directory, "/").length))
    .filter((path) => !path.split("/").some(isLeftOver));
  return new Map(files.toSorted().map((path) => [path, readFileSync(join(directory, path))]));
};

/** How the plugin starts us: no PATH is searched, no shell is asked. */
export const launcherText = (node: string, cli: string): Buffer =>
  Buffer.from(`${JSON.stringify({ node, cli }, undefined, 2)}\n`);

export const sha256 = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");

/** What was installed: sha256 of each file. */
export interface Manifest {
  version: string;
  files: Record<string, string>;
  /** config.yaml was not there before. */
  made_config: boolean;
}

const EMPTY: Manifest = { version: "", files: {}, made_config: false };

/** A manifest that is not there is empty; one that is not to be understood is a problem. */
export const readManifest = (directory: string): Manifest | { problem: string } => {
  const path = join(directory, MANIFEST_FILE);
  const found = readOwned(path);
  if (found.state === "absent") return EMPTY;
  if (found.state === "problem") return { problem: found.problem };
  try {
    const value = JSON.parse(found.data.toString("utf8")) as Partial<Manifest> | null;
    const files = Object.entries(value?.files ?? {});
    if (value !== null && files.every(([file, digest]) => isInside(file) && typeof digest === "string")) {
      return {
        version: String(value.version ?? ""),
        files: Object.fromEntries(files),
        made_config: value.made_config === true,
      };
    }
  } catch {
    // The same as other nonsense.
  }
  return { problem: `${path} is damaged: remove it, and plugin files of headroom beside it, and install again` };
};

/** A manifest must not lead out of its directory. */
const isInside = (file: string): boolean =>
  file !== "" && !file.startsWith("/") && file.split("/").every((part) => part !== "" && part !== "." && part !== "..");

export const manifestText = (manifest: Manifest): string => `${JSON.stringify(manifest, undefined, 2)}\n`;
