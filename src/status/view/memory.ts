/** The memory bar with its marks, swap beside it, and what the parts mean. */
import type { StatusSnapshot } from "../snapshot.js";
import { flow, widthOf, type Line, type Piece } from "./line.js";
import type { Look, ViewStyle } from "./look.js";
import { mb, share } from "./numbers.js";

export const LABEL_WIDTH = 10;

export const label = (text: string): Piece => ({ text: text.padEnd(LABEL_WIDTH), style: "bold" });

interface Parts {
  others: number;
  jobs: number;
  available: number;
  total: number;
}

/**
 * Who has the memory. A box counts page cache that the kernel gives back when asked, which is available at
 * the same time; so the jobs' part is never more than what is in use.
 */
export const memoryParts = ({ memory, jobs }: Pick<StatusSnapshot, "memory" | "jobs">): Parts => {
  const total = Math.max(0, memory.total_mb);
  const available = Math.min(total, Math.max(0, memory.available_mb));
  const used = total - available;
  const ofJobs = Math.min(
    used,
    jobs.reduce((sum, { now_mb }) => sum + now_mb, 0),
  );
  return { others: used - ofJobs, jobs: ofJobs, available, total };
};

/** The bar: one kind of cell for each part, marks where only the reserve and the critical rest are left. */
export const memoryBar = (snapshot: StatusSnapshot, width: number, { glyphs }: Look): Line => {
  const { others, jobs, total } = memoryParts(snapshot);
  const cells: Piece[] = [];
  const othersEnd = Math.round(share(others, total) * width);
  // What a job has is seen, however little it is.
  const jobsEnd = Math.max(Math.round(share(others + jobs, total) * width), jobs > 0 ? othersEnd + 1 : 0);
  const critical = markAt(snapshot.limits.critical_mb, total, width);
  const reserve = Math.min(markAt(snapshot.limits.reserve_mb, total, width), critical - 1);
  for (let cell = 0; cell < width; cell += 1) {
    if (cell === critical) cells.push({ text: glyphs.critical, style: "red" });
    else if (cell === reserve) cells.push({ text: glyphs.reserve, style: "yellow" });
    else if (cell < othersEnd) cells.push({ text: glyphs.others, style: "blue" });
    else if (cell < jobsEnd) cells.push({ text: glyphs.jobs, style: "cyan" });
    else cells.push({ text: glyphs.available, style: "dim" });
  }
  return joinAlike(cells);
};

const markAt = (leftMb: number, total: number, width: number): number =>
  Math.min(width - 1, Math.floor((1 - share(leftMb, total)) * width));

/** Neighbours of one style become one piece: fewer bytes for the terminal. */
const joinAlike = (cells: readonly Piece[]): Piece[] => {
  const joined: Piece[] = [];
  for (const cell of cells) {
    const last = joined.at(-1);
    if (last !== undefined && last.style === cell.style) last.text += cell.text;
    else joined.push({ ...cell });
  }
  return joined;
};

const swapPieces = ({ memory }: StatusSnapshot, width: number, { glyphs }: Look): Line => {
  if (memory.swap_total_mb <= 0) return [{ text: "  no swap", style: "dim" }];
  const used = Math.max(0, memory.swap_total_mb - memory.swap_free_mb);
  const barWidth = width >= 150 ? 24 : 10;
  const filled = Math.round(share(used, memory.swap_total_mb) * barWidth);
  return [
    { text: "  " },
    { text: "swap ", style: "bold" },
    { text: glyphs.others.repeat(filled), style: "magenta" },
    { text: glyphs.available.repeat(barWidth - filled), style: "dim" },
    { text: ` ${mb(used)} of ${mb(memory.swap_total_mb)} MB` },
  ];
};

/** `yellow` when the reserve is touched, `red` below the critical line. */
export const alarm = ({ memory, limits }: StatusSnapshot): ViewStyle | undefined => {
  if (memory.available_mb < limits.critical_mb) return "red";
  return memory.available_mb < limits.reserve_mb ? "yellow" : undefined;
};

/** A bar gives up what stands beside it for this. */
const SHORTEST_BAR = 20;
/** Shorter ones tell nothing. */
const TINIEST_BAR = 6;

/** What the bar's parts and marks mean. */
export const memoryLegend = (snapshot: StatusSnapshot, width: number, { glyphs }: Look): Line[] => {
  const { others, jobs, available, total } = memoryParts(snapshot);
  const { limits } = snapshot;
  const state = alarm(snapshot);
  const below = { red: " below critical", yellow: " below the reserve" }[state as string] ?? "";
  const items: Line[] = [
    [{ text: glyphs.others, style: "blue" }, { text: ` others ${mb(others)}` }],
    [{ text: glyphs.jobs, style: "cyan" }, { text: ` jobs ${mb(jobs)}` }],
    [
      { text: glyphs.available, style: "dim" },
      { text: ` available ${mb(available)} of ${mb(total)} MB${below}`, style: state },
    ],
    [{ text: glyphs.reserve, style: "yellow" }, { text: ` reserve ${mb(limits.reserve_mb)}` }],
    [{ text: glyphs.critical, style: "red" }, { text: ` critical ${mb(limits.critical_mb)}` }],
  ];
  return flow(items, width - LABEL_WIDTH, "  ").map((line) => [{ text: " ".repeat(LABEL_WIDTH) }, ...line]);
};

/** The bar and as many lines of its legend as there is room for. */
export const memorySection = (snapshot: StatusSnapshot, width: number, rows: number, look: Look): Line[] => {
  const { available, total } = memoryParts(snapshot);
  // With nothing below it the bar has to say itself how much there is.
  const short: Line = [{ text: `  ${mb(available)} of ${mb(total)} MB`, style: alarm(snapshot) }];
  const swap = swapPieces(snapshot, width, look);
  const room = (right: Line): number => width - LABEL_WIDTH - widthOf(right);
  if (rows < 2 && room(short) < TINIEST_BAR) return [[{ text: "memory", style: "bold" }, ...short]];
  const [most, least]: Line[] = rows < 2 ? [[...short, ...swap], short] : [swap, []];
  const beside = (most && room(most) >= SHORTEST_BAR ? most : least) ?? [];
  const barWidth = Math.max(TINIEST_BAR, room(beside));
  return [
    [label("memory"), ...memoryBar(snapshot, barWidth, look), ...beside],
    ...memoryLegend(snapshot, width, look).slice(0, Math.max(0, rows - 1)),
  ];
};
