/** Facts of machines that tests speak of. */
import type { Facts, Gateway, Properties } from "../../src/harden/facts.js";

/** What systemd 252 shows of a unit that says nothing of memory. */
export const BARE: Properties = {
  User: "",
  Slice: "app.slice",
  OOMPolicy: "stop",
  MemoryMin: "0",
  MemoryLow: "0",
  ManagedOOMPreference: "none",
  OOMScoreAdjust: "200",
};

const MB = 1_048_576;
export const bytes = (mb: number): string => String(mb * MB);

export const userGateway = (changes: Partial<Gateway> = {}): Gateway => ({
  unit: "hermes-gateway.service",
  manager: "user",
  manager_uid: 1000,
  slices: ["app.slice"],
  session: null,
  pid: 4711,
  uid: 1000,
  rss_mb: 150,
  oom_score_adj: 200,
  manager_oom_score_adj: 100,
  properties: BARE,
  ...changes,
});

export const systemGateway = (changes: Partial<Gateway> = {}): Gateway => ({
  ...userGateway(),
  manager: "system",
  manager_uid: null,
  slices: ["system.slice"],
  oom_score_adj: 0,
  manager_oom_score_adj: null,
  properties: { ...BARE, User: "hermes", Slice: "system.slice", OOMScoreAdjust: "0" },
  ...changes,
});

/** A VPS of 1 GB with swap, where nothing is missing around the gateway. */
export const factsOf = (changes: Partial<Facts> = {}): Facts => ({
  uid: 1000,
  user: "hermes",
  total_mb: 960,
  swap_total_mb: 1024,
  has_zram: false,
  board: null,
  container: null,
  is_systemd: true,
  has_memory_controller: true,
  has_v1_memory: false,
  linger: { hermes: true },
  kills_user_processes: false,
  gateways: [userGateway()],
  above: {
    "user app.slice": { MemoryMin: "0", MemoryLow: "0" },
    "system system.slice": { MemoryMin: "0", MemoryLow: "0" },
    "system user.slice": { MemoryMin: "0", MemoryLow: "0" },
    "system user-1000.slice": { MemoryMin: "0", MemoryLow: "0" },
    "system user@1000.service": { MemoryMin: "0", MemoryLow: "0" },
  },
  unit_directories: { system: "/etc/systemd/system", user: "/home/hermes/.config/systemd/user" },
  ...changes,
});
