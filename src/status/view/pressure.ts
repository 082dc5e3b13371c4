/** How long tasks waited for memory, over the last minute. */
import { HISTORY_SECONDS, type History } from "../history.js";
import type { StatusSnapshot } from "../snapshot.js";
import type { Line } from "./line.js";
import type { Look, ViewStyle } from "./look.js";
import { label, LABEL_WIDTH } from "./memory.js";

/** Percent at which each next level begins: close together where a machine is still well. */
const LEVEL_STARTS: readonly number[] = [0.1, 1, 3, 10, 20, 40, 70];

/** One cell a second, the newest at the right; what was before the view began is blank. */
export const sparkline = (percents: readonly number[], width: number, { glyphs }: Look): string =>
  percents
    .slice(-width)
    .map((percent) => glyphs.levels[LEVEL_STARTS.filter((start) => percent >= start).length] ?? " ")
    .join("")
    .padStart(width);

const styleOf = (percent: number): ViewStyle => {
  if (percent >= 20) return "red";
  return percent >= 3 ? "yellow" : "green";
};

export const pressureSection = (
  { pressure }: StatusSnapshot,
  { seconds }: History,
  width: number,
  rows: number,
  look: Look,
): Line[] => {
  if (rows < 1) return [];
  if (pressure === null) return [[label("pressure"), { text: "no PSI in this kernel", style: "dim" }]];
  const line = (title: string, word: string, average: number, percents: readonly number[], hint: string): Line => {
    const words = ` ${word} ${average.toFixed(1).padStart(5)} %`;
    const room = Math.max(0, Math.min(HISTORY_SECONDS, width - LABEL_WIDTH - words.length));
    const fits = LABEL_WIDTH + room + words.length + hint.length <= width;
    return [
      label(title),
      { text: sparkline(percents, room, look), style: styleOf(Math.max(0, ...percents.slice(-10))) },
      { text: words },
      { text: fits ? hint : "", style: "dim" },
    ];
  };
  const some = seconds.map(({ some_percent }) => some_percent);
  const full = seconds.map(({ full_percent }) => full_percent);
  return [
    line("pressure", "some", pressure.some_avg10_percent, some, " of the last 10 s some task waited for memory"),
    line("", "full", pressure.full_avg10_percent, full, " all of them waited"),
  ].slice(0, rows);
};
