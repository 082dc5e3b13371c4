/** What each setting may be, and what it does. */
import { z } from "zod";
import type { SettingKey, Settings } from "./defaults.js";

/** 0 stands for «automatic» where a number says so. */
const megabytes = z.int().min(0).max(16_777_216);

/** Described for people in the order in which they are shown. */
const SettingsSchema = z.strictObject({
  mode: z.enum(["enforce", "observe", "off"]).describe("enforce; observe: only log what would be done; off"),
  max_heavy_jobs: z
    .int()
    .min(0)
    .max(64)
    .describe("heavy jobs at once, over all processes of this user; 0: by the memory of the machine"),
  reserve_mb: megabytes.describe("memory that stays free for the agent and the system; 0: 15 % of it, 256 to 2048"),
  job_memory_max_mb: megabytes.describe("the most that one job gets; 0: what is free"),
  swap_mb: z.int().min(-1).max(16_777_216).describe("swap of a job beyond its cap; -1: unlimited"),
  min_start_mb: megabytes.describe("memory above the reserve with which a job may start; 0: 10 % of it, 192 to 1024"),
  queue_timeout_s: z.int().min(0).max(86_400).describe("a job that has waited so long is refused"),
  critical_mb: megabytes.describe("below this much available memory the watchdog acts; 0: 5 % of it, 96 to 512"),
  lighten: z.boolean().describe("lower workers and cap Node's heap before a job runs"),
  isolate: z.boolean().describe("run jobs in a box with a memory cap"),
  extra_heavy_patterns: z
    .array(z.string().max(500))
    .max(100)
    .describe("regular expressions of commands that are heavy too"),
  exclude_patterns: z
    .array(z.string().max(500))
    .max(100)
    .describe("regular expressions of commands to leave alone; they win"),
});

/** The schema of one setting. */
export const settingSchema = (key: SettingKey): z.ZodType<Settings[SettingKey]> => SettingsSchema.shape[key];

/** What one setting is for. */
export const settingDescription = (key: SettingKey): string => SettingsSchema.shape[key].description ?? "";
