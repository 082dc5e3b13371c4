/** Words as a shell would take them back. */

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;
/** Words that mean something else where a command begins. */
const KEYWORDS = new Set(
  "if then else elif fi case esac for select while until do done in function time coproc".split(" "),
);

export const quoteWord = (word: string): string => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** A text that runs these words. */
export const quoteWords = (words: readonly string[]): string =>
  words
    .map((word, index) => {
      const isSpecial = index === 0 && (word.includes("=") || KEYWORDS.has(word));
      return isSpecial ? `'${word.replaceAll("'", "'\\''")}'` : quoteWord(word);
    })
    .join(" ");
