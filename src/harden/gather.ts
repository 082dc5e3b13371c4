/** Collects the facts: processes and machine from the addon, units from systemd. */
import { userInfo } from "node:os";
import { join } from "node:path";
import { bytesToMb, bytesToWholeMb } from "../memory.js";
import type { Native } from "../native.js";
import { isGateway } from "../status/hermes.js";
import { aboveKey, aboveUser, type Facts, type Gateway, type ManagerName, type Properties } from "./facts.js";
import {
  isServiceName,
  isSliceName,
  killsUserProcesses,
  lingers,
  listUnitFiles,
  showUnit,
  userUnitDirectory,
  type RunTool,
} from "./systemctl.js";

export interface Host {
  native: Native;
  run: RunTool;
  environment: Readonly<Record<string, string | undefined>>;
  /** `/etc/systemd/system`; tests have their own. */
  systemUnitDirectory: string;
}

const UNIT_PATTERN = "hermes-gateway*.service";
const UNIT_PROPERTIES = [
  "LoadState",
  "User",
  "MainPID",
  "Slice",
  "DropInPaths",
  "OOMPolicy",
  "MemoryMin",
  "MemoryLow",
  "ManagedOOMPreference",
  "OOMScoreAdjust",
];
const ABOVE_PROPERTIES = ["MemoryMin", "MemoryLow"];

export const gatherFacts = async (host: Host): Promise<Facts> => {
  const { native, run } = host;
  const uid = process.getuid?.() ?? 0;
  const user = ownName(uid);
  const memory = native.measureMemory();
  const { container, board, isSystemd, hasZram } = native.surroundings();
  const gateways = await findGateways(host, uid, await runningGateways(native));
  const directory = await userUnitDirectory(run);
  return {
    uid,
    user,
    total_mb: bytesToWholeMb(memory.totalBytes),
    swap_total_mb: bytesToWholeMb(memory.swapTotalBytes),
    has_zram: hasZram,
    board: board ?? null,
    container: container ?? null,
    is_systemd: isSystemd,
    ...memoryController(native),
    linger: await lingerOf(run, [user, ...gateways.map(({ properties }) => properties?.["User"] ?? "")]),
    kills_user_processes: await killsUserProcesses(run),
    gateways,
    above: await aboveGateways(run, uid, gateways),
    unit_directories: { system: host.systemUnitDirectory, user: directory ?? fallbackDirectory(host.environment) },
  };
};

const ownName = (uid: number): string => {
  try {
    return userInfo().username;
  } catch {
    return String(uid);
  }
};

const fallbackDirectory = ({ XDG_CONFIG_HOME, HOME }: Host["environment"]): string | null => {
  const base = XDG_CONFIG_HOME || (HOME ? join(HOME, ".config") : undefined);
  return base === undefined ? null : join(base, "systemd", "user");
};

/** Of the kernel, as far as the modes tell: where one of them makes boxes by v2, v2 has it. */
const memoryController = (native: Native): Pick<Facts, "has_memory_controller" | "has_v1_memory"> => {
  const verdicts = native.probeModes();
  const onV2 = verdicts.filter(({ mode }) => ["systemd-user", "systemd-system", "cgroup2"].includes(mode));
  const isMissing = onV2.some(({ obstacle }) => obstacle === "no-memory-controller" || obstacle === "not-mounted");
  return {
    has_memory_controller: onV2.some(({ available }) => available) || !isMissing,
    has_v1_memory: verdicts.some(({ mode, obstacle }) => mode === "cgroup1" && obstacle !== "not-mounted"),
  };
};

/** By process; of several in one unit (a launcher and Python) the largest. */
const runningGateways = async (native: Native): Promise<Gateway[]> => {
  const found = native.listProcesses().filter(isGateway);
  const gateways = found.flatMap(({ pid, ppid, rssBytes }): Gateway[] => {
    const standing = native.unitOf(pid);
    if (standing === null) return [];
    const { unit } = standing;
    const parent = unit?.manager === "user" ? native.unitOf(ppid) : null;
    // A launcher of its own unit, or a subreaper, is no manager.
    const isManager = parent?.unit?.unit === "init.scope" && parent.unit.managerUid === unit?.managerUid;
    return [
      {
        unit: unit?.unit ?? null,
        manager: unit === null || unit === undefined ? null : unit.manager === "user" ? "user" : "system",
        manager_uid: unit?.managerUid ?? null,
        slices: unit?.slices ?? [],
        session: unit?.session ?? null,
        pid,
        uid: standing.uid,
        rss_mb: bytesToMb(rssBytes),
        oom_score_adj: standing.oomScoreAdj,
        manager_oom_score_adj: isManager ? (parent?.oomScoreAdj ?? null) : null,
        properties: null,
      },
    ];
  });
  return gateways
    .toSorted((a, b) => (b.rss_mb ?? 0) - (a.rss_mb ?? 0))
    .filter((gateway, index, all) => gateway.unit === null || all.findIndex(isSameUnit(gateway)) === index);
};

const isSameUnit =
  ({ unit, manager, manager_uid }: Gateway) =>
  (other: Gateway): boolean =>
    other.unit === unit && other.manager === manager && other.manager_uid === manager_uid;

/** Adds the units that are installed and do not run, and what systemd says of each that may be asked. */
const findGateways = async ({ run }: Host, uid: number, running: readonly Gateway[]): Promise<Gateway[]> => {
  const installed = await Promise.all(
    (["user", "system"] as const).map(async (manager) =>
      (await listUnitFiles(run, manager, UNIT_PATTERN)).map((unit) => notRunning(unit, manager, uid)),
    ),
  );
  const all = [...running, ...installed.flat().filter((gateway) => !running.some(isSameUnit(gateway)))];
  return Promise.all(all.map((gateway) => withProperties(run, uid, gateway)));
};

const notRunning = (unit: string, manager: ManagerName, uid: number): Gateway => ({
  unit,
  manager,
  manager_uid: manager === "user" ? uid : null,
  slices: [],
  session: null,
  pid: null,
  uid: null,
  rss_mb: null,
  oom_score_adj: null,
  manager_oom_score_adj: null,
  properties: null,
});

const withProperties = async (run: RunTool, uid: number, gateway: Gateway): Promise<Gateway> => {
  const { unit, manager, manager_uid } = gateway;
  if (unit === null || manager === null || !isServiceName(unit)) return gateway;
  if (manager === "user" && manager_uid !== uid) return gateway;
  const properties = await showUnit(run, manager, unit, UNIT_PROPERTIES);
  if (properties === undefined) return gateway;
  const slices = gateway.slices.length > 0 ? gateway.slices : slicesOf(properties["Slice"] ?? "");
  return { ...gateway, properties, slices };
};

/** `a-b.slice` is inside of `a.slice` (systemd.slice(5)); the root slice holds everything and limits nothing. */
export const slicesOf = (slice: string): string[] => {
  if (!isSliceName(slice) || slice === "-.slice") return [];
  const parts = slice.slice(0, -".slice".length).split("-");
  return parts.map((_part, index) => `${parts.slice(0, index + 1).join("-")}.slice`);
};

const aboveGateways = async (run: RunTool, uid: number, gateways: readonly Gateway[]): Promise<Facts["above"]> => {
  const wanted = new Map<string, [ManagerName, string]>();
  for (const { manager, slices, properties } of gateways) {
    if (manager === null || properties === null) continue;
    for (const slice of slices.filter(isSliceName)) wanted.set(aboveKey(manager, slice), [manager, slice]);
    if (manager !== "user") continue;
    for (const unit of aboveUser(uid)) wanted.set(aboveKey("system", unit), ["system", unit]);
  }
  const shown = await Promise.all(
    [...wanted].map(async ([key, [manager, unit]]): Promise<[string, Properties] | undefined> => {
      const properties = await showUnit(run, manager, unit, ABOVE_PROPERTIES);
      return properties === undefined ? undefined : [key, properties];
    }),
  );
  return Object.fromEntries(shown.filter((entry) => entry !== undefined));
};

const lingerOf = async (run: RunTool, users: readonly string[]): Promise<Record<string, boolean>> => {
  const named = [...new Set(users)].filter((name) => /^[\w][\w.-]{0,63}$/.test(name));
  const answers = await Promise.all(named.map(async (name) => [name, await lingers(run, name)] as const));
  return Object.fromEntries(answers.filter(([, answer]) => answer !== undefined)) as Record<string, boolean>;
};
