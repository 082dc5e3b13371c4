/** `hermes uninstall`: the entry in config.yaml first, then the files that are ours. Data stays. */
import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { directoryProblem, removeEmptyDirectory, removeFile } from "../owned-files.js";
import { disablePlugin, PLUGIN_NAME } from "./config.js";
import { openHome, readConfigFile, removeConfigFile, writeConfigFile } from "./home.js";
import { DIRECTORIES, isOwnConfig, removeOurs } from "./install.js";
import { MANIFEST_FILE, readManifest, type Manifest } from "./plugin-files.js";
import { isChanged, isFine, step, type HermesResult, type Step } from "./steps.js";

export const uninstallPlugin = (wanted: string): HermesResult => {
  const home = openHome(wanted);
  const directory = join(home, ...DIRECTORIES);
  const steps: Step[] = [];
  const problem = exists(directory) ? directoryProblem(directory) : undefined;
  const manifest = problem === undefined ? readManifest(directory) : { problem };
  const madeConfig = !("problem" in manifest) && manifest.made_config;
  steps.push(...disable(home, madeConfig));
  if ("problem" in manifest) steps.push(step("refused", directory, manifest.problem));
  else steps.push(...removeFiles(directory, manifest));
  const data = join(home, "plugin-data", PLUGIN_NAME);
  if (exists(data)) steps.push(step("left", data, "events and learned peaks; remove it yourself if you want"));
  return { action: "uninstall", home, directory, steps, ok: isFine(steps), next: nextStep(steps) };
};

const nextStep = (steps: readonly Step[]): string => {
  if (!isFine(steps)) return "Not everything could be done, see above.";
  return isChanged(steps) ? "Next: hermes gateway restart" : "It was not installed.";
};

const exists = (path: string): boolean => {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
};

const disable = (home: string, madeConfig: boolean): Step[] => {
  const byHand = `take ${PLUGIN_NAME} out of plugins.enabled in it yourself`;
  const file = readConfigFile(home);
  if (file.state === "absent") return [];
  if (file.state === "problem") return [step("refused", file.path, `${file.problem}; ${byHand}`)];
  if (madeConfig && isOwnConfig(file.text)) {
    const problem = removeConfigFile(file.path);
    return [problem === undefined ? step("removed", file.path) : step("refused", file.path, problem)];
  }
  const edit = disablePlugin(file.text);
  if (edit.state === "problem") return [step("refused", file.path, `${edit.problem}; ${byHand}`)];
  if (edit.state !== "changed") return [];
  const problem = writeConfigFile(home, file, edit.text);
  return [
    problem === undefined
      ? step("disabled", file.path, `plugins.enabled no longer has ${PLUGIN_NAME}`)
      : step("refused", file.path, `${problem}; ${byHand}`),
  ];
};

const removeFiles = (directory: string, manifest: Manifest): Step[] => {
  const files = Object.entries(manifest.files);
  const steps = files.flatMap(([file, digest]) => removeOurs(directory, file, digest) ?? []);
  const folders = new Set(files.map(([file]) => dirname(join(directory, file))));
  for (const folder of [...folders].toSorted((a, b) => b.length - a.length)) {
    removeCompiled(
      folder,
      files.map(([file]) => join(directory, file)),
    );
    if (folder !== directory) removeEmptyDirectory(folder);
  }
  // As long as something of ours is left, what is ours must stay known.
  if (isFine(steps)) {
    const problem = removeFile(join(directory, MANIFEST_FILE));
    if (problem !== undefined) steps.push(step("refused", join(directory, MANIFEST_FILE), problem));
  }
  removeEmptyDirectory(directory);
  if (files.length > 0 && exists(directory) && isFine(steps)) {
    steps.push(step("left", directory, "something that is not from us is in it"));
  }
  return steps;
};

/** What Python has compiled of our files goes with them. */
const removeCompiled = (folder: string, ours: readonly string[]): void => {
  const cache = join(folder, "__pycache__");
  if (!exists(cache) || directoryProblem(cache) !== undefined) return;
  for (const name of readdirSync(cache)) {
    const source = join(folder, `${name.split(".")[0]}.py`);
    if (name.endsWith(".pyc") && ours.includes(source)) removeFile(join(cache, name));
  }
  removeEmptyDirectory(cache);
};
