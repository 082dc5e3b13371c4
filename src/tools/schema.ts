/**
 * What is known about a tool. To add one: one entry in `table/`, one line in
 * `__test__/corpus/classify.jsonl`.
 */

/** Kinds of heavy work. `custom` is what a user's pattern found. */
export const KINDS = [
  "install",
  "script",
  "test",
  "build",
  "compile",
  "container",
  "media",
  "ml",
  "browser",
  "agent",
  "custom",
] as const;

export type Kind = (typeof KINDS)[number];

/** A kind means heavy. */
export type Verdict = Kind | "light";

/** A file with scripts, one of which the command runs. */
export interface ScriptSource {
  file: "package.json" | "Makefile" | "justfile";
  /** The script's name where the words do not say it (`npm test`). */
  name?: string;
  /** A name that is no script there may be a program of a package (`yarn jest`). */
  orProgram?: true;
  /** Words for the script come behind `--`; absent: they follow its name. */
  dashes?: true;
  /** Words go to the command itself, none to the script (`npm pack`). */
  wordless?: true;
}

/** Places other than the option itself from which a tool takes the number of its workers. */
export interface WorkerSettings {
  /** Variables, split by spaces. */
  variables?: string;
  /** What in their values is the number, or what is not known (U+E000); absent: all of it. Empty is unlimited. */
  pattern?: RegExp;
  /** The same for words of the command. */
  words?: RegExp;
  /** A file in the directory where it works, and the number in it. */
  file?: readonly [name: string, pattern: RegExp];
}

/** How a tool is told the number of its workers. */
export interface WorkerOption {
  /** All spellings of the option that takes the number, split by spaces. */
  options: string;
  /** How it is written when added or replaced, `{n}` for the number; one or two words. */
  write: string;
  /** Written instead for one worker. */
  writeOne?: string;
  /** Options with which it has one worker already. */
  serial?: string;
  /** Where it is added when not given; absent: only a given one is replaced. */
  add?: "end" | "after-subcommand";
  /** The number that stands for one worker, where that is not 1 (`pytest -n 0`). */
  one?: string;
  /** The option may stand without a value, for as many as it likes. */
  optionalValue?: true;
  /** The value is taken from the next word only when that is a number (make). */
  numberOnly?: true;
  /** Words that mean as many as there are CPUs. */
  all?: string;
  /** The variable that says how many those are. */
  allVariable?: string;
  /** Letters that may stand before its own behind one dash (`pytest -xn8`). */
  letters?: string;
  /** Where else a number may stand: one that fits is left to stand, a higher one is overruled by the option. */
  elsewhere?: WorkerSettings;
  /** Subcommands that know it; absent: all that are heavy. */
  only?: string;
}

/** A variable that tells a tool the number of its workers. */
export interface WorkerVariable {
  name: string;
  /** `{n}` for the number; `{n+1}` where the tool keeps one for itself. */
  value: string;
  /** Options that say the same; absent: those of the workers. */
  options?: string;
}

/** What holds for a tool, or for one of its subcommands; a subcommand's own fields win. */
export interface Entry {
  /** Heavy, and of this kind, unless a subcommand or a flag says otherwise. */
  kind?: Kind;
  /** Without any operand. */
  bare?: Verdict | Entry;
  /** By the first operand; aliases split by spaces. */
  subcommands?: Readonly<Record<string, Verdict | Entry>>;
  /** Any other operand; absent: `kind`, else light. */
  other?: Verdict | Entry;
  /** Options that take a value; with `?` behind it they may do without (`-p?`). */
  valued?: string;
  /** Flags that make it light, beside `--help`, `-h` and `--version`. */
  light?: string;
  /** Only heavy with one of these flags. */
  needs?: string;
  /** Every operand is a subcommand of its own (`mvn clean install`). */
  goals?: true;
  /** Options have one dash and many letters (`gcc -shared`), so none is a cluster of letters. */
  singleDash?: true;
  /** `-h` is no call for help. */
  hasOwnH?: true;
  /** What follows the operand belongs to another program. */
  operandIsProgram?: true;
  script?: ScriptSource;
  /** Runs in Node: V8's heap cap applies to it. */
  node?: boolean;
  workers?: WorkerOption | null;
  variables?: readonly WorkerVariable[];
  /** Memory of one worker, where it is known to differ. */
  mbPerWorker?: number;
  /** Options that say in which directory it works. */
  directory?: string;
  /** Options with which the script is not that of the working directory. */
  elsewhereOptions?: string;
  /** It does its work in a process tree that is not ours. */
  elsewhere?: true;
  /** What to try next, as an imperative without its full stop. */
  next?: string;
}

export interface Tool extends Entry {
  /** Names, split by spaces; the first is what people call it. */
  names: string;
  /** Names by pattern, for families (`create-*`, cross compilers). */
  pattern?: RegExp;
  /** Python modules that are this tool (`python -m NAME`). */
  modules?: string;
  /** Words before the subcommand to skip (`cargo +nightly`). */
  selector?: RegExp;
}

/** Memory of one worker when the table says nothing else. */
export const USUAL_MB_PER_WORKER = 768;
