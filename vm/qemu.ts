/**
 * The command line of QEMU for one run.
 */
import { closeSync, ftruncateSync, openSync } from "node:fs";
import { join } from "node:path";
import type { GuestImage } from "./image.js";
import { SUITES } from "./suites.js";

export interface MachineOptions {
  image: GuestImage;
  /** Holds the sockets, the overlay and the folder `bed`. */
  runDir: string;
  memoryMb: number;
  cpus: number;
  kernelArgs: readonly string[];
  /** Size of a second disk for swap; 0 for none. */
  diskSwapMb: number;
  /** A file system image that is attached read-only; null for none. */
  dataDisk: string | null;
  shareDir: string | null;
  outDir: string | null;
}

/** Program and arguments. QEMU dies with the thread which starts it, and yields the CPU to others. */
export const qemuCommand = (options: MachineOptions): string[] => {
  const { image, runDir } = options;
  return [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "--",
    "nice",
    "-n",
    "5",
    "qemu-system-x86_64",
    "-no-user-config",
    "-nodefaults",
    "-display",
    "none",
    "-no-reboot",
    ...accelerator(),
    "-m",
    String(options.memoryMb),
    "-smp",
    String(options.cpus),
    "-kernel",
    image.kernel,
    "-initrd",
    image.initrd,
    "-append",
    kernelCommandLine(options),
    // snapshot=on: the overlay is an unlinked file in TMPDIR, gone with QEMU whatever ends it.
    "-drive",
    `file=${escape(image.disk)},if=virtio,format=raw,snapshot=on,cache=unsafe`,
    ...swapDisk(options),
    ...(options.dataDisk === null
      ? []
      : ["-drive", `file=${escape(options.dataDisk)},if=virtio,format=raw,readonly=on,cache=unsafe`]),
    "-chardev",
    `socket,id=console,path=${escape(join(runDir, "console.sock"))}`,
    "-serial",
    "chardev:console",
    "-device",
    "virtio-serial-pci,max_ports=2",
    "-chardev",
    `socket,id=script,path=${escape(join(runDir, "script.sock"))}`,
    "-device",
    "virtserialport,chardev=script,name=bed",
    ...share("host-bed", join(runDir, "bed"), true),
    ...(options.shareDir === null ? [] : share("host", options.shareDir, true)),
    ...(options.outDir === null ? [] : share("out", options.outDir, false)),
  ];
};

// A /dev/kvm may exist and still hang a stock guest, so it is only used on demand.
// la57=off: five-level page tables only cost time under emulation.
const accelerator = (): string[] =>
  process.env.HERMES_HEADROOM_TEST_ACCEL === "kvm"
    ? ["-accel", "kvm", "-cpu", "host"]
    : ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"];

const kernelCommandLine = ({ image, kernelArgs }: MachineOptions): string =>
  [
    "console=ttyS0",
    "quiet",
    "panic=-1",
    "psi=1",
    "mitigations=off",
    "audit=0",
    "systemd.show_status=0",
    ...SUITES[image.suite].kernelArgs,
    ...kernelArgs,
  ].join(" ");

const swapDisk = ({ diskSwapMb, runDir }: MachineOptions): string[] => {
  if (diskSwapMb === 0) return [];
  const path = join(runDir, "swap.img");
  const file = openSync(path, "w");
  ftruncateSync(file, diskSwapMb * 1024 * 1024);
  closeSync(file);
  return ["-drive", `file=${escape(path)},if=virtio,format=raw,cache=unsafe`];
};

const share = (tag: string, path: string, readOnly: boolean): string[] => [
  "-virtfs",
  `local,path=${escape(path)},mount_tag=${tag},security_model=none,multidevs=remap${readOnly ? ",readonly=on" : ""}`,
];

// QEMU's option lists take a doubled comma for one in a value.
const escape = (path: string): string => path.replaceAll(",", ",,");
