/** One row a job. */
import type { JobStatus, StatusSnapshot } from "../snapshot.js";
import type { Line } from "./line.js";
import type { Look, ViewStyle } from "./look.js";
import { age, mb, share } from "./numbers.js";
import { fitsOneLine, renderTable, type Column, type LastColumn } from "./table.js";

/** By what the jobs are sorted. */
export type JobOrder = "age" | "memory";

const STATE_WORDS: Record<string, string> = { left_running: "left" };

const BAR_WIDTH = 10;

/** What it uses, what it used at most, and what it may use. */
export const jobBar = ({ now_mb, peak_mb, cap_mb }: JobStatus, { glyphs }: Look): string => {
  const now = Math.round(share(now_mb, cap_mb) * BAR_WIDTH);
  const peak = Math.max(now, Math.round(share(peak_mb ?? 0, cap_mb) * BAR_WIDTH));
  return glyphs.now.repeat(now) + glyphs.peak.repeat(peak - now) + glyphs.never.repeat(BAR_WIDTH - peak);
};

const fillStyle = ({ now_mb, cap_mb }: JobStatus): ViewStyle => {
  const filled = share(now_mb, cap_mb);
  if (filled >= 0.9) return "red";
  return filled >= 0.7 ? "yellow" : "green";
};

const jobColumns = (look: Look): Column<JobStatus>[] => [
  { title: "PID", cell: ({ pid }) => String(pid ?? "-"), align: "right", rank: 9, least: 7 },
  { title: "KIND", cell: ({ kind }) => kind, rank: 2, least: 7, most: 10 },
  {
    title: "STATE",
    cell: ({ state }) => STATE_WORDS[state] ?? state,
    style: ({ state }) => (state === "running" ? undefined : "yellow"),
    rank: 4,
    least: 8,
    most: 10,
  },
  { title: "NOW", cell: ({ now_mb }) => mb(now_mb), align: "right", rank: 8, least: 6 },
  {
    title: "PEAK",
    cell: ({ peak_mb }) => (peak_mb === null ? "-" : mb(peak_mb)),
    align: "right",
    rank: 3,
    least: 6,
  },
  { title: "CAP MB", cell: ({ cap_mb }) => mb(cap_mb), align: "right", rank: 7, least: 6 },
  { title: "", cell: (job) => jobBar(job, look), style: fillStyle, rank: 6, least: BAR_WIDTH },
  { title: "AGE", cell: ({ age_s }) => age(age_s), align: "right", rank: 5, least: 4 },
  { title: "STARTED BY", cell: ({ who }) => `${who.name ?? "gone"} ${who.pid}`, rank: 1, least: 12, most: 22 },
];

const COMMAND: LastColumn<JobStatus> = {
  title: "COMMAND",
  cell: ({ command }) => command,
  style: () => "bold",
  least: 24,
};

export const sortJobs = (jobs: readonly JobStatus[], order: JobOrder): JobStatus[] =>
  // The snapshot has the oldest first, by more than the seconds of their ages.
  order === "age" ? [...jobs] : jobs.toSorted((a, b) => b.now_mb - a.now_mb);

/** Lines for everything about every job; more than a line for each where the terminal is narrow. */
export const jobsWanted = ({ jobs }: StatusSnapshot, width: number, look: Look): number =>
  1 + jobs.length * (fitsOneLine(jobColumns(look), COMMAND, jobs, width) ? 1 : 2);

export const jobsSection = (
  snapshot: StatusSnapshot,
  order: JobOrder,
  width: number,
  rows: number,
  look: Look,
): Line[] => {
  const { jobs, limits } = snapshot;
  if (rows < 1) return [];
  if (jobs.length === 0) {
    return [
      [
        { text: "no jobs", style: "bold" },
        { text: `  at most ${limits.max_heavy_jobs} at once`, style: "dim" },
      ],
    ];
  }
  const sorted = sortJobs(jobs, order);
  const columns = jobColumns(look);
  if (rows < jobsWanted(snapshot, width, look) || fitsOneLine(columns, COMMAND, jobs, width)) {
    return renderTable({ columns, last: COMMAND, rows: sorted }, width, rows, look);
  }
  const indent = " ".repeat(8);
  // The command has a line of its own, so who started it may be the last column.
  const started: LastColumn<JobStatus> = { title: "STARTED BY", cell: columns.at(-1)?.cell ?? (() => ""), least: 10 };
  const below = ({ command }: JobStatus): Line => [{ text: indent + command, style: "bold" }];
  return renderTable({ columns: columns.slice(0, -1), last: started, rows: sorted, below }, width, rows, look);
};
