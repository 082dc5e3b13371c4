/** Tables that give up their least important columns, and their last rows, when there is no room. */
import { cellsOf, cutText, harmless, padText, type Line, type Piece } from "./line.js";
import type { Look, ViewStyle } from "./look.js";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => string;
  style?: (row: Row) => ViewStyle | undefined;
  align?: "left" | "right";
  /** Columns of low rank go first. */
  rank: number;
  /** Never narrower, so that columns do not jump while numbers change. */
  least?: number;
  most?: number;
}

/** What a row is about; it stands last and has all the room that is left. */
export type LastColumn<Row> = Omit<Column<Row>, "align" | "rank" | "least" | "most"> & {
  /** With less room than this, another column has to go. */
  least: number;
};

interface Fitted<Row> {
  columns: { column: Column<Row>; width: number }[];
  /** All columns are there, with all of their text. */
  isWhole: boolean;
}

const GAP = 1;

const fitColumns = <Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
  least: number,
): Fitted<Row> => {
  let isWhole = true;
  let kept = columns.map((column) => {
    const wanted = Math.max(
      column.least ?? 0,
      cellsOf(column.title),
      ...rows.map((row) => cellsOf(harmless(column.cell(row)))),
    );
    isWhole &&= wanted <= (column.most ?? Infinity);
    return { column, width: Math.min(wanted, column.most ?? Infinity) };
  });
  const room = (): number => width - kept.reduce((sum, each) => sum + each.width + GAP, 0);
  while (kept.length > 1 && room() < least) {
    const lowest = Math.min(...kept.map(({ column }) => column.rank));
    kept = kept.filter(({ column }) => column.rank !== lowest);
    isWhole = false;
  }
  return { columns: kept, isWhole };
};

/** Whether everything stands in one line a row, the last column with at least its least width. */
export const fitsOneLine = <Row>(
  columns: readonly Column<Row>[],
  last: LastColumn<Row>,
  rows: readonly Row[],
  width: number,
): boolean => fitColumns(columns, rows, width, last.least).isWhole;

export interface TableText<Row> {
  columns: readonly Column<Row>[];
  last: LastColumn<Row>;
  rows: readonly Row[];
  /** What is in the heading instead of the last column's title. */
  note?: Line;
  /** A second line for each row. */
  below?: (row: Row) => Line;
}

/** A heading and the rows, in at most so many lines; the last one tells how many rows had no room. */
export const renderTable = <Row>(table: TableText<Row>, width: number, height: number, look: Look): Line[] => {
  const { columns, last, rows, below } = table;
  if (height < 1) return [];
  const fitted = fitColumns(columns, rows, width, last.least).columns;
  const heading: Piece[] = fitted.map(({ column, width: cells }) => ({
    text: `${padText(column.title, cells, column.align)} `,
    style: "dim",
  }));
  const lines: Line[] = [[...heading, { text: last.title, style: "dim" }, ...(table.note ?? [])]];
  const each = below ? 2 : 1;
  const isCut = rows.length * each > height - 1;
  const shown = isCut ? Math.max(0, Math.floor((height - 2) / each)) : rows.length;
  for (const row of rows.slice(0, shown)) {
    const cells: Piece[] = fitted.flatMap(({ column, width: space }) => [
      {
        text: padText(cutText(harmless(column.cell(row)), space, look.glyphs.cut), space, column.align),
        style: column.style?.(row),
      },
      { text: " " },
    ]);
    lines.push([...cells, { text: last.cell(row), style: last.style?.(row) }]);
    if (below) lines.push(below(row));
  }
  if (isCut && height > 1) lines.push([{ text: `   ${look.glyphs.cut} ${rows.length - shown} more`, style: "dim" }]);
  return lines;
};
