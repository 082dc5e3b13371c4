/** The modes in which tests can run here. What cannot run is printed, once, with the reason. */
import { probeModes, type UsableMode } from "../../src/modes/choose.js";
import type { Mode } from "../../src/modes/mode.js";
import { loadNative, type Native } from "../../src/native.js";

const loaded = loadNative();
if (!loaded) throw new Error("these tests need the native addon: run npm start first");
export const native: Native = loaded;

const probed = probeModes(native);

/** Usable modes that hold a job, best first. */
export const holdingModes: UsableMode[] = probed.usable.filter(({ mode }) => mode !== "off");

/** Usable modes with a kernel limit; empty for most users who are not root. */
export const kernelModes: UsableMode[] = holdingModes.filter(({ mode }) => mode !== "userspace");

/** Why a mode is not tested here. */
export const skipReason = (mode: Mode): string =>
  probed.unusable.find((unusable) => unusable.mode === mode)?.detail ?? "unknown";
