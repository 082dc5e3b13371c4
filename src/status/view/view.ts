/** The live view: a snapshot becomes the lines of a terminal. Nothing is measured or written here. */
import type { History } from "../history.js";
import type { StatusSnapshot } from "../snapshot.js";
import { jobsSection, jobsWanted, type JobOrder } from "./jobs.js";
import { shareOut, type Claim } from "./layout.js";
import { composeLine, widthOf, type Line } from "./line.js";
import type { Look } from "./look.js";
import { memoryLegend, memorySection } from "./memory.js";
import { mb } from "./numbers.js";
import { pressureSection } from "./pressure.js";
import { processesSection } from "./processes.js";
import { waitingSection, waitingWanted } from "./waiting.js";

export interface ViewSize {
  columns: number;
  rows: number;
}

export interface ViewState {
  /** The time of day, as it is shown. */
  clock: string;
  isPaused: boolean;
  order: JobOrder;
  /** Keys are heard. */
  hasKeys: boolean;
}

const titleLine = ({ mode, next_cap_mb }: StatusSnapshot, { clock }: ViewState, width: number): Line => {
  const left: Line = [
    { text: "hermes-headroom", style: "bold" },
    { text: `  mode ${mode}  next job ${next_cap_mb === 0 ? "waits for memory" : `at most ${mb(next_cap_mb)} MB`}` },
  ];
  const gap = width - widthOf(left) - clock.length;
  return gap < 2 ? left : [...left, { text: " ".repeat(gap) }, { text: clock, style: "dim" }];
};

const key = (name: string, does: string): Line => [
  { text: name, style: "bold" },
  { text: ` ${does}   `, style: "dim" },
];

const hintsLine = ({ isPaused, order, hasKeys }: ViewState): Line => {
  if (!hasKeys)
    return [
      { text: "Ctrl-C", style: "bold" },
      { text: " quits", style: "dim" },
    ];
  return [
    ...(isPaused ? [{ text: " PAUSED ", style: "inverse" as const }, { text: "  " }] : []),
    ...key("q", "quit"),
    ...key("p", isPaused ? "go on" : "pause"),
    ...key("s", order === "age" ? "jobs by memory" : "jobs by age"),
  ];
};

/** At most `size.rows` lines of at most `size.columns` cells. The last one is the last of the terminal. */
export const renderView = (
  snapshot: StatusSnapshot,
  history: History,
  size: ViewSize,
  look: Look,
  state: ViewState,
): string[] => {
  const { columns: width, rows: height } = size;
  const { jobs, processes } = snapshot;
  const memoryLines = 1 + memoryLegend(snapshot, width, look).length;
  const waitingAll = snapshot.waiting.length === 0 ? 0 : 1 + snapshot.waiting.length;
  // Where the jobs stand and whether memory lasts comes first, comfort last.
  const claims: Claim[] = [
    { section: "memory", lines: 1 },
    { section: "jobs", lines: jobs.length === 0 ? 1 : 2 },
    { section: "problem", lines: snapshot.problem === null ? 0 : 1 },
    { section: "title", lines: 1 },
    { section: "hints", lines: 1 },
    { section: "jobs", lines: 1 + Math.min(3, jobs.length) },
    { section: "waiting", lines: Math.min(2, waitingAll), least: 2 },
    { section: "pressure", lines: 1 },
    { section: "memory", lines: memoryLines },
    { section: "jobs", lines: 1 + Math.min(6, jobs.length) },
    { section: "waiting", lines: Math.min(4, waitingAll), least: 2 },
    { section: "processes", lines: Math.min(4, 1 + processes.length), least: 2 },
    { section: "jobs", lines: 1 + jobs.length },
    { section: "waiting", lines: waitingAll, least: 2 },
    { section: "pressure", lines: snapshot.pressure === null ? 1 : 2 },
    { section: "gaps", lines: 4 },
    { section: "jobs", lines: jobsWanted(snapshot, width, look), least: jobsWanted(snapshot, width, look) },
    { section: "waiting", lines: waitingWanted(snapshot, width), least: waitingWanted(snapshot, width) },
    { section: "processes", lines: 1 + processes.length, least: 2 },
  ];
  const granted = shareOut(claims, height);
  const blocks: Line[][] = [
    [
      ...(granted.title > 0 ? [titleLine(snapshot, state, width)] : []),
      ...(granted.problem > 0 ? [[{ text: `records: ${snapshot.problem}`, style: "yellow" as const }]] : []),
    ],
    [
      ...memorySection(snapshot, width, granted.memory, look).slice(0, granted.memory),
      ...pressureSection(snapshot, history, width, granted.pressure, look),
    ],
    jobsSection(snapshot, state.order, width, granted.jobs, look),
    waitingSection(snapshot, width, granted.waiting, look),
    processesSection(snapshot, width, granted.processes, look),
  ].filter((block) => block.length > 0);
  // The gap below the title is the first to go without.
  const firstGap = blocks.length - granted.gaps;
  const lines = blocks.flatMap((block, index) => (index > 0 && index >= firstGap ? [[], ...block] : block));
  if (granted.hints > 0) {
    while (lines.length < height - 1) lines.push([]);
    lines.push(hintsLine(state));
  }
  return lines.slice(0, height).map((line) => composeLine(line, width, look));
};
