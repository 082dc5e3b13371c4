/** Lightening for a command that is given as words, not as a text: no shell takes part. */
import type { Classification } from "../classify/classify.js";
import { readText } from "../shell/read.js";
import { isKnown } from "../shell/word.js";
import { lighten, type LightenOptions } from "./lighten.js";

export interface LightenedWords {
  words: string[];
  /** Variables to set for the command, the last one of a name counts. */
  variables: [string, string][];
  /** One line a change. */
  changes: string[];
}

/** `text` is the words, quoted; `classified` what was found in it. The words as they are where nothing changes. */
export const lightenWords = (
  words: readonly string[],
  text: string,
  classified: Classification,
  options: LightenOptions & { environment: Readonly<Record<string, string | undefined>> },
): LightenedWords => {
  const unchanged: LightenedWords = { words: [...words], variables: [], changes: [] };
  const result = lighten(text, classified, { ...options, environmentIsKnown: true });
  if (result.text === text) return unchanged;
  const { simples, problem } = readText(result.text);
  const [only] = simples;
  if (problem !== undefined || only === undefined || simples.length > 1) return unchanged;
  const isLiteral = [
    ...only.words.map(({ value }) => value),
    ...only.assignments.map(({ value }) => value.value),
  ].every(isKnown);
  if (!isLiteral) return unchanged;
  return {
    words: only.words.map(({ value }) => value),
    variables: only.assignments.map(({ name, value }) => [name, value.value]),
    changes: result.changes,
  };
};
