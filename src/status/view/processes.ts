/** The largest processes, those of Hermes marked. */
import type { ProcessStatus, StatusSnapshot } from "../snapshot.js";
import type { Line, Piece } from "./line.js";
import type { Look } from "./look.js";
import { mb } from "./numbers.js";
import { renderTable, type Column, type LastColumn } from "./table.js";

const dim = (text: string): Piece => ({ text, style: "dim" });

export const processesSection = (
  { processes, jobs }: StatusSnapshot,
  width: number,
  rows: number,
  look: Look,
): Line[] => {
  const { glyphs } = look;
  const ofJobs = new Set(jobs.flatMap((job) => job.processes.map(({ pid }) => pid)));
  const columns: Column<ProcessStatus>[] = [
    { title: "PID", cell: ({ pid }) => String(pid), align: "right", rank: 1, least: 7 },
    { title: "MB", cell: ({ rss_mb }) => mb(rss_mb), align: "right", rank: 3, least: 6 },
    {
      title: "",
      cell: ({ pid, hermes }) => (hermes ? glyphs.hermes : " ") + (ofJobs.has(pid) ? glyphs.jobs : " "),
      style: ({ hermes }) => (hermes ? "magenta" : "cyan"),
      rank: 2,
      least: 2,
    },
  ];
  const last: LastColumn<ProcessStatus> = {
    title: "LARGEST PROCESSES",
    cell: ({ command, name }) => command || name,
    least: 12,
  };
  const note: Line = [
    ...(processes.some(({ hermes }) => hermes)
      ? [{ text: `   ${glyphs.hermes}`, style: "magenta" as const }, dim(" Hermes, or started by it")]
      : []),
    ...(processes.some(({ pid }) => ofJobs.has(pid))
      ? [{ text: `   ${glyphs.jobs}`, style: "cyan" as const }, dim(" of a job")]
      : []),
  ];
  // That there are more of them is no news, so the rows are cut without a word.
  return renderTable({ columns, last, rows: processes.slice(0, Math.max(0, rows - 1)), note }, width, rows, look);
};
