/**
 * Unpacking a bzImage. QEMU starts the inner ELF kernel directly (PVH entry), which saves the
 * 3-4 s that the kernel's own decompressor takes under emulation.
 * Layout: Documentation/arch/x86/boot.rst (setup_sects, payload_offset, payload_length).
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const MAX_KERNEL_BYTES = 256 * 1024 * 1024;

/** The ELF kernel inside the bzImage at `path`, or null where the packing is unknown. */
export const unpackKernel = (path: string): Buffer | null => {
  const image = readFileSync(path);
  const setupSectors = image.readUInt8(0x1f1) || 4;
  const start = (setupSectors + 1) * 512 + image.readUInt32LE(0x248);
  const payload = image.subarray(start, start + image.readUInt32LE(0x24c));
  const tool = decompressor(payload);
  if (!tool) return null;
  // The last four bytes may be the unpacked size, which the tools report as trailing garbage: hence no check of the status.
  const { stdout } = spawnSync(tool, ["-dc"], { input: payload, maxBuffer: MAX_KERNEL_BYTES });
  return stdout?.subarray(0, 4).equals(Buffer.from("\x7fELF", "latin1")) ? stdout : null;
};

const decompressor = (payload: Buffer): string | null => {
  const magic = payload.subarray(0, 4).toString("hex");
  if (magic === "fd377a58") return "xz";
  if (magic === "28b52ffd") return "zstd";
  return null;
};
