/** What `harden` has to know before it can propose anything. Collected by `gather.ts`, judged by `policy.ts`. */

export type ManagerName = "system" | "user";

/** What systemd says of one unit: property by property, as text. A property that it does not know is not in it. */
export type Properties = Readonly<Record<string, string>>;

/** A running gateway, an installed unit of one, or both. Sizes in MiB. */
export interface Gateway {
  /** `null` where it runs outside of every unit. */
  unit: string | null;
  manager: ManagerName | null;
  /** Whose manager it is; `null` for the system's. */
  manager_uid: number | null;
  /** Slices of that manager, outermost first. */
  slices: readonly string[];
  session: string | null;
  /** `null` while it does not run. */
  pid: number | null;
  uid: number | null;
  rss_mb: number | null;
  oom_score_adj: number | null;
  /** The value of its manager, below which a user's manager cannot go. */
  manager_oom_score_adj: number | null;
  /** `null` where its manager could not be asked. */
  properties: Properties | null;
}

export interface Facts {
  /** Who runs this. */
  uid: number;
  user: string;
  total_mb: number;
  swap_total_mb: number;
  has_zram: boolean;
  board: string | null;
  container: string | null;
  is_systemd: boolean;
  /** cgroup v2 has the memory controller. */
  has_memory_controller: boolean;
  /** v1 has it instead. */
  has_v1_memory: boolean;
  /** Users that may linger, by name; one that is not in it could not be asked for. */
  linger: Readonly<Record<string, boolean>>;
  /** logind ends what a login left running; `null` where that is not known. */
  kills_user_processes: boolean | null;
  gateways: readonly Gateway[];
  /** Slices, and the units above a user's manager: `system user.slice` and so on. */
  above: Readonly<Record<string, Properties>>;
  /** Where drop-ins of each manager go; `null` where it has no place. */
  unit_directories: Readonly<Record<ManagerName, string | null>>;
}

/** How a gateway runs. `session` is every unit that is not its own: a login, tmux, a cron daemon. */
export type Situation = "user-unit" | "system-unit" | "session" | "container" | "bare";

export const situationOf = (facts: Facts, gateway: Gateway): Situation => {
  const { unit, manager } = gateway;
  if (isOwnUnit(gateway)) return manager === "user" ? "user-unit" : "system-unit";
  if (containerOf(facts, gateway) !== null) return "container";
  return unit === null ? "bare" : "session";
};

/** A shared unit is nobody's to harden for the gateway: it is its own by name, or when it is its main process. */
const isOwnUnit = ({ unit, pid, properties }: Gateway): boolean =>
  unit !== null &&
  unit.endsWith(".service") &&
  (/hermes/i.test(unit) || (pid !== null && properties?.["MainPID"] === String(pid)));

/** Scopes of container engines, as they are seen from the host. */
const CONTAINER_SCOPE = /^(docker|libpod)-[0-9a-f]{64}\.scope$/;

/** The kind of container that a gateway is in: ours, or one that is seen from outside. */
export const containerOf = ({ container }: Facts, { unit }: Gateway): string | null => {
  const engine = unit === null ? undefined : CONTAINER_SCOPE.exec(unit)?.[1];
  if (engine !== undefined) return engine === "docker" ? "docker" : "podman";
  return unit === null ? container : null;
};

/** The key of `Facts.above`. */
export const aboveKey = (manager: ManagerName, unit: string): string => `${manager} ${unit}`;

/** Units of the system's manager that a user's manager is in, outermost first. */
export const aboveUser = (uid: number): string[] => ["user.slice", `user-${uid}.slice`, `user@${uid}.service`];
