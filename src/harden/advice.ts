/** What a person has to do by hand: in words, and as lines to type. Pure. */
import { obstacleFix } from "../modes/fix.js";
import { aboveKey, aboveUser, containerOf, situationOf, type Facts, type Gateway } from "./facts.js";
import { sliceSettings, type Protection } from "./settings.js";
import { swapAdvice } from "./swap.js";

export interface Advice {
  /** One word, stable. */
  topic: string;
  text: string;
  /** Lines to type, as they are. */
  lines: string[];
}

export const adviseOn = (facts: Facts, userProtection: Protection): Advice[] => {
  const all = [
    ...noGateway(facts),
    ...facts.gateways.flatMap((gateway) => bySituation(facts, gateway)),
    ...lingerUnknown(facts),
    ...aboveUsersManager(facts, userProtection),
    ...memoryController(facts),
    ...swapAdvice(facts),
  ];
  // Two gateways in tmux need the same words once.
  return all.filter(({ text }, index) => all.findIndex((other) => other.text === text) === index);
};

const noGateway = ({ gateways, is_systemd, container }: Facts): Advice[] => {
  if (gateways.length > 0) return [];
  const text = "No gateway of Hermes runs here, and no unit hermes-gateway*.service is installed.";
  return [
    is_systemd && container === null
      ? { topic: "gateway", text: `${text} As a user unit it is started again when it ends:`, lines: INSTALL }
      : { topic: "gateway", text, lines: [] },
  ];
};

const INSTALL = ["hermes gateway install", "hermes gateway start"];

const bySituation = (facts: Facts, gateway: Gateway): Advice[] => {
  switch (situationOf(facts, gateway)) {
    case "user-unit":
      return gateway.properties === null ? [otherUser(facts, gateway)] : [];
    case "system-unit":
      return systemUnit(facts, gateway);
    case "session":
      return [inSession(facts, gateway)];
    case "container":
      return [inContainer(facts, gateway)];
    case "bare":
      return [bare(facts, gateway)];
  }
};

const otherUser = ({ uid }: Facts, { unit, manager_uid, pid }: Gateway): Advice =>
  manager_uid === uid
    ? {
        topic: "manager",
        text: `Your user's systemd manager does not answer, so ${unit} (pid ${pid}) can neither be looked at nor changed.`,
        lines: [`systemctl --user status ${unit}`],
      }
    : {
        topic: "other-user",
        text: `${unit} (pid ${pid}) belongs to the manager of user ${manager_uid}: run this as that user, for example in a login of theirs.`,
        lines: [],
      };

const systemUnit = (facts: Facts, { unit, properties }: Gateway): Advice[] => {
  if (properties === null) {
    return [
      {
        topic: "manager",
        text: `systemd does not answer, so ${unit} can neither be looked at nor changed.`,
        lines: [],
      },
    ];
  }
  const user = properties["User"] ?? "";
  if (user === "" || user === "root" || facts.linger[user] !== false) return [];
  return [
    {
      topic: "linger",
      text: `${unit} runs as ${user}, who has no systemd manager without a login. Hermes starts cron jobs, and headroom its boxes, by that manager:`,
      lines: [`sudo loginctl enable-linger ${user}`],
    },
  ];
};

const inSession = ({ user, kills_user_processes, linger }: Facts, { unit, session, pid }: Gateway): Advice => {
  const where = session === null ? `in ${unit}` : `in the login session ${session}`;
  const fate =
    kills_user_processes === true
      ? "logind ends it with the session (KillUserProcesses=yes), in tmux as well."
      : "Nobody starts it again when it ends, and not after a reboot.";
  const lingering = linger[user] === true ? [] : [`loginctl enable-linger ${user}`];
  return {
    topic: "session",
    text: `The gateway (pid ${pid}) runs ${where}, not as a unit of its own. ${fate} End it there, then run it as a user unit, and this command once more:`,
    lines: [...INSTALL, ...lingering],
  };
};

const RESERVE_SHARE = 0.15;
const SMALLEST_RESERVE_MB = 256;

/** Whoever owns the container decides; from within, only words. */
const inContainer = (facts: Facts, gateway: Gateway): Advice => {
  const { total_mb } = facts;
  const { pid } = gateway;
  const container = containerOf(facts, gateway);
  const reserve = Math.max(SMALLEST_RESERVE_MB, Math.ceil(total_mb * RESERVE_SHARE));
  const limit = Math.max(SMALLEST_RESERVE_MB, total_mb - reserve);
  const swap = limit + Math.min(1024, limit);
  const start = `The gateway (pid ${pid}) runs in a container (${container}); its memory is decided outside. There`;
  if (container === "docker") {
    return {
      topic: "container",
      text: `${start} limit it, so that it cannot take the host along, and let it be started again (NAME is the container's). Only a new container can be given a score (in Compose: oom_score_adj; the others are mem_limit, memswap_limit, restart) and writable cgroups, in which the kernel holds headroom's boxes:`,
      lines: [
        `docker update --memory ${limit}m --memory-swap ${swap}m --restart unless-stopped NAME`,
        "docker run --oom-score-adj -250 --security-opt writable-cgroups=true …",
      ],
    };
  }
  if (container === "podman") {
    return {
      topic: "container",
      text: `${start} make it anew with a limit, so that it cannot take the host along, a restart policy, and, where root runs it, a score:`,
      lines: [`podman run --memory ${limit}m --memory-swap ${swap}m --restart unless-stopped --oom-score-adj -250 …`],
    };
  }
  if (container === "lxc") {
    return {
      topic: "container",
      text: `${start} give it a limit and swap, and start it at boot (Proxmox; ID is the container's):`,
      lines: [`pct set ID --memory ${limit} --swap ${Math.min(1024, limit)} --onboot 1`],
    };
  }
  return {
    topic: "container",
    text: `${start} set a memory limit of ${limit} MB, swap of ${swap - limit} MB beyond it, a restart policy, and an oom_score_adj of -250.`,
    lines: [],
  };
};

const bare = ({ is_systemd }: Facts, { pid, oom_score_adj }: Gateway): Advice => ({
  topic: "bare",
  text: `The gateway (pid ${pid}) runs outside of every unit${is_systemd ? "" : "; this system's first process is not systemd"}. Its own score (${oom_score_adj} now) can be lowered until it ends, by root:`,
  lines: [`echo -250 | sudo tee /proc/${pid}/oom_score_adj`],
});

const lingerUnknown = ({ user, linger, gateways, is_systemd }: Facts): Advice[] => {
  const isAsked = is_systemd && gateways.some(({ manager, properties }) => manager === "user" && properties !== null);
  if (!isAsked || linger[user] !== undefined) return [];
  return [
    {
      topic: "linger",
      text: "logind does not tell whether your user lingers. Without that the gateway ends with your last login:",
      lines: [`loginctl enable-linger ${user}`],
    },
  ];
};

/** Above a user's manager only root may keep memory; without it what the unit keeps counts only within the user's own. */
const aboveUsersManager = (facts: Facts, protection: Protection): Advice[] => {
  if (!facts.has_memory_controller || protection.min_mb === 0) return [];
  const lines = aboveUser(facts.uid).flatMap((unit) => {
    const settings = sliceSettings(facts.above[aboveKey("system", unit)] ?? {}, protection);
    const missing = settings.filter(({ is_set }) => !is_set).map(({ key, value }) => `${key}=${value}`);
    return missing.length === 0 ? [] : [`sudo systemctl set-property ${unit} ${missing.join(" ")}`];
  });
  if (lines.length === 0) return [];
  return [
    {
      topic: "above",
      text: "MemoryMin and MemoryLow of a user unit count against the rest of the machine only if the units above your user's manager keep as much. That takes root and is in force at once; the same with 0 for each undoes it:",
      lines,
    },
  ];
};

const memoryController = ({ has_memory_controller, has_v1_memory, container, gateways }: Facts): Advice[] => {
  const isInUnit = gateways.some(({ properties }) => properties !== null);
  if (has_memory_controller || (container !== null && !isInUnit)) return [];
  const fix = obstacleFix("cgroup2", "no-memory-controller", has_v1_memory) ?? "";
  const what = "systemd has no memory controller here, so MemoryMin and MemoryLow would do nothing and are left out.";
  const text =
    container === null ? `${what} ${fix} Then run this command again.` : `${what} The container's host decides.`;
  return [{ topic: "memory-controller", text, lines: [] }];
};
