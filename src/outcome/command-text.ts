/** A command as people read it. */
import { quoteWords } from "../shell/quote.js";
import { maskSecrets } from "./mask.js";

/** Longer text helps nobody in a list, and bounds the work of masking. */
const LONGEST_TEXT = 2000;

/** Control characters could make a terminal do things, and break lists apart. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]/g;

const escapeControl = (character: string): string => {
  if (character === "\n") return "\\n";
  if (character === "\t") return "\\t";
  return `\\x${character.codePointAt(0)?.toString(16).padStart(2, "0")}`;
};

/** Words joined as a shell would take them, on one line, secrets masked. */
export const commandText = (words: readonly string[]): string =>
  withoutControls(maskSecrets(quoteWords(words).slice(0, LONGEST_TEXT)));

/** The text with its control characters written out. */
export const withoutControls = (text: string): string => text.replaceAll(CONTROL, escapeControl);

/** A text for a shell as people read it: on one line, secrets masked. */
export const shellText = (text: string): string => withoutControls(maskSecrets(text.slice(0, LONGEST_TEXT)));
