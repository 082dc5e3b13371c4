/** The whole terminal as a picture that is drawn again and again, and given back as it was. */
import { ReadStream } from "node:tty";
import {
  beginSynchronizedOutput,
  clearViewport,
  cursorHide,
  cursorShow,
  cursorTo,
  endSynchronizedOutput,
  enterAlternativeScreen,
  eraseEndLine,
  exitAlternativeScreen,
} from "ansi-escapes";
import { stripVTControlCharacters } from "node:util";
import { cellsOf } from "../status/view/line.js";

/**
 * Lines longer than the terminal are cut by it instead of wrapping (DECAWM): some terminals need more cells
 * for an emoji than Unicode says.
 */
const WRAP_OFF = "\u001B[?7l";
const WRAP_ON = "\u001B[?7h";

export interface ScreenSize {
  columns: number;
  rows: number;
}

/**
 * What to write so that a terminal that shows `before` shows `after`. Only lines that differ are written, and
 * the terminal is asked to show all of them at once, so nothing flickers.
 */
export const difference = (
  before: readonly string[] | undefined,
  after: readonly string[],
  columns: number,
): string => {
  const rows: string[] = [];
  if (before === undefined) rows.push(clearViewport);
  const count = Math.max(before?.length ?? 0, after.length);
  for (let row = 0; row < count; row += 1) {
    const line = after[row] ?? "";
    if (before !== undefined ? line === before[row] : line === "") continue;
    // In the last column the cursor stays on the character just written, and erasing would take that away.
    const isFull = cellsOf(stripVTControlCharacters(line)) >= columns;
    rows.push(cursorTo(0, row) + line + (isFull ? "" : eraseEndLine));
  }
  return rows.length === 0 ? "" : beginSynchronizedOutput + rows.join("") + endSynchronizedOutput;
};

export class Screen {
  readonly #write: (text: string) => void;
  readonly #input: ReadStream | undefined;
  #shown: readonly string[] | undefined;
  #forgetResize: () => void = () => undefined;
  #drawnSize: ScreenSize = { columns: 0, rows: 0 };
  #isEntered = false;

  /** `input` is a terminal's descriptor to read keys from. */
  constructor(write: (text: string) => void, input: number | undefined) {
    this.#write = write;
    this.#input = input === undefined ? undefined : new ReadStream(input);
  }

  get size(): ScreenSize {
    // Of all streams this one alone learns of a new size. It is never written to: a terminal on it is opened
    // anew, so nothing changes for others.
    const { columns, rows } = process.stdout;
    // A serial line does not know its size.
    return { columns: columns || 80, rows: rows || 24 };
  }

  onResize(action: () => void): void {
    process.stdout.on("resize", action);
    this.#forgetResize = () => process.stdout.off("resize", action);
  }

  onKey(action: (key: string) => void): void {
    this.#input?.on("data", (chunk) => {
      // An arrow key comes as one sequence, typed letters come one by one or together.
      const text = String(chunk);
      if (text.startsWith("\u001B")) return;
      for (const key of text) action(key);
    });
    // The terminal is gone; its hang-up signal says the same.
    this.#input?.on("error", () => undefined);
  }

  enter(): void {
    if (this.#isEntered) return;
    this.#isEntered = true;
    this.#shown = undefined;
    this.#input?.setRawMode(true);
    this.#write(enterAlternativeScreen + cursorHide + WRAP_OFF);
  }

  draw(lines: readonly string[]): void {
    if (!this.#isEntered) return;
    const { columns, rows } = this.size;
    // A terminal of another size has moved its lines about.
    if (columns !== this.#drawnSize.columns || rows !== this.#drawnSize.rows) this.#shown = undefined;
    const text = difference(this.#shown, lines, columns);
    this.#shown = lines;
    this.#drawnSize = { columns, rows };
    if (text !== "") this.#write(text);
  }

  /** Gives the terminal back. As often as you like; never throws, because it is called when all else failed. */
  leave(): void {
    if (!this.#isEntered) return;
    this.#isEntered = false;
    try {
      this.#write(endSynchronizedOutput + WRAP_ON + cursorShow + exitAlternativeScreen);
      this.#input?.setRawMode(false);
    } catch {
      // There is no terminal any more.
    }
  }

  /** Lets the process end. */
  close(): void {
    this.leave();
    this.#input?.destroy();
    this.#forgetResize();
  }
}
