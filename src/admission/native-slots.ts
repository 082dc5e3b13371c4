/** Slots whose files the addon keeps. */
import type { Native } from "../native.js";
import type { SlotDescription, Slots, SlotUser } from "./slots.js";

type NativeUser = ReturnType<Native["listSlots"]>["holders"][number];

/** What a file says about its holder. Anybody with our uid could have written it: only what fits counts. */
const readDescription = (pid: number | null, text: string | null): SlotDescription | undefined => {
  try {
    const value = JSON.parse(text ?? "") as Partial<Record<keyof SlotDescription, unknown>> | null;
    if (pid === null || typeof value !== "object" || value === null) return undefined;
    const { id, command, kind, since_ms, cap_mb, reason, job } = value;
    if (typeof command !== "string" || typeof since_ms !== "number") return undefined;
    return {
      pid,
      id: typeof id === "string" ? id : String(pid),
      command,
      kind: typeof kind === "string" ? kind : "custom",
      since_ms,
      cap_mb: typeof cap_mb === "number" ? cap_mb : null,
      reason: typeof reason === "string" ? reason : null,
      job: typeof job === "string" ? job : null,
    };
  } catch {
    return undefined;
  }
};

const NOTHING_KNOWN = { id: null, command: null, kind: null, since_ms: null, cap_mb: null, reason: null, job: null };

const readUser = ({ pid, alive, stopped, description }: NativeUser): SlotUser => {
  const life = { isAlive: alive, isStopped: stopped };
  const known = readDescription(pid, description);
  return known === undefined
    ? { ...life, isKnown: false, pid, ...NOTHING_KNOWN }
    : { ...life, isKnown: true, ...known };
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
    return { holders: holders.map(readUser), waiting: waiting.map(readUser) };
  },
});
