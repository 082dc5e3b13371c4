/** Slots whose files the addon keeps. */
import type { Native } from "../native.js";
import type { SlotDescription, Slots } from "./slots.js";

/** What a file says about its holder. Anybody with our uid could have written it: only what fits counts. */
const readDescription = (pid: number | null, text: string | null): SlotDescription | undefined => {
  try {
    const value = JSON.parse(text ?? "") as Partial<Record<keyof SlotDescription, unknown>>;
    if (typeof value !== "object" || value === null) return undefined;
    const { command, kind, since_ms, cap_mb, reason } = value;
    return {
      pid: pid ?? 0,
      command: typeof command === "string" ? command : "?",
      kind: typeof kind === "string" ? kind : "custom",
      since_ms: typeof since_ms === "number" ? since_ms : 0,
      cap_mb: typeof cap_mb === "number" ? cap_mb : null,
      reason: typeof reason === "string" ? reason : null,
    };
  } catch {
    return undefined;
  }
};

export const nativeSlots = (native: Native, runtimeDir: string): Slots => ({
  join: (limit, description) => {
    const queue = native.SlotQueue.join(runtimeDir, limit, JSON.stringify(description));
    return {
      tryTake: () => queue.tryTake(),
      describe: (next) => void queue.describe(JSON.stringify(next)),
      leave: () => queue.leave(),
    };
  },
  list: () => {
    const { holders, waiting } = native.listSlots(runtimeDir);
    const read = (users: typeof holders): SlotDescription[] =>
      users.flatMap(({ pid, description }) => readDescription(pid, description) ?? []);
    return { holders: read(holders), waiting: read(waiting) };
  },
});
