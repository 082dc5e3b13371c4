/** The corpora: commands with what is right for them. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface ClassifyCase {
  command: string;
  heavy: boolean;
  kind?: string;
  note?: string;
}

export interface LightenCase {
  command: string;
  profile: { cpus: number; cap_mb: number };
  env?: Record<string, string>;
  files?: Record<string, string>;
  unchanged?: true;
  runs?: { argv: string[]; env?: Record<string, string> }[];
  note?: string;
}

const readLines = <T>(name: string): T[] =>
  readFileSync(fileURLToPath(new URL(`../corpus/${name}`, import.meta.url)), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);

export const CLASSIFY_FILES: readonly string[] = ["classify.jsonl", "classify-more.jsonl"];
export const LIGHTEN_FILES: readonly string[] = ["lighten.jsonl", "lighten-more.jsonl"];

export const classifyCases = (name: string): ClassifyCase[] => readLines<ClassifyCase>(name);
export const lightenCases = (name: string): LightenCase[] => readLines<LightenCase>(name);

/** Every command of every corpus. */
export const allCommands = (): string[] => [
  ...CLASSIFY_FILES.flatMap((name) => classifyCases(name).map(({ command }) => command)),
  ...LIGHTEN_FILES.flatMap((name) => lightenCases(name).map(({ command }) => command)),
];
