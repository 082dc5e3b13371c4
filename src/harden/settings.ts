/** The lines of a drop-in, each with its reason and with when it is in force. */
import type { Facts, Gateway, Properties } from "./facts.js";
import { situationOf } from "./facts.js";

export interface Setting {
  key: string;
  value: string;
  reason: string;
  /** In force after a reload of systemd, or only when the unit is started again. */
  from: "reload" | "restart";
  /** systemd says that this, or better, is in force. */
  is_set: boolean;
}

/** Memory that is kept for gateways, MiB. */
export interface Protection {
  min_mb: number;
  low_mb: number;
}

/** What a gateway holds after some turns, where there is no running one to look at. */
const USUAL_RSS_MB = 192;
const ROUND_MB = 16;
/** Of the machine's memory. What is kept for one is lost to the others. */
const MOST_MIN_SHARE = 0.25;
const MOST_LOW_SHARE = 0.35;
/** A turn needs more than rest: transcripts, attachments, a browser tool's pages. */
const TURN_FACTOR = 1.5;
/** What is in force already is good enough from this share on: the working set changes by the hour. */
const NEAR_ENOUGH = 0.6;
/** Takes a quarter of the machine's memory off what the kernel counts for it. */
const SYSTEM_OOM_SCORE_ADJ = -250;
const BYTES_PER_MB = 1_048_576;

const roundUp = (mb: number): number => Math.ceil(mb / ROUND_MB) * ROUND_MB;
const roundDown = (mb: number): number => Math.max(ROUND_MB, Math.floor(mb / ROUND_MB) * ROUND_MB);

export const protectionOf = (rss_mb: number | null, total_mb: number): Protection => {
  const used = rss_mb ?? USUAL_RSS_MB;
  return {
    min_mb: Math.min(roundUp(used), roundDown(total_mb * MOST_MIN_SHARE)),
    low_mb: Math.min(roundUp(used * TURN_FACTOR), roundDown(total_mb * MOST_LOW_SHARE)),
  };
};

/** What a unit's own settings should be. Properties that its systemd does not know are left out. */
export const unitSettings = (facts: Facts, gateway: Gateway): Setting[] => {
  const { properties } = gateway;
  if (properties === null) return [];
  const settings: Setting[] = [
    {
      key: "OOMPolicy",
      value: "continue",
      reason:
        "The default, stop, ends the whole unit when the kernel kills any one command in it for lack of memory, also when the whole machine is out of memory. With continue the command dies and the gateway lives on.",
      from: "reload",
      is_set: properties["OOMPolicy"] === "continue",
    },
    ...memorySettings(facts, gateway, properties),
    managedOomPreference(facts, gateway, properties),
    ...oomScoreAdjust(facts, gateway, properties),
  ];
  return settings.filter(({ key }) => properties[key] !== undefined);
};

const memorySettings = (facts: Facts, { rss_mb }: Gateway, properties: Properties): Setting[] => {
  if (!facts.has_memory_controller) return [];
  const { min_mb, low_mb } = protectionOf(rss_mb, facts.total_mb);
  const seen = rss_mb === null ? `${USUAL_RSS_MB} MB, as gateways usually do` : `${rss_mb} MB now`;
  return [
    {
      key: "MemoryMin",
      value: `${min_mb}M`,
      reason: `The gateway holds ${seen}. So much is never taken from it: not to give its pages to a job and read them again from the disk for minutes, but to have the job killed.`,
      from: "reload",
      is_set: isEnough(properties["MemoryMin"], min_mb),
    },
    {
      key: "MemoryLow",
      value: `${low_mb}M`,
      reason: "Half as much again for a turn, given up only when nothing else is left to take from.",
      from: "reload",
      is_set: isEnough(properties["MemoryLow"], low_mb),
    },
  ];
};

const managedOomPreference = (facts: Facts, gateway: Gateway, properties: Properties): Setting => {
  const byUser = situationOf(facts, gateway) === "user-unit" && gateway.manager_uid !== 0;
  const limits = byUser
    ? " It heeds that where it watches your user's own units for pressure (Ubuntu does), not where it acts on swap or on the whole machine: there only units of root are heard."
    : "";
  return {
    key: "ManagedOOMPreference",
    value: "avoid",
    reason: `systemd-oomd, where it runs, then takes this unit last.${limits}`,
    from: "reload",
    is_set: ["avoid", "omit"].includes(properties["ManagedOOMPreference"] ?? ""),
  };
};

const oomScoreAdjust = (facts: Facts, gateway: Gateway, properties: Properties): Setting[] => {
  const now = gateway.oom_score_adj;
  if (situationOf(facts, gateway) === "system-unit") {
    return [
      {
        key: "OOMScoreAdjust",
        value: String(SYSTEM_OOM_SCORE_ADJ),
        reason:
          "When the whole machine is out of memory the kernel kills the largest; this takes a quarter of the machine's memory off the gateway's account. Not lower, because light commands that it starts inherit it; heavy jobs do not, headroom raises theirs.",
        from: "restart",
        is_set: Number(properties["OOMScoreAdjust"] ?? 0) <= SYSTEM_OOM_SCORE_ADJ,
      },
    ];
  }
  const lowest = gateway.manager_oom_score_adj;
  if (lowest === null || now === null || lowest < 0 || now < lowest || (now === 0 && lowest === 0)) return [];
  // Configured and not yet started again is set as well.
  const isSet = now === lowest || properties["OOMScoreAdjust"] === String(lowest);
  if (isSet && properties["OOMScoreAdjust"] !== String(lowest)) return [];
  return [
    {
      key: "OOMScoreAdjust",
      value: String(lowest),
      reason: `A user's manager runs at ${lowest} and starts its units at ${now === lowest ? "more" : now}, so the kernel takes them before anything of the system. Lower than its own it may not go: ${lowest} is the best that a user unit can have.`,
      from: "restart",
      is_set: isSet,
    },
  ];
};

/** `infinity`, or a number of bytes. */
const bytesOf = (text: string | undefined): number =>
  text === "infinity" ? Number.POSITIVE_INFINITY : Number(/^\d+$/.test(text ?? "") ? text : 0);

const isEnough = (text: string | undefined, wanted_mb: number): boolean =>
  bytesOf(text) >= wanted_mb * BYTES_PER_MB * NEAR_ENOUGH;

/** What a slice above must keep for the units in it: without that their own protection counts for nothing. */
export const sliceSettings = (properties: Properties, { min_mb, low_mb }: Protection): Setting[] => {
  const reason =
    "What is kept for a unit counts only as far as the slice above it keeps as much (systemd.resource-control(5)).";
  return (["MemoryMin", "MemoryLow"] as const)
    .filter((key) => properties[key] !== undefined)
    .map((key) => {
      const wanted = key === "MemoryMin" ? min_mb : low_mb;
      return {
        key,
        value: `${wanted}M`,
        reason: key === "MemoryMin" ? reason : "The same.",
        from: "reload",
        is_set: isEnough(properties[key], wanted),
      };
    });
};
