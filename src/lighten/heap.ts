/** The heap cap of Node: V8 then fails with a readable message instead of being killed. */
import { quoteWord } from "../shell/quote.js";
import type { Run } from "../shell/simple-command.js";
import { isKnown } from "../shell/word.js";
import type { Change } from "./edits.js";
import { changeAssignment, heldBy, setVariable } from "./variables.js";

export const NODE_OPTIONS = "NODE_OPTIONS";

const HEAP_FLAG = /(--max[-_]old[-_]space[-_]size=)(\d+)/g;

export interface Lightened {
  changes: Change[];
  /** For people, one line a change. */
  lines: string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The largest heap that the options ask for; `undefined` when they name none. */
const askedFor = (options: string): number | undefined => {
  const found = [...options.matchAll(HEAP_FLAG)].map(([, , mb]) => Number(mb));
  // Of several the last one counts.
  return found.at(-1);
};

const flagFor = (mb: number): string => `--max-old-space-size=${mb}`;

/** Lowers or sets the heap cap of one command; nothing when it has a lower one. */
export const capHeap = (
  run: Run,
  mb: number,
  { environment = {}, environmentIsKnown }: { environment?: Environment; environmentIsKnown?: boolean },
): Lightened | undefined => {
  const onLine = capOnCommandLine(run, mb);
  if (onLine !== undefined) return onLine;
  const held = heldBy(run, NODE_OPTIONS, environment);
  const asked = held === undefined ? undefined : askedFor(held.value);
  if (held !== undefined && asked !== undefined && asked <= mb) return undefined;
  const line =
    asked === undefined
      ? `capped the Node heap at ${mb} MB (${NODE_OPTIONS})`
      : `lowered the Node heap from ${asked} to ${mb} MB (${NODE_OPTIONS})`;
  if (held?.where === "inner") return undefined;
  if (held?.where === "command") {
    const value = isKnown(held.value) ? withCap(held.value, mb) : undefined;
    const change = changeAssignment(run, held.assignment, (source) => cappedSource(source, held.value, mb), value);
    return change === undefined ? undefined : { changes: [change], lines: [line] };
  }
  const flag = flagFor(mb);
  const whole = quoteWord(held === undefined || held.value === "" ? flag : `${held.value} ${flag}`);
  const inherits = environmentIsKnown ? whole : `"\${${NODE_OPTIONS}:+$${NODE_OPTIONS} }${flag}"`;
  const change = setVariable(run, NODE_OPTIONS, { inherits, plain: flag });
  return change === undefined ? undefined : { changes: [change], lines: [line] };
};

/** `node --max-old-space-size=8192 …`: a flag on the line wins over the variable. */
const capOnCommandLine = (run: Run, mb: number): Lightened | undefined => {
  const { simple } = run;
  const isFlag = /^--max[-_]old[-_]space[-_]size=(\d+)$/;
  const lightened: Lightened = { changes: [], lines: [] };
  let isGiven = false;
  for (const [index, word] of simple.words.entries()) {
    const asked = isFlag.exec(word.value)?.[1];
    if (asked === undefined) continue;
    isGiven = true;
    if (Number(asked) <= mb || !word.exact || !run.editable) continue;
    lightened.changes.push({ at: "word", simple, index, source: flagFor(mb) });
    lightened.lines.push(`lowered the Node heap from ${asked} to ${mb} MB (--max-old-space-size)`);
  }
  return isGiven ? lightened : undefined;
};

const withCap = (options: string, mb: number): string =>
  askedFor(options) === undefined
    ? `${options} ${flagFor(mb)}`.trimStart()
    : options.replaceAll(HEAP_FLAG, (all, name: string, asked: string) => (Number(asked) > mb ? name + mb : all));

/** The source of the value with the cap in it, in the quotes that are there. */
const cappedSource = (source: string, value: string, mb: number): string => {
  if (askedFor(source) !== undefined) return withCap(source, mb);
  const flag = flagFor(mb);
  if (source === "" || value === "") return flag;
  const last = source.at(-1);
  if ((last === "'" || last === '"') && source.length > 1 && source.at(-2) !== "\\")
    return `${source.slice(0, -1)} ${flag}${last}`;
  return /^[\w=./:@%+,-]+$/.test(source) ? `"${source} ${flag}"` : `${source}" ${flag}"`;
};
