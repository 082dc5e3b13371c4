/** Reads one value of a setting, from YAML or from text. */
import { z } from "zod";
import { defaultSettings, type SettingKey, type Settings } from "./defaults.js";
import { settingSchema } from "./schema.js";

export type ReadValue = { value: Settings[SettingKey] } | { problem: string };

const WORDS: Record<string, boolean> = {
  true: true,
  yes: true,
  on: true,
  "1": true,
  false: false,
  no: false,
  off: false,
  "0": false,
};

/** What is allowed, in words. */
const allowed = (key: SettingKey): string => {
  const json = z.toJSONSchema(settingSchema(key), { io: "input" }) as {
    type?: string;
    enum?: string[];
    minimum?: number;
    maximum?: number;
  };
  if (json.enum !== undefined) return json.enum.join(", ");
  if (json.type === "integer") return `a whole number from ${json.minimum} to ${json.maximum}`;
  if (json.type === "boolean") return "true or false";
  return "a list of texts";
};

/** Long values are cut: a message is for people. */
const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
};

/** A value as YAML gives it. */
export const readValue = (key: SettingKey, value: unknown): ReadValue => {
  const parsed = settingSchema(key).safeParse(value);
  // `null` is what YAML makes of a key without a value.
  if (parsed.success && value !== undefined && value !== null) return { value: parsed.data };
  return { problem: `${shown(value)} is not allowed: ${allowed(key)}` };
};

/** A value from the environment or the command line. Lists are JSON, or one item a line. */
export const readText = (key: SettingKey, text: string): ReadValue => {
  const trimmed = text.trim();
  const byDefault = defaultSettings()[key];
  if (typeof byDefault === "boolean") {
    const value = Object.hasOwn(WORDS, trimmed.toLowerCase()) ? WORDS[trimmed.toLowerCase()] : undefined;
    return value === undefined ? readValue(key, text) : { value };
  }
  if (typeof byDefault === "number") return readValue(key, /^-?\d{1,15}$/.test(trimmed) ? Number(trimmed) : text);
  if (!Array.isArray(byDefault)) return readValue(key, trimmed);
  if (!trimmed.startsWith("[")) return readValue(key, trimmed === "" ? [] : trimmed.split("\n"));
  try {
    return readValue(key, JSON.parse(trimmed));
  } catch {
    return readValue(key, text);
  }
};
