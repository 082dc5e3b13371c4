/** What a person can do to get a better mode. */
import { userInfo } from "node:os";
import type { Mode } from "./mode.js";

const NO_MEMORY_CONTROLLER =
  "On a Raspberry Pi append cgroup_enable=memory to the line in /boot/firmware/cmdline.txt and reboot; elsewhere boot without cgroup_disable=memory.";
const CONTROLLER_ON_V1 =
  "This system has the memory controller on cgroup v1: boot with cgroup_no_v1=memory (with systemd: systemd.unified_cgroup_hierarchy=1) to have it on v2.";
const DELEGATION =
  "Start the agent where the memory controller is delegated to it: as a systemd service with Delegate=yes, or in a container with writable cgroups (docker run --security-opt writable-cgroups=true).";

/**
 * The exact line to type or change, where one is known.
 *
 * `hasV1` says that a v1 memory hierarchy is mounted: the controller is then there and not on v2.
 */
export const obstacleFix = (mode: Mode, obstacle: string, hasV1: boolean): string | undefined => {
  switch (obstacle) {
    case "no-memory-controller":
      return hasV1 ? CONTROLLER_ON_V1 : NO_MEMORY_CONTROLLER;
    case "no-bus":
      return mode === "systemd-user" ? `loginctl enable-linger ${userName()}` : undefined;
    case "unsafe-bus":
      return "Unset XDG_RUNTIME_DIR or set it to this user's own directory, usually /run/user/UID.";
    case "read-only":
    case "occupied":
      return DELEGATION;
    case "not-permitted":
      return mode === "cgroup1" ? "Run as root: a v1 hierarchy cannot be delegated safely." : DELEGATION;
    default:
      return undefined;
  }
};

/** A container may run as a user without a name. */
const userName = (): string => {
  try {
    return userInfo().username;
  } catch {
    return "NAME";
  }
};
