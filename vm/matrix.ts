/** What is tested in guests: boots, the situations in each, and what is expected there. */
import type { GuestOptions } from "./guest.js";
import type { Suite } from "./suites.js";

/** A way an agent can be running; a function of in-guest/lib.sh. */
export type Situation =
  | "as_user_service"
  | "as_session"
  | "as_system_service_user"
  | "as_root"
  | "in_container"
  | "in_readonly_container"
  | "in_readonly_cgroupfs"
  | "in_container_with_bus"
  | "in_sandbox";

/**
 * What is checked once a boot, after the situations: three greedy jobs beside a heartbeat, runs that take turns, logins
 * that come and go, a machine that runs short, a real Hermes with the plugin and one without.
 */
export type Extra = "greedy" | "turns" | "logins" | "watchdog" | "hermes" | "unprotected";

export interface Cell {
  situation: Situation;
  /** The mode that must be chosen. */
  mode: "systemd-user" | "systemd-system" | "cgroup2" | "userspace";
}

export interface Boot {
  name: string;
  suite: Suite;
  /** Part of the short matrix. */
  isShort: boolean;
  /** It needs the disk with Hermes. */
  hasHermes?: true;
  options: Partial<Pick<GuestOptions, "kernelArgs" | "swap" | "swapMb" | "userManager" | "memoryMb">>;
  cells: Cell[];
  extras?: Extra[];
}

const USUAL: Cell[] = [
  { situation: "as_user_service", mode: "systemd-user" },
  { situation: "as_session", mode: "systemd-user" },
  { situation: "as_system_service_user", mode: "systemd-user" },
  { situation: "as_root", mode: "systemd-system" },
];

const CONTAINERS: Cell[] = [
  { situation: "in_container", mode: "cgroup2" },
  { situation: "in_readonly_container", mode: "userspace" },
  // The files cannot be written, the system's manager can be asked: the unit itself is the box.
  { situation: "in_readonly_cgroupfs", mode: "systemd-system" },
];

const usual = (suite: Suite, isShort: boolean): Boot => ({
  name: `${suite}`,
  suite,
  isShort,
  options: {},
  cells: USUAL,
  extras: ["turns", "logins"],
});

/** Every boot. The short matrix is what continuous integration runs. */
export const BOOTS: readonly Boot[] = [
  usual("bookworm", true),
  usual("trixie", true),
  usual("bullseye", false),
  {
    name: "bookworm, containers",
    suite: "bookworm",
    isShort: true,
    options: { userManager: "none" },
    cells: CONTAINERS,
  },
  {
    name: "bookworm, other pid namespaces",
    suite: "bookworm",
    isShort: true,
    options: {},
    cells: [
      { situation: "in_container_with_bus", mode: "cgroup2" },
      { situation: "in_sandbox", mode: "userspace" },
    ],
  },
  {
    name: "bookworm, no memory controller, no PSI",
    suite: "bookworm",
    isShort: true,
    options: { kernelArgs: ["cgroup_disable=memory", "psi=0"] },
    cells: [
      { situation: "as_user_service", mode: "userspace" },
      { situation: "as_session", mode: "userspace" },
      { situation: "as_root", mode: "userspace" },
    ],
  },
  {
    name: "trixie, no memory controller",
    suite: "trixie",
    isShort: false,
    options: { kernelArgs: ["cgroup_disable=memory"] },
    cells: [
      { situation: "as_user_service", mode: "userspace" },
      { situation: "as_root", mode: "userspace" },
    ],
  },
  {
    name: "bookworm, no user bus",
    suite: "bookworm",
    isShort: false,
    options: { userManager: "no-bus" },
    cells: [
      { situation: "as_user_service", mode: "cgroup2" },
      { situation: "as_system_service_user", mode: "userspace" },
    ],
  },
  {
    name: "bookworm, no PSI",
    suite: "bookworm",
    isShort: false,
    options: { kernelArgs: ["psi=0"] },
    cells: [{ situation: "as_user_service", mode: "systemd-user" }],
  },
  {
    name: "bookworm, zram, greedy jobs",
    suite: "bookworm",
    isShort: true,
    options: { swap: "zram", swapMb: 512 },
    cells: [],
    extras: ["greedy"],
  },
  {
    name: "trixie, disk swap, greedy jobs",
    suite: "trixie",
    isShort: false,
    options: { swap: "disk", swapMb: 512 },
    cells: [],
    extras: ["greedy"],
  },
  {
    name: "bookworm, Hermes",
    suite: "bookworm",
    isShort: false,
    hasHermes: true,
    options: {},
    cells: [],
    extras: ["hermes"],
  },
  {
    name: "bookworm, Hermes without the plugin",
    suite: "bookworm",
    isShort: false,
    hasHermes: true,
    options: {},
    cells: [],
    extras: ["unprotected"],
  },
  {
    name: "bookworm, runs short",
    suite: "bookworm",
    isShort: false,
    options: {},
    cells: [],
    extras: ["watchdog"],
  },
  {
    name: "bookworm, runs short, disk swap",
    suite: "bookworm",
    isShort: false,
    options: { swap: "disk", swapMb: 1024 },
    cells: [],
    extras: ["watchdog"],
  },
];
