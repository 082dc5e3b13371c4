/** Settings in layers, the last wins: defaults, Hermes' config.yaml, environment, `--set`. */
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { compilePatterns, type Patterns } from "../classify/patterns.js";
import { defaultSettings, SETTING_KEYS, type SettingKey, type Settings } from "./schema.js";
import { readText, readValue, type ReadValue } from "./values.js";

export interface LoadedSettings {
  settings: Settings;
  /** `undefined` where no pattern is set, so that the first filter can be used. */
  patterns: Patterns | undefined;
  /** One line each: where, which key, what was given, what is allowed. What was in force before stays so. */
  problems: string[];
}

export interface SettingsInput {
  environment: Readonly<Record<string, string | undefined>>;
  /** `key=value` words of `--set`, in their order. */
  set?: readonly string[];
}

/** A configuration larger than that is not one. */
const LARGEST_CONFIG_BYTES = 1_048_576;
const PREFIX = "HEADROOM_";
/** Variables of ours that are no settings. */
const OTHER_VARIABLES = ["HEADROOM_JOB_ID"];

/** Never throws. */
export const loadSettings = ({ environment, set = [] }: SettingsInput): LoadedSettings => {
  const settings = defaultSettings();
  const problems: string[] = [];
  const apply = (where: string, key: string, read: (known: SettingKey) => ReadValue): void => {
    const known = SETTING_KEYS.find((name) => name === key);
    if (known === undefined) {
      problems.push(`${where}: unknown setting ${JSON.stringify(key)}${suggestion(key)}`);
      return;
    }
    const result = read(known);
    if ("problem" in result)
      problems.push(`${where}: ${key}: ${result.problem}; ${JSON.stringify(settings[known])} stays in force`);
    else Object.assign(settings, { [known]: result.value });
  };
  const config = readConfig(hermesHome(environment));
  if (config.problem !== undefined) problems.push(config.problem);
  for (const [key, value] of Object.entries(config.values)) {
    // Warming has settings of its own.
    if (key !== "warming") apply(config.path, key, (known) => readValue(known, value));
  }
  for (const [name, text] of Object.entries(environment)) {
    if (
      !name.startsWith(PREFIX) ||
      text === undefined ||
      OTHER_VARIABLES.includes(name) ||
      name.startsWith("HEADROOM_WARMING_")
    )
      continue;
    apply(`environment ${name}`, name.slice(PREFIX.length).toLowerCase(), (known) => readText(known, text));
  }
  for (const word of set) {
    const equals = word.indexOf("=");
    if (equals < 1) problems.push(`--set ${JSON.stringify(word)}: key=value is wanted`);
    else apply("--set", word.slice(0, equals), (known) => readText(known, word.slice(equals + 1)));
  }
  return { settings, ...compiled(settings, problems), problems };
};

const compiled = (settings: Settings, problems: string[]): { patterns: Patterns | undefined } => {
  const { extra_heavy_patterns: extra, exclude_patterns: exclude } = settings;
  if (extra.length + exclude.length === 0) return { patterns: undefined };
  const { patterns, bad } = compilePatterns(extra, exclude);
  problems.push(
    ...bad.map(
      ({ pattern, problem }) =>
        `the pattern ${JSON.stringify(pattern)} is no regular expression (${problem}); it is left out`,
    ),
  );
  return { patterns };
};

/** Where Hermes keeps its things. */
export const hermesHome = (environment: Readonly<Record<string, string | undefined>>): string =>
  environment["HERMES_HOME"] || join(environment["HOME"] || homedir(), ".hermes");

interface Config {
  path: string;
  values: Record<string, unknown>;
  problem?: string;
}

/** `plugins.entries.headroom.settings` of config.yaml. */
const readConfig = (home: string): Config => {
  const path = join(home, "config.yaml");
  let text: string;
  try {
    const stat = statSync(path);
    if (!stat.isFile() || stat.size > LARGEST_CONFIG_BYTES) {
      return {
        path,
        values: {},
        problem: `${path}: not read, it is ${stat.isFile() ? "larger than 1 MB" : "no regular file"}; the defaults are in force`,
      };
    }
    text = readFileSync(path, "utf8");
  } catch (error) {
    const isMissing = ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
    return {
      path,
      values: {},
      ...(isMissing
        ? {}
        : { problem: `${path}: cannot be read: ${(error as Error).message}; the defaults are in force` }),
    };
  }
  try {
    // Most commands need no YAML at all: cheaper to look first.
    if (!text.includes("headroom")) return { path, values: {} };
    const found = dig(parse(text, { maxAliasCount: 100, logLevel: "error" }), [
      "plugins",
      "entries",
      "headroom",
      "settings",
    ]);
    if (found === undefined || found === null) return { path, values: {} };
    if (typeof found !== "object" || Array.isArray(found)) {
      return {
        path,
        values: {},
        problem: `${path}: plugins.entries.headroom.settings: a mapping is wanted; the defaults are in force`,
      };
    }
    return { path, values: { ...found } };
  } catch (error) {
    const [first = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { path, values: {}, problem: `${path}: is no YAML: ${first}; the defaults are in force` };
  }
};

const dig = (value: unknown, keys: readonly string[]): unknown => {
  let found = value;
  for (const key of keys) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
};

const suggestion = (key: string): string => {
  const [nearest] = SETTING_KEYS.map((name) => ({
    name,
    distance: distanceOf(key.toLowerCase().slice(0, 40), name),
  })).toSorted((a, b) => a.distance - b.distance);
  return nearest !== undefined && nearest.distance <= 4 ? `; did you mean ${nearest.name}?` : "";
};

/** Edits between two words (Levenshtein). */
const distanceOf = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      next.push(
        Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
};
