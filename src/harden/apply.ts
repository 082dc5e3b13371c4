/** Installs the drop-ins of a plan. Units are never touched, nothing is started again. */
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { makeOwnDirectories, readOwned, replaceFile } from "../owned-files.js";
import { fileProblem } from "../files.js";
import { readDropIn, renderDropIn, type DropIn } from "./drop-in.js";
import type { Facts, ManagerName } from "./facts.js";
import { DROP_IN_NAME, type HardenPlan, type UnitPlan } from "./policy.js";
import { reload, showUnit, type RunTool } from "./systemctl.js";

/** What became of one thing that was to be done. */
export interface Change {
  done: "written" | "removed" | "already" | "refused" | "linger-on" | "linger-off" | "reloaded";
  /** The file, the user or the manager that it is about. */
  subject: string;
  /** Why not, or what to know. */
  detail: string | null;
  unit: string | null;
}

export interface Applied {
  changes: Change[];
  /** Units with settings that only a start of theirs brings into force. */
  restart: { unit: string; manager: ManagerName; keys: string[] }[];
}

const DIRECTORY_MODE = 0o755;
const FILE_MODE = 0o644;

export const change = (
  done: Change["done"],
  subject: string,
  unit: string | null,
  detail: string | null = null,
): Change => ({ done, subject, detail, unit });

export const applyPlan = async (plan: HardenPlan, facts: Facts, run: RunTool): Promise<Applied> => {
  const applied: Applied = { changes: [], restart: [] };
  let lingerToNote = await switchLingerOn(plan, run, applied);
  const written: { unitPlan: UnitPlan; before: DropIn | null }[] = [];
  for (const unitPlan of plan.units) {
    if (unitPlan.settings.length === 0) continue;
    const toNote = unitPlan.manager === "user" ? lingerToNote : null;
    const { outcome, before } = installDropIn(unitPlan, facts, toNote);
    applied.changes.push(outcome);
    if (outcome.done !== "written") continue;
    if (toNote !== null) lingerToNote = null;
    written.push({ unitPlan, before });
  }
  if (lingerToNote !== null) {
    applied.changes.push(
      change("linger-on", lingerToNote, null, `to undo that: loginctl disable-linger ${lingerToNote}`),
    );
  }
  for (const manager of new Set(written.map(({ unitPlan }) => unitPlan.manager))) {
    const { ok, problem } = await reload(run, manager);
    applied.changes.push(
      ok ? change("reloaded", manager, null) : change("refused", `daemon-reload (${manager})`, null, problem),
    );
  }
  for (const { unitPlan, before } of written) await checkInForce(unitPlan, before, run, applied);
  return applied;
};

/** Answers the user to be noted in a drop-in, so that undoing knows. */
const switchLingerOn = async ({ linger }: HardenPlan, run: RunTool, { changes }: Applied): Promise<string | null> => {
  if (linger === null) return null;
  const { ok, problem } = await run("loginctl", ["enable-linger", linger]);
  if (ok) {
    changes.push(change("linger-on", linger, null));
    return linger;
  }
  changes.push(
    change("refused", `lingering of ${linger}`, null, `${problem}; as root: loginctl enable-linger ${linger}`),
  );
  return null;
};

const installDropIn = (
  plan: UnitPlan,
  { uid }: Facts,
  linger: string | null,
): { outcome: Change; before: DropIn | null } => {
  const { unit, manager, path, settings } = plan;
  const answer = (done: Change["done"], detail: string | null = null, before: DropIn | null = null) => ({
    outcome: change(done, path ?? unit, unit, detail),
    before,
  });
  if (settings.every(({ is_set }) => is_set)) return answer("already");
  if (path === null) return answer("refused", "there is no home directory to write to: set HOME");
  if (manager === "system" && uid !== 0) return answer("refused", "needs root: sudo hermes-headroom harden --write");
  const found = readOwned(path);
  if (found.state === "problem") return answer("refused", found.problem);
  const text = found.state === "file" ? found.data.toString("utf8") : undefined;
  const before = text === undefined ? null : readDropIn(text);
  if (before !== null && before.ownership !== "ours") return answer("refused", notOurs(path, before));
  const wanted = settings.flatMap((setting) => {
    const value = before?.values[setting.key];
    if (!setting.is_set) return [setting];
    // In force because of this very file: it stays in it as it was.
    return value === undefined ? [] : [{ ...setting, value }];
  });
  const problem = write(path, renderDropIn({ ...plan, settings: wanted }, before?.linger ?? linger));
  return problem === undefined ? answer("written", null, before) : answer("refused", problem);
};

export const notOurs = (path: string, { ownership }: DropIn): string =>
  ownership === "edited"
    ? `${path} was changed by somebody since harden wrote it: it is left alone. Remove it yourself to start anew`
    : `${path} is not from harden: it is left alone. Move it away to have this`;

/** The unit directory and what is below is checked; `~/.config` and `/etc` may be reached by links. */
const DEPTH = 3;

const write = (path: string, text: string): string | undefined => {
  const directories = dirname(path).split("/");
  const parts = directories.slice(-DEPTH);
  let base = directories.slice(0, -DEPTH).join("/");
  if (!existsSync(base)) {
    parts.unshift(basename(base));
    base = dirname(base);
  }
  try {
    base = realpathSync(base);
  } catch (error) {
    return fileProblem(base, "used", error);
  }
  const problem = makeOwnDirectories(base, parts, DIRECTORY_MODE);
  return problem ?? replaceFile(join(base, ...parts, basename(path)), text, { mode: FILE_MODE });
};

/** What systemd says after the reload; another drop-in may have the last word. */
const checkInForce = async (
  { unit, manager, settings }: UnitPlan,
  before: DropIn | null,
  run: RunTool,
  applied: Applied,
): Promise<void> => {
  const wanted = settings.filter(({ is_set }) => !is_set);
  const shown = await showUnit(run, manager, unit, [...wanted.map(({ key }) => key), "DropInPaths"]);
  const overruled = wanted.filter(({ key, value }) => !isShown(shown?.[key], value)).map(({ key }) => key);
  if (shown !== undefined && overruled.length > 0) {
    const others = (shown["DropInPaths"] ?? "").split(" ").filter((path) => !path.endsWith(`/${DROP_IN_NAME}`));
    const detail = `written, but systemd has another value: see ${others.join(", ") || `systemctl cat ${unit}`}`;
    applied.changes.push(change("refused", overruled.join(", "), unit, detail));
  }
  const later = wanted.filter(({ from, key, value }) => from === "restart" && before?.values[key] !== value);
  if (later.length > 0) applied.restart.push({ unit, manager, keys: later.map(({ key }) => key) });
};

const BYTES_PER_MB = 1_048_576;

/** `208M` is shown as bytes. */
const isShown = (shown: string | undefined, value: string): boolean => {
  const mb = /^(\d+)M$/.exec(value)?.[1];
  return shown === (mb === undefined ? value : String(Number(mb) * BYTES_PER_MB));
};
