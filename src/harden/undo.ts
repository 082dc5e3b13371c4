/** Takes away what `harden --write` wrote, and nothing else. */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { readOwned, removeEmptyDirectory, removeFile } from "../owned-files.js";
import { codeOf, fileProblem } from "../files.js";
import { change, notOurs, type Applied, type Change } from "./apply.js";
import { readDropIn } from "./drop-in.js";
import type { Facts, ManagerName } from "./facts.js";
import { DROP_IN_NAME } from "./policy.js";
import { reload, type RunTool } from "./systemctl.js";

/** Looks into the directories, not at the plan: a unit may be gone meanwhile, and its drop-in still there. */
export const undoHardening = async (
  { unit_directories, uid }: Pick<Facts, "unit_directories" | "uid">,
  run: RunTool,
): Promise<Applied> => {
  const applied: Applied = { changes: [], restart: [] };
  for (const manager of ["user", "system"] as const) {
    const directory = unit_directories[manager];
    if (directory === null) continue;
    const { paths, problem } = dropInsIn(directory);
    if (problem !== undefined) applied.changes.push(change("refused", directory, null, problem));
    let hasRemoved = false;
    for (const path of paths) {
      const outcomes = await removeDropIn(path, manager, uid, run, applied);
      applied.changes.push(...outcomes);
      hasRemoved ||= outcomes.some(({ done }) => done === "removed");
    }
    if (!hasRemoved) continue;
    const { ok, problem: said } = await reload(run, manager);
    applied.changes.push(
      ok ? change("reloaded", manager, null) : change("refused", `daemon-reload (${manager})`, null, said),
    );
  }
  return applied;
};

const dropInsIn = (directory: string): { paths: string[]; problem?: string } => {
  try {
    const names = readdirSync(directory, { withFileTypes: true });
    const found = names.filter((entry) => entry.isDirectory() && /\.(service|slice)\.d$/.test(entry.name));
    return { paths: found.map(({ name }) => join(directory, name, DROP_IN_NAME)).toSorted() };
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return { paths: [] };
    return { paths: [], problem: fileProblem(directory, "read", error) };
  }
};

const removeDropIn = async (
  path: string,
  manager: ManagerName,
  uid: number,
  run: RunTool,
  applied: Applied,
): Promise<Change[]> => {
  const unit = dirname(path).split("/").at(-1)?.replace(/\.d$/, "") ?? "";
  const found = readOwned(path);
  if (found.state === "absent") return [];
  if (found.state === "problem") {
    const detail = manager === "system" && uid !== 0 ? "needs root: sudo hermes-headroom harden --undo" : found.problem;
    return [change("refused", path, unit, detail)];
  }
  const dropIn = readDropIn(found.data.toString("utf8"));
  if (dropIn.ownership === "foreign") return [];
  if (dropIn.ownership === "edited") return [change("refused", path, unit, notOurs(path, dropIn))];
  const problem = removeFile(path);
  if (problem !== undefined) return [change("refused", path, unit, problem)];
  removeEmptyDirectory(dirname(path));
  if (dropIn.values["OOMScoreAdjust"] !== undefined) applied.restart.push({ unit, manager, keys: ["OOMScoreAdjust"] });
  return [
    change("removed", path, unit),
    ...(dropIn.linger === null ? [] : [await switchLingerOff(dropIn.linger, run)]),
  ];
};

const switchLingerOff = async (user: string, run: RunTool): Promise<Change> => {
  const { ok, problem } = await run("loginctl", ["disable-linger", user]);
  return ok
    ? change("linger-off", user, null, "the gateway now ends with the last login, as before")
    : change("refused", `lingering of ${user}`, null, `${problem}; as root: loginctl disable-linger ${user}`);
};
