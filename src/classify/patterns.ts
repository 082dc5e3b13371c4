/** A user's own patterns. The engine takes linear time, so no pattern can hold up a command. */
import { RE2JS } from "re2js";

export interface Patterns {
  /** The pattern that makes a command heavy; `undefined` when none does. */
  extra(text: string): string | undefined;
  /** A pattern says that the command is to be left alone. */
  excludes(text: string): boolean;
}

export interface BadPattern {
  pattern: string;
  problem: string;
}

/** Longer texts are cut: a pattern is about a command, not about a program. */
const LONGEST_TEXT = 10_000;

const finds = (regex: RE2JS, text: string): boolean => regex.matcher(text.slice(0, LONGEST_TEXT)).find();

/** Patterns that are no regular expressions are left out and told. */
export const compilePatterns = (
  extra: readonly string[],
  exclude: readonly string[],
): { patterns: Patterns; bad: BadPattern[] } => {
  const bad: BadPattern[] = [];
  const compile = (source: string): { source: string; regex: RE2JS } | undefined => {
    try {
      return { source, regex: RE2JS.compile(source) };
    } catch (error) {
      bad.push({ pattern: source, problem: error instanceof Error ? error.message : String(error) });
      return undefined;
    }
  };
  const extras = extra.map(compile).filter((found) => found !== undefined);
  const excludes = exclude.map(compile).filter((found) => found !== undefined);
  return {
    patterns: {
      extra: (text) => extras.find(({ regex }) => finds(regex, text))?.source,
      excludes: (text) => excludes.some(({ regex }) => finds(regex, text)),
    },
    bad,
  };
};
