/** From facts to what should be done: drop-ins that `--write` installs, and advice for the rest. Pure. */
import { join } from "node:path";
import { adviseOn, type Advice } from "./advice.js";
import { aboveKey, situationOf, type Facts, type Gateway, type ManagerName, type Situation } from "./facts.js";
import { protectionOf, sliceSettings, unitSettings, type Protection, type Setting } from "./settings.js";

/** Sorts before `override.conf`, which `systemctl edit` writes: what a person says there wins. */
export const DROP_IN_NAME = "50-headroom.conf";

export interface UnitPlan {
  unit: string;
  manager: ManagerName;
  section: "Service" | "Slice";
  /** The drop-in; `null` where there is no place for one. */
  path: string | null;
  settings: Setting[];
  /** `null` for slices, and where it does not run. */
  pid: number | null;
}

export interface GatewayView {
  situation: Situation;
  unit: string | null;
  manager: ManagerName | null;
  pid: number | null;
  rss_mb: number | null;
  oom_score_adj: number | null;
}

export interface HardenPlan {
  gateways: GatewayView[];
  units: UnitPlan[];
  /** The user for whom lingering is to be switched on. */
  linger: string | null;
  advice: Advice[];
}

export const planHardening = (facts: Facts): HardenPlan => {
  const services = facts.gateways.filter(
    (gateway) => gateway.properties !== null && ["user-unit", "system-unit"].includes(situationOf(facts, gateway)),
  );
  const units = [...services.map((gateway) => servicePlan(facts, gateway)), ...slicePlans(facts, services)];
  const linger = services.some(({ manager }) => manager === "user") && facts.linger[facts.user] === false;
  return {
    gateways: facts.gateways.map((gateway) => ({
      situation: situationOf(facts, gateway),
      unit: gateway.unit,
      manager: gateway.manager,
      pid: gateway.pid,
      rss_mb: gateway.rss_mb,
      oom_score_adj: gateway.oom_score_adj,
    })),
    units,
    linger: linger ? facts.user : null,
    advice: adviseOn(
      facts,
      sumOf(
        facts,
        services.filter(({ manager }) => manager === "user"),
      ),
    ),
  };
};

const servicePlan = (facts: Facts, gateway: Gateway): UnitPlan => {
  const { unit = "", manager, pid } = gateway;
  return planOf(facts, unit ?? "", manager ?? "system", "Service", unitSettings(facts, gateway), pid);
};

const planOf = (
  { unit_directories }: Facts,
  unit: string,
  manager: ManagerName,
  section: UnitPlan["section"],
  settings: Setting[],
  pid: number | null,
): UnitPlan => {
  const directory = unit_directories[manager];
  const path = directory === null ? null : join(directory, `${unit}.d`, DROP_IN_NAME);
  return { unit, manager, section, path, settings, pid };
};

/** Each slice keeps the sum of what the gateways in it need. */
const slicePlans = (facts: Facts, services: readonly Gateway[]): UnitPlan[] => {
  if (!facts.has_memory_controller) return [];
  const inSlice = new Map<string, { manager: ManagerName; slice: string; gateways: Gateway[] }>();
  for (const gateway of services) {
    for (const slice of gateway.slices) {
      const manager = gateway.manager ?? "system";
      const key = aboveKey(manager, slice);
      inSlice.set(key, { manager, slice, gateways: [...(inSlice.get(key)?.gateways ?? []), gateway] });
    }
  }
  return [...inSlice].flatMap(([key, { manager, slice, gateways }]) => {
    const settings = sliceSettings(facts.above[key] ?? {}, sumOf(facts, gateways));
    return settings.length === 0 ? [] : [planOf(facts, slice, manager, "Slice", settings, null)];
  });
};

const sumOf = (facts: Facts, gateways: readonly Gateway[]): Protection =>
  gateways
    .map(({ rss_mb }) => protectionOf(rss_mb, facts.total_mb))
    .reduce((sum, { min_mb, low_mb }) => ({ min_mb: sum.min_mb + min_mb, low_mb: sum.low_mb + low_mb }), {
      min_mb: 0,
      low_mb: 0,
    });
