/** A command as people read it. */
import { maskSecrets } from "./mask.js";

/** Longer text helps nobody in a list, and bounds the work of masking. */
const LONGEST_TEXT = 2000;
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Words joined as a shell would take them, secrets masked. */
export const commandText = (words: readonly string[]): string =>
  maskSecrets(
    words
      .map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
      .join(" ")
      .slice(0, LONGEST_TEXT),
  );
