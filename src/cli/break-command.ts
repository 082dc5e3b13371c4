/** Breaks a command into lines between its words, where a shell lets a line go on. */
import { readText } from "../shell/read.js";

/** Offsets in the command. */
export interface CommandLine {
  start: number;
  end: number;
}

/**
 * Lines of at most so many columns, a backslash at their ends counted in, as far as there are places to break; a line end
 * of the command itself always breaks. Without the spaces between lines.
 */
export const breakCommand = (command: string, room: number): CommandLine[] => {
  const own = ownLines(command);
  const [only] = own;
  if (own.length > 1 || only === undefined || command.length <= room) return own;
  // Where the text does not parse nothing in it is editable, so it stays in one piece.
  const places = readText(command)
    .simples.filter(({ editable }) => editable)
    .flatMap(({ pos, words }) => [pos, ...words.map((word) => word.pos)])
    .filter((pos) => pos > 0 && command[pos - 1] === " " && command[pos - 2] !== "\\")
    .toSorted((a, b) => a - b);
  const lines: CommandLine[] = [];
  let start = 0;
  let last: number | undefined;
  const cut = (at: number): void => {
    lines.push({ start, end: start + command.slice(start, at).trimEnd().length });
    start = at;
  };
  for (const place of [...places, command.length]) {
    // One column for the backslash; before a place there is a space that goes.
    if (last !== undefined && last > start && place - start > room) cut(last);
    last = place;
  }
  return [...lines, { start, end: command.length }];
};

const ownLines = (command: string): CommandLine[] => {
  const lines: CommandLine[] = [];
  let start = 0;
  for (const line of command.split("\n")) {
    lines.push({ start, end: start + line.length });
    start += line.length + 1;
  }
  return lines;
};
