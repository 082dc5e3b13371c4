/** Every setting and its default. Apart from the schema, because most commands need no more than this. */

/** 0 stands for «automatic» where the schema says so. Sizes in MiB, times in seconds. */
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

export const defaultSettings = (): Settings => ({
  mode: "enforce",
  max_heavy_jobs: 0,
  reserve_mb: 0,
  job_memory_max_mb: 0,
  swap_mb: 256,
  min_start_mb: 0,
  queue_timeout_s: 300,
  critical_mb: 0,
  lighten: true,
  isolate: true,
  extra_heavy_patterns: [],
  exclude_patterns: [],
});

export const SETTING_KEYS: readonly SettingKey[] = Object.keys(defaultSettings()) as SettingKey[];
