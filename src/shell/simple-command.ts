/** What reading a text results in. */
import type { ShellWord } from "./word.js";

/** `NAME=value` before a command. */
export interface Assignment {
  name: string;
  /** The value's word; its span leaves out the name. */
  value: ShellWord;
  /** `NAME+=value` */
  appends: boolean;
}

/** One simple command as it stands in the text, wrapper words included. */
export interface SimpleCommand {
  assignments: Assignment[];
  words: ShellWord[];
  /** Span in the outer text. */
  pos: number;
  end: number;
  /** Its text may be changed: it stands in the outer text, outside backticks and here-documents. */
  editable: boolean;
  /** Where a variable for it can be put although it stands in an inner text. */
  inherited: VariablePlace | undefined;
}

/** Where a variable can be put so that it reaches the program. */
export interface VariablePlace {
  /** Before the simple command, or between the words of an `env`. */
  at: "prefix" | "env";
  /** Position in the outer text. */
  pos: number;
  /** Index in `SimpleCommand.words` of the word that it is put before; −1 for a prefix. */
  before: number;
  /** What the variable held before still reaches the program, so it is to be appended to. */
  inherits: boolean;
}

/** One program that would run. */
export interface Run {
  /** The program and its words, wrappers taken off. */
  words: ShellWord[];
  /** Names of the wrappers around it, outermost first. */
  wrappers: string[];
  simple: SimpleCommand;
  /** Index of the program's word in `simple.words`; −1 when it stands in an inner text. */
  at: number;
  /** The words themselves may be changed: no inner text, no template completed at run time. */
  editable: boolean;
  variables: VariablePlace | undefined;
  /** `NAME=value` words that reach the program, the last one wins: prefixes and those of `env`. */
  assigned: Assignment[];
  /** Values exported earlier in the same text. */
  exported: ReadonlyMap<string, string | undefined>;
  /** Variables that the text makes read only, somewhere. */
  fixed: ReadonlySet<string>;
  /** Where it runs, as far as the text tells; `undefined` when that cannot be known. */
  cwd: string | undefined;
  /** It runs in a process tree that is not ours (`docker exec`, `tmux new`). */
  elsewhere: "container" | "server" | undefined;
}
