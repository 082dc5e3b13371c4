/** Every setting: its type, its default, what it does. The one place where they are defined. */
import { z } from "zod";

/** 0 stands for «automatic» where a number says so. */
const megabytes = z.int().min(0).max(16_777_216);

/** Described for people in the order in which they are shown. */
const SettingsSchema = z.strictObject({
  mode: z
    .enum(["enforce", "observe", "off"])
    .default("enforce")
    .describe("enforce; observe: only log what would be done; off"),
  max_heavy_jobs: z
    .int()
    .min(0)
    .max(64)
    .default(0)
    .describe("heavy jobs at once, over all processes of this user; 0: by the memory of the machine"),
  reserve_mb: megabytes
    .default(0)
    .describe("memory that stays free for the agent and the system; 0: 15 % of it, 256 to 2048"),
  job_memory_max_mb: megabytes.default(0).describe("the most that one job gets; 0: what is free"),
  swap_mb: z.int().min(-1).max(16_777_216).default(256).describe("swap of a job beyond its cap; -1: unlimited"),
  min_start_mb: megabytes
    .default(0)
    .describe("memory above the reserve with which a job may start; 0: 10 % of it, 192 to 1024"),
  queue_timeout_s: z.int().min(0).max(86_400).default(300).describe("a job that has waited so long is refused"),
  critical_mb: megabytes
    .default(0)
    .describe("below this much available memory the watchdog acts; 0: 5 % of it, 96 to 512"),
  lighten: z.boolean().default(true).describe("lower workers and cap Node's heap before a job runs"),
  isolate: z.boolean().default(true).describe("run jobs in a box with a memory cap"),
  extra_heavy_patterns: z
    .array(z.string().max(500))
    .max(100)
    .default([])
    .describe("regular expressions of commands that are heavy too"),
  exclude_patterns: z
    .array(z.string().max(500))
    .max(100)
    .default([])
    .describe("regular expressions of commands to leave alone; they win"),
});

export interface Settings {
  mode: "enforce" | "observe" | "off";
  max_heavy_jobs: number;
  reserve_mb: number;
  job_memory_max_mb: number;
  swap_mb: number;
  min_start_mb: number;
  queue_timeout_s: number;
  critical_mb: number;
  lighten: boolean;
  isolate: boolean;
  extra_heavy_patterns: string[];
  exclude_patterns: string[];
}

export type SettingKey = keyof Settings;

export const SETTING_KEYS: readonly SettingKey[] = Object.keys(SettingsSchema.shape) as SettingKey[];

export const defaultSettings = (): Settings => SettingsSchema.parse({});

/** The schema of one setting; a missing value gives its default. */
export const settingSchema = (key: SettingKey): z.ZodType<Settings[SettingKey]> => SettingsSchema.shape[key];

/** What one setting is for. */
export const settingDescription = (key: SettingKey): string => SettingsSchema.shape[key].description ?? "";
