/** How the view is drawn: colours and characters. */

/** The styles that the view uses. */
export type ViewStyle = "bold" | "dim" | "red" | "yellow" | "green" | "blue" | "cyan" | "magenta" | "inverse";

export interface Glyphs {
  others: string;
  jobs: string;
  available: string;
  /** Where the reserve begins. */
  reserve: string;
  critical: string;
  /** A job's memory: in use, used once, never used. */
  now: string;
  peak: string;
  never: string;
  /** Pressure from none to all, lowest first. */
  levels: readonly string[];
  hermes: string;
  cut: string;
}

/** Shades and blocks that differ without colour too. */
export const UNICODE_GLYPHS: Glyphs = {
  others: "█",
  jobs: "▓",
  available: "░",
  reserve: "│",
  critical: "┃",
  now: "█",
  peak: "▒",
  never: "░",
  levels: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
  hermes: "◆",
  cut: "…",
};

/** For terminals that cannot draw them: the Linux console, other character sets. */
export const ASCII_GLYPHS: Glyphs = {
  others: "#",
  jobs: "=",
  available: ".",
  reserve: "|",
  critical: "!",
  now: "#",
  peak: "=",
  never: ".",
  levels: ["_", ".", "-", "~", "=", "+", "*", "#"],
  hermes: "*",
  cut: ">",
};

export interface Look {
  paint: (style: ViewStyle, text: string) => string;
  glyphs: Glyphs;
}
