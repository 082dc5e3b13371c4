/** Keeps secrets out of records, notes and status. Errs on the side of masking too much. */

const SECRET_WORD =
  "token|secret|passwo?r?d|passwd|pwd|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|credential";
/** A name with such a word anywhere in it, or `auth` as a word of its own (not `author`). */
const SECRET_NAME = `(?:[A-Za-z0-9_-]{0,64}(?:${SECRET_WORD})[A-Za-z0-9_-]{0,64}|(?:[A-Za-z0-9_]{1,64}[_-])?auth)`;

const PATTERNS: readonly [RegExp, string][] = [
  // NAME=value and --name=value
  [new RegExp(`((?:^|[\\s;&|("'])-{0,2}${SECRET_NAME}=)("[^"]*"|'[^']*'|\\S+)`, "gi"), "$1***"],
  // --name value
  [new RegExp(`((?:^|\\s)--${SECRET_NAME}\\s+)("[^"]*"|'[^']*'|[^\\s-]\\S*)`, "gi"), "$1***"],
  // ?name=value and &name=value in an address
  [new RegExp(`([?&]${SECRET_NAME}=)[^\\s&#'"]+`, "gi"), "$1***"],
  // -u user:password, --user user:password, --user=user:password
  [/((?:^|\s)(?:-u|--user|--proxy-user)(?:\s+|=)?['"]?[^\s:'"]+:)[^\s'"]+/g, "$1***"],
  // The password option of database clients and of sshpass
  [/(\b(?:mysql\w*|mariadb\w*|sshpass)\b[^|;&]{0,500}?\s-p\s?)(?:"[^"]*"|'[^']*'|[^\s-]\S*)/g, "$1***"],
  // scheme://user:password@host; bounded, so that a long word is not begun anew at each of its letters
  [/([a-z][a-z0-9+.-]{0,40}:\/\/[^\s/:@]*:)[^\s/@]+@/gi, "$1***@"],
  // Authorization: Bearer …, and keys that are known by their form
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi, "$1 ***"],
  [/\b(?:sk|pk|ghp|gho|ghs|github_pat|xox[abp]|AKIA|glpat)[-_A-Za-z0-9]{12,}/g, "***"],
];

/** The text with whatever looks like a secret replaced by `***`. */
export const maskSecrets = (text: string): string =>
  PATTERNS.reduce((masked, [pattern, replacement]) => masked.replaceAll(pattern, replacement), text);
