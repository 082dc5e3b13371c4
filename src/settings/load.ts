/** Settings in layers, the last wins: defaults, Hermes' config.yaml, environment, `--set`. */
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Patterns } from "../classify/patterns.js";
import { defaultSettings, SETTING_KEYS, type Settings } from "./defaults.js";
import type { ReadValue } from "./values.js";

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

/** One value to be read, and where it stands. */
interface GivenValue {
  where: string;
  key: string;
  /** From YAML; `text` from everywhere else. */
  value?: unknown;
  text?: string;
}

/** Never throws. Parsers and schemas are loaded only when there is something to read. */
export const loadSettings = async ({ environment, set = [] }: SettingsInput): Promise<LoadedSettings> => {
  const settings = defaultSettings();
  const config = await readConfig(hermesHome(environment));
  const problems: string[] = config.problem === undefined ? [] : [config.problem];
  const given: GivenValue[] = [
    // Warming has settings of its own.
    ...Object.entries(config.values).flatMap(([key, value]) =>
      key === "warming" ? [] : [{ where: config.path, key, value }],
    ),
    ...Object.entries(environment).flatMap(([name, text]) => fromEnvironment(name, text)),
    ...set.map((word): GivenValue => {
      const equals = word.indexOf("=");
      return equals < 1
        ? { where: "--set", key: word }
        : { where: "--set", key: word.slice(0, equals), text: word.slice(equals + 1) };
    }),
  ];
  if (given.length > 0) {
    const { readText, readValue } = await import("./values.js");
    for (const each of given) {
      const { where, key, text, value } = each;
      if (text === undefined && !("value" in each)) {
        problems.push(`${where} ${JSON.stringify(key)}: key=value is wanted`);
        continue;
      }
      const known = SETTING_KEYS.find((name) => name === key);
      if (known === undefined) {
        problems.push(`${where}: unknown setting ${JSON.stringify(key)}${suggestion(key)}`);
        continue;
      }
      const result: ReadValue = text === undefined ? readValue(known, value) : readText(known, text);
      if ("problem" in result)
        problems.push(`${where}: ${key}: ${result.problem}; ${JSON.stringify(settings[known])} stays in force`);
      else Object.assign(settings, { [known]: result.value });
    }
  }
  return { settings, ...(await compiled(settings, problems)), problems };
};

const fromEnvironment = (name: string, text: string | undefined): GivenValue[] => {
  const isOurs = name.startsWith(PREFIX) && !OTHER_VARIABLES.includes(name) && !name.startsWith("HEADROOM_WARMING_");
  if (!isOurs || text === undefined) return [];
  return [{ where: `environment ${name}`, key: name.slice(PREFIX.length).toLowerCase(), text }];
};

const compiled = async (settings: Settings, problems: string[]): Promise<{ patterns: Patterns | undefined }> => {
  const { extra_heavy_patterns: extra, exclude_patterns: exclude } = settings;
  if (extra.length + exclude.length === 0) return { patterns: undefined };
  const { compilePatterns } = await import("../classify/patterns.js");
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
const readConfig = async (home: string): Promise<Config> => {
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
    const { parse } = await import("yaml");
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
    // The parser's own words may quote the file, which holds secrets.
    const { code = "unreadable", linePos } = error as { code?: string; linePos?: { line: number }[] };
    const where = linePos?.[0] === undefined ? "" : ` at line ${linePos[0].line}`;
    return { path, values: {}, problem: `${path}: is no YAML: ${code}${where}; the defaults are in force` };
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
