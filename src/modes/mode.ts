/** The ways to hold a job's memory. */

/** Every mode, best first. */
export const MODES = ["systemd-user", "systemd-system", "cgroup2", "cgroup1", "userspace", "off"] as const;

export type Mode = (typeof MODES)[number];

export const isMode = (word: string): word is Mode => (MODES as readonly string[]).includes(word);

/** Whether a kernel memory limit holds a job in this mode. */
export const isIsolated = (mode: Mode): boolean => mode !== "userspace" && mode !== "off";

/** One line for people. */
export const MODE_DESCRIPTIONS: Record<Mode, string> = {
  "systemd-user": "a leaf cgroup below a pool of the user's systemd manager",
  "systemd-system": "a leaf cgroup below a pool of the system's systemd manager",
  cgroup2: "a cgroup v2 directory of its own",
  cgroup1: "a cgroup v1 memory directory of its own",
  userspace: "no kernel limit: headroom watches the job and kills its biggest process at the cap",
  off: "nothing holds the job",
};
