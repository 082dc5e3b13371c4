/** Reads shell text. Bounded: a text that is too long or too deep is reported, never worked through. */
import { parse as parseBash, type ParsedScript } from "unbash";

/** Longer texts are programs that were pasted, not commands; reading them all would cost more than it saves. */
export const LONGEST_TEXT = 131_072;

/** Nested ones take the parser long. */
const MOST_SUBSTITUTIONS = 500;

export interface ParsedText {
  /** What could be read; with an error it is what stands before it, which bash would run too. */
  script: ParsedScript | undefined;
  /** Why the text must not be edited; `undefined` when it was read wholly. */
  problem: string | undefined;
}

/** Never throws. */
export const parseText = (text: string): ParsedText => {
  if (text.length > LONGEST_TEXT) {
    return { script: undefined, problem: `longer than ${LONGEST_TEXT} characters: not read` };
  }
  if ((text.match(/[<>$]\(/g)?.length ?? 0) > MOST_SUBSTITUTIONS) {
    return { script: undefined, problem: `more than ${MOST_SUBSTITUTIONS} substitutions: not read` };
  }
  try {
    const script = parseBash(text);
    const [error] = script.errors ?? [];
    // What is too deep is slow to walk as well, and nobody's command.
    if (error?.message.startsWith("maximum ")) return { script: undefined, problem: `${error.message}: not read` };
    if (error !== undefined) return { script, problem: `does not parse: ${error.message} at ${error.pos}` };
    // Bash takes a carriage return as part of the word before it, so nothing may be put behind one.
    return { script, problem: text.includes("\r") ? "has carriage returns" : undefined };
  } catch (error) {
    return { script: undefined, problem: `does not parse: ${error instanceof Error ? error.message : String(error)}` };
  }
};
