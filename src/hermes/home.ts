/** Hermes' home: where the plugin goes, and its config.yaml. */
import { lstatSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { HeadroomError } from "../errors.js";
import { codeOf, fileProblem } from "../files.js";
import { readOwned, removeFile, replaceFile } from "../owned-files.js";

const FIX = "If Hermes is installed elsewhere: --home DIR, or HERMES_HOME.";

/** The home without links in it. It is never made: where there is none, there is no Hermes. */
export const openHome = (home: string): string => {
  let path: string;
  try {
    path = realpathSync(home);
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      throw new HeadroomError("E_HERMES_HOME", `there is no ${home}: is Hermes Agent installed?`, { fix: FIX });
    }
    throw new HeadroomError("E_HERMES_HOME", fileProblem(home, "used", error), { fix: FIX });
  }
  const stat = lstatSync(path);
  if (!stat.isDirectory()) throw new HeadroomError("E_HERMES_HOME", `${home} is no directory`, { fix: FIX });
  const uid = process.getuid?.() ?? stat.uid;
  if (stat.uid !== uid) {
    throw new HeadroomError("E_HERMES_HOME", `${home} belongs to user ${stat.uid}`, { fix: "Run this as that user." });
  }
  return path;
};

export type ConfigFile =
  | { state: "absent"; path: string }
  | { state: "file"; path: string; text: string; mode: number; gid: number }
  | { state: "problem"; path: string; problem: string };

/** Reads config.yaml. A link is followed within the home alone. */
export const readConfigFile = (home: string): ConfigFile => {
  const named = join(home, "config.yaml");
  try {
    let path = named;
    if (lstatSync(named).isSymbolicLink()) {
      path = realpathSync(named);
      if (!path.startsWith(home + sep)) {
        return { state: "problem", path: named, problem: `${named} is a link to ${path}, outside of Hermes' home` };
      }
    }
    const found = readOwned(path);
    if (found.state === "absent") return { state: "absent", path };
    if (found.state === "problem") return { state: "problem", path, problem: found.problem };
    const { mode, gid } = lstatSync(path);
    const text = found.data.toString("utf8");
    // Written back it would not be the same.
    if (!Buffer.from(text).equals(found.data)) return { state: "problem", path, problem: `${path} is no UTF-8 text` };
    return { state: "file", path, text, mode: mode & 0o7777, gid };
  } catch (error) {
    if (codeOf(error) === "ENOENT" && dirname(named) === home) return { state: "absent", path: named };
    return { state: "problem", path: named, problem: fileProblem(named, "read", error) };
  }
};

const NEW_MODE = 0o600;

/** Writes what was made of `before`, unless somebody has changed the file since. */
export const writeConfigFile = (home: string, before: ConfigFile, text: string): string | undefined => {
  const now = readConfigFile(home);
  const isSame =
    now.state === before.state && (now.state !== "file" || (before.state === "file" && now.text === before.text));
  if (!isSame) return `${before.path} was changed by somebody in this very moment: run this again`;
  if (now.state !== "file") return replaceFile(before.path, text, { mode: NEW_MODE });
  const uid = process.getuid?.() ?? 0;
  return replaceFile(now.path, text, { mode: now.mode, owner: { uid, gid: now.gid } });
};

export const removeConfigFile = (path: string): string | undefined => removeFile(path);
