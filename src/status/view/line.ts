/** Lines made of pieces: measured and cut as plain text, painted at the very end. */
import stringWidth from "string-width";
import type { Look, ViewStyle } from "./look.js";

export interface Piece {
  text: string;
  style?: ViewStyle | undefined;
}

export type Line = readonly Piece[];

/**
 * Control characters, and those that are not seen but turn text around or glue it together. Names of
 * processes come as the processes chose them.
 */
const UNSEEN =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u001F\u007F-\u009F\u00AD\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]/g;

/**
 * Characters of one cell: ASCII, Latin letters, and what the view itself draws. Measuring any others takes
 * fifty times as long.
 */
const PLAIN = /^[ -~\u00A1-\u00AC\u00AE-\u02FF\u2026\u2500-\u259F\u25C6]*$/;

export const harmless = (text: string): string => (PLAIN.test(text) ? text : text.replaceAll(UNSEEN, "?"));

/** Cells that a terminal needs for it. */
export const cellsOf = (text: string): number => (PLAIN.test(text) ? text.length : stringWidth(text));

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** At most so many cells of it, the last one saying that something was cut. */
export const cutText = (text: string, width: number, cutMark: string): string => {
  if (width <= 0) return "";
  if (cellsOf(text) <= width) return text;
  if (PLAIN.test(text)) return text.slice(0, width - cutMark.length) + cutMark;
  // Half of a wide character cannot be shown.
  let left = width - cutMark.length;
  let kept = "";
  for (const { segment } of graphemes.segment(text)) {
    left -= stringWidth(segment);
    if (left < 0) break;
    kept += segment;
  }
  return kept + cutMark;
};

/** Exactly so many cells. */
export const padText = (text: string, width: number, align: "left" | "right" = "left"): string => {
  const gap = " ".repeat(Math.max(0, width - cellsOf(text)));
  return align === "left" ? text + gap : gap + text;
};

export const widthOf = (line: Line): number => line.reduce((sum, { text }) => sum + cellsOf(harmless(text)), 0);

/** The line as it is written. Whatever is in it, it has at most so many cells. */
export const composeLine = (line: Line, width: number, { paint, glyphs }: Look): string => {
  let left = width;
  let written = "";
  for (const { text, style } of line) {
    const safe = harmless(text);
    const part = cutText(safe, left, glyphs.cut);
    left -= cellsOf(part);
    written += style === undefined || part === "" ? part : paint(style, part);
    if (part !== safe) break;
  }
  return written;
};

/** Pieces side by side, in as many lines as they need. */
export const flow = (items: readonly Line[], width: number, gap: string): Line[] => {
  const lines: Piece[][] = [];
  for (const item of items) {
    const line = lines.at(-1);
    if (line !== undefined && widthOf(line) + gap.length + widthOf(item) <= width) line.push({ text: gap }, ...item);
    else lines.push([...item]);
  }
  return lines;
};
