/** `hermes install`: files, launcher, entry in config.yaml. A second time it brings all that up to date. */
import { dirname, join } from "node:path";
import { makeOwnDirectories, readOwned, removeFile, replaceFile } from "../owned-files.js";
import { enablePlugin, PLUGIN_NAME, PLUGINS_BLOCK } from "./config.js";
import { openHome, readConfigFile, writeConfigFile } from "./home.js";
import {
  LAUNCHER_FILE,
  launcherText,
  MANIFEST_FILE,
  manifestText,
  readManifest,
  readPackageFiles,
  sha256,
  type Manifest,
} from "./plugin-files.js";
import { isChanged, isFine, step, type HermesResult, type Step } from "./steps.js";

export interface InstallInput {
  home: string;
  version: string;
  /** The package's plugin directory. */
  plugin: string;
  /** What the launcher names. */
  node: string;
  cli: string;
}

const DIRECTORY_MODE = 0o755;
const FILE_MODE = 0o644;
export const DIRECTORIES: readonly string[] = ["plugins", PLUGIN_NAME];

export const installPlugin = (input: InstallInput): HermesResult => {
  const home = openHome(input.home);
  const directory = join(home, ...DIRECTORIES);
  const steps = copyFiles(input, home, directory);
  // A plugin that is not whole is not switched on.
  if (isFine(steps)) steps.push(enable(home, directory));
  return { action: "install", home, directory, steps, ok: isFine(steps), next: nextStep(steps) };
};

const nextStep = (steps: readonly Step[]): string => {
  if (!isFine(steps)) return "Not everything could be done, see above. Then run this again.";
  return isChanged(steps) ? "Next: hermes gateway restart" : "Already installed, up to date.";
};

const copyFiles = ({ plugin, node, cli, version }: InstallInput, home: string, directory: string): Step[] => {
  const unusable = makeOwnDirectories(home, DIRECTORIES, DIRECTORY_MODE);
  if (unusable !== undefined) return [step("refused", directory, unusable)];
  const manifest = readManifest(directory);
  if ("problem" in manifest) return [step("refused", join(directory, MANIFEST_FILE), manifest.problem)];
  const files = readPackageFiles(plugin);
  files.set(LAUNCHER_FILE, launcherText(node, cli));
  const installed: Record<string, string> = {};
  const passing = cli.split("/").includes("_npx") ? NPX_CACHE : null;
  const steps: Step[] = [];
  for (const [file, data] of files) {
    const outcome = copyFile(directory, file, data, manifest);
    steps.push(file === LAUNCHER_FILE && isFine([outcome]) ? { ...outcome, detail: passing } : outcome);
    // What was ours and is edited now stays known as ours, so that nobody takes it for foreign.
    const digest = isFine([outcome]) ? sha256(data) : manifest.files[file];
    if (digest !== undefined) installed[file] = digest;
  }
  for (const [file, digest] of Object.entries(manifest.files)) {
    if (files.has(file)) continue;
    const outcome = removeOurs(directory, file, digest);
    if (outcome === undefined) continue;
    steps.push(outcome);
    if (!isFine([outcome])) installed[file] = digest;
  }
  const next: Manifest = { version, files: installed, made_config: manifest.made_config };
  const problem = keepManifest(directory, next);
  return problem === undefined ? steps : [...steps, step("refused", join(directory, MANIFEST_FILE), problem)];
};

const NPX_CACHE =
  "it names npx's cache, which npm may empty at any time: npm install --global hermes-headroom, and install again from there";

const keepManifest = (directory: string, manifest: Manifest): string | undefined => {
  const path = join(directory, MANIFEST_FILE);
  const text = manifestText(manifest);
  const found = readOwned(path);
  if (found.state === "file" && found.data.toString("utf8") === text) return undefined;
  return replaceFile(path, text, { mode: FILE_MODE });
};

const copyFile = (directory: string, file: string, data: Buffer, manifest: Manifest): Step => {
  const path = join(directory, file);
  const folders = dirname(file) === "." ? [] : dirname(file).split("/");
  const unusable = makeOwnDirectories(directory, folders, DIRECTORY_MODE);
  if (unusable !== undefined) return step("refused", path, unusable);
  const found = readOwned(path);
  if (found.state === "problem") return step("refused", path, found.problem);
  if (found.state === "file") {
    if (found.data.equals(data)) return step("same", path);
    const digest = manifest.files[file];
    if (digest === undefined) return step("kept", path, "it is not from us: move it away, and install again");
    if (sha256(found.data) !== digest) return step("kept", path, EDITED);
  }
  const problem = replaceFile(path, data, { mode: FILE_MODE });
  if (problem !== undefined) return step("refused", path, problem);
  return step(found.state === "file" ? "updated" : "written", path);
};

export const EDITED = "it was changed since it was installed: remove it, or move it away, and run this again";

/** `undefined` where it is gone already. */
export const removeOurs = (directory: string, file: string, digest: string): Step | undefined => {
  const path = join(directory, file);
  const found = readOwned(path);
  if (found.state === "absent") return undefined;
  if (found.state === "problem") return step("refused", path, found.problem);
  if (sha256(found.data) !== digest) return step("kept", path, EDITED);
  const problem = removeFile(path);
  return problem === undefined ? step("removed", path) : step("refused", path, problem);
};

const BY_HAND = `add ${PLUGIN_NAME} to the list plugins.enabled in it yourself`;

const enable = (home: string, directory: string): Step => {
  const file = readConfigFile(home);
  if (file.state === "problem") return step("refused", file.path, `${file.problem}; ${BY_HAND}`);
  const edit = enablePlugin(file.state === "file" ? file.text : "");
  switch (edit.state) {
    case "already":
      return step("same", file.path);
    case "disabled":
      return step(
        "refused",
        file.path,
        `plugins.disabled has ${PLUGIN_NAME}, which somebody decided: take it out of that list, and install again. The files are in place`,
      );
    case "problem":
      return step("refused", file.path, `${edit.problem}; ${BY_HAND}`);
    case "changed": {
      const problem = writeConfigFile(home, file, edit.text);
      if (problem !== undefined) return step("refused", file.path, `${problem}; ${BY_HAND}`);
      if (file.state === "absent") noteNewConfig(directory);
      return step("enabled", file.path, `plugins.enabled has ${PLUGIN_NAME}`);
    }
  }
};

/** So that uninstalling takes it away again, if nothing else has come into it. */
const noteNewConfig = (directory: string): void => {
  const manifest = readManifest(directory);
  if (!("problem" in manifest)) keepManifest(directory, { ...manifest, made_config: true });
};

export const isOwnConfig = (text: string): boolean => text === PLUGINS_BLOCK;
