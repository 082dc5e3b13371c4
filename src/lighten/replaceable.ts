/** Whether a computed value may be replaced by a number: nothing else may come of its computation. */
import { commandName } from "../shell/names.js";
import { readText } from "../shell/read.js";
import { optionNames } from "../shell/options.js";

/** Programs that only tell something, and with which a number of jobs is computed. */
const TELLING = optionNames(
  "nproc getconf sysctl lscpu expr bc echo printf cat grep egrep head tail tr cut wc sort uniq uname free true false : test [",
);
/** `${J:=8}` sets a variable, `${J:?}` ends the command. */
const SETS = /\$\{!?\w+(?:\[[^\]]*\])?:?[=?]/;
/** `$((i++))`, `$[i = 2]` */
const ARITHMETIC = /\$\(\(|\$\[/;
const CHANGES = /\+\+|--|(?<![=<>!])=(?!=)/;
/** Output that goes anywhere but away: `2>/dev/null` and `2>&1` do. */
const WRITES = />(?!\s*\/dev\/null\b|&[12]\b)/;

/** Programs whose own programs only tell something as well. */
const isTelling = ([program = "", ...words]: readonly string[]): boolean => {
  const name = commandName(program);
  if (TELLING.has(name)) return true;
  if (/^[gm]?awk$/.test(name)) return words.every((word) => !/[>|]|system|^-[fi]/.test(word));
  if (/^python[\d.]*$/.test(name))
    return (
      words[0] === "-c" && /^import \w+; *print\([\w\s.()+*/,-]*cpu_count\(\)[\w\s.()+*/,-]*\)$/.test(words[1] ?? "")
    );
  return false;
};

/** `source` is the word as it stands in the text. */
export const isReplaceable = (source: string): boolean => {
  if (!/[$`<>]/.test(source)) return true;
  if (/[<>]\(/.test(source) || SETS.test(source)) return false;
  const arithmetic = ARITHMETIC.test(source);
  if (arithmetic && CHANGES.test(source)) return false;
  if (!/`|\$\((?!\()/.test(source)) return true;
  if (!arithmetic && WRITES.test(source)) return false;
  const { runs, problem } = readText(`: ${source}`);
  return problem === undefined && runs.every(({ words }) => isTelling(words.map(({ value }) => value)));
};
