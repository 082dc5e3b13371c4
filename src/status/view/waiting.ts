/** The queue: who waits, where in the line, and what for. */
import type { StatusSnapshot, WaitingStatus } from "../snapshot.js";
import type { Line } from "./line.js";
import type { Look } from "./look.js";
import { age } from "./numbers.js";
import { fitsOneLine, renderTable, type Column, type LastColumn } from "./table.js";

/** Could not be written down. */
const UNKNOWN = "?";

const COLUMNS: readonly Column<WaitingStatus>[] = [
  { title: "#", cell: ({ position }) => String(position), align: "right", rank: 9, least: 2 },
  { title: "PID", cell: ({ pid }) => String(pid ?? UNKNOWN), align: "right", rank: 8, least: 7 },
  { title: "KIND", cell: ({ kind }) => kind ?? UNKNOWN, rank: 3, least: 7, most: 10 },
  {
    title: "WAITED",
    cell: ({ waiting_s }) => (waiting_s === null ? UNKNOWN : age(waiting_s)),
    align: "right",
    rank: 6,
  },
  { title: "ASKED BY", cell: ({ who }) => `${who.name ?? UNKNOWN} ${who.pid ?? ""}`.trimEnd(), rank: 2, most: 22 },
];

const COMMAND: LastColumn<WaitingStatus> = { title: "COMMAND", cell: ({ command }) => command ?? UNKNOWN, least: 24 };

const reasonColumn = (width: number): Column<WaitingStatus> => ({
  title: "WAITING FOR",
  cell: ({ reason }) => reason ?? UNKNOWN,
  style: () => "yellow",
  rank: 5,
  most: Math.max(12, Math.floor(width * 0.4)),
});

const oneLine = (width: number): Column<WaitingStatus>[] => [...COLUMNS, reasonColumn(width)];

export const waitingWanted = ({ waiting }: StatusSnapshot, width: number): number =>
  waiting.length === 0 ? 0 : 1 + waiting.length * (fitsOneLine(oneLine(width), COMMAND, waiting, width) ? 1 : 2);

const reasonLine = ({ reason }: WaitingStatus): Line => [{ text: `   ${reason ?? UNKNOWN}`, style: "yellow" }];

export const waitingSection = (snapshot: StatusSnapshot, width: number, rows: number, look: Look): Line[] => {
  const waiting = snapshot.waiting.toSorted((a, b) => a.position - b.position);
  if (waiting.length === 0) return [];
  const columns = oneLine(width);
  if (rows < waitingWanted(snapshot, width) || fitsOneLine(columns, COMMAND, waiting, width)) {
    return renderTable({ columns, last: COMMAND, rows: waiting }, width, rows, look);
  }
  return renderTable({ columns: COLUMNS, last: COMMAND, rows: waiting, below: reasonLine }, width, rows, look);
};
