import { type Color, columnCount, padded, type Paint, shortened, visible } from "../observability/terminal.ts";

/** A cell of a table: its text, which may be untrusted, its colour, and how many of its first characters must stay. */
export type Cell = string | { readonly text: string; readonly color?: Color; readonly uncut?: number };

/** A column of a table, and how it gives way on narrow terminals. */
export interface Column {
  readonly heading: string;
  /** The smallest width, in terminal columns, that it may be cut to; absent if it is never cut. */
  readonly min?: number;
  /** The order of leaving columns out if cutting is not enough, lowest first; absent for never. */
  readonly leaves?: number;
  /** Whether to write it below the row instead of leaving it out. */
  readonly goesBelow?: boolean;
  /** The width below which it is cut only once all other columns are at their smallest. */
  readonly keeps?: number;
  /** Ends a cut text. The beginning of an id needs no mark. */
  readonly mark?: "…" | "";
}

const GAP = 2;

/** Rows in aligned columns. Cuts the last column at the terminal's width. */
export function textTable(rows: readonly (readonly Cell[])[], paint: Paint, room = Number.POSITIVE_INFINITY): string {
  const shown = rows.map((row) => row.map(visibleCell));
  const count = Math.max(0, ...shown.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, at) => columnWidth(shown, at));
  return shown.map((row) => rowLine(row, widths, paint, room)).join("");
}

/**
 * A table with headings. On narrow terminals, cuts the widest columns, and leaves some out or writes them below, so that no
 * line is too wide. Leaves out a heading without anything below it.
 */
export function renderTable(
  columns: readonly Column[],
  texts: readonly (readonly Cell[])[],
  paint: Paint,
  room = Number.POSITIVE_INFINITY,
): string {
  const rows = texts.map((row) => row.map(visibleCell));
  const naturals = columns.map((column, at) => {
    const width = columnWidth(rows, at);
    return width === 0 ? 0 : Math.max(width, column.heading.length);
  });
  const leasts = columns.map(({ min = Number.POSITIVE_INFINITY }, at) => {
    const uncut = rows.reduce((most, row) => Math.max(most, uncutWidth(row[at] ?? "")), 0);
    return Math.min(naturals[at] ?? 0, Math.max(min, uncut === 0 ? 0 : uncut + 1));
  });
  const widths = fitted(columns, naturals, leasts, room);
  const shown = columns.flatMap((column, at) => (widths[at] === 0 ? [] : [{ ...column, at, width: widths[at] ?? 0 }]));
  const cut = (cell: Cell, width: number, mark?: Column["mark"]): Cell => {
    if (typeof cell === "string") return shortened(cell, width, mark);
    return { ...cell, text: shortened(cell.text, width, mark) };
  };
  const head = shown.map(({ heading, width }): Cell => ({ text: shortened(heading, width, ""), color: "grey" }));
  const shownWidths = shown.map(({ width }) => width);
  const below = columns.flatMap(({ goesBelow }, at) => (goesBelow === true && widths[at] === 0 ? [at] : []));
  const lines = rows.map((row) => {
    const line = shown.map(({ at, width, mark }) => cut(row[at] ?? "", width, mark));
    const belowLine = below.map((at) => row[at] ?? "");
    return rowLine(line, shownWidths, paint, room) + lineBelow(belowLine, paint, room);
  });
  // Without headings, it continues an earlier table.
  const isHeaded = head.some((cell) => cellText(cell) !== "");
  return (isHeaded ? rowLine(head, shownWidths, paint, room) : "") + lines.join("");
}

/** The cells of a row that go below it, as one line; empty without any. */
function lineBelow(cells: readonly Cell[], paint: Paint, room: number): string {
  const filled = cells.filter((cell) => cellText(cell) !== "");
  if (filled.length === 0) return "";
  const share = Math.floor((room - BELOW_INDENT) / filled.length) - GAP;
  const widths = filled.map((cell) => Math.min(columnCount(cellText(cell)), share));
  const first = filled.slice(0, -1).map((cell, at) => {
    const text = shortened(cellText(cell), widths[at] ?? 0);
    return typeof cell === "string" ? text : { ...cell, text };
  });
  return rowLine(["", ...first, ...filled.slice(-1)], [BELOW_INDENT - GAP, ...widths], paint, room);
}

const BELOW_INDENT = 4;

function visibleCell(cell: Cell): Cell {
  if (typeof cell === "string") return visible(cell);
  const { text, uncut = 0 } = cell;
  return { ...cell, text: visible(text), uncut: visible(text.slice(0, uncut)).length };
}

function cellText(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}

/** The columns that are never cut. */
function uncutWidth(cell: Cell): number {
  return typeof cell === "string" ? 0 : columnCount(cell.text.slice(0, cell.uncut ?? 0));
}

function columnWidth(rows: readonly (readonly Cell[])[], at: number): number {
  return rows.reduce((widest, row) => Math.max(widest, columnCount(cellText(row[at] ?? ""))), 0);
}

function rowLine(row: readonly Cell[], widths: readonly number[], paint: Paint, room: number): string {
  let left = room;
  const cells = row.map((cell, at) => {
    const isLast = at === row.length - 1;
    const text = isLast
      ? shortened(cellText(cell), Math.max(left, uncutWidth(cell) + 1, 2))
      : padded(cellText(cell), widths[at] ?? 0);
    left -= columnCount(text) + GAP;
    return typeof cell === "string" || cell.color === undefined ? text : paint(text, cell.color);
  });
  return `${cells.join(" ".repeat(GAP)).trimEnd()}\n`;
}

/** The width of each column; 0 to leave it out. */
function fitted(
  columns: readonly Column[],
  naturals: readonly number[],
  leasts: readonly number[],
  room: number,
): readonly number[] {
  const widths = [...naturals];
  const least = (at: number) => Math.min(widths[at] ?? 0, leasts[at] ?? 0);
  const leaving = columns
    .flatMap(({ leaves }, at) => (leaves === undefined ? [] : [{ at, leaves }]))
    .toSorted((one, other) => one.leaves - other.leaves);
  for (const { at } of leaving) {
    if (totalWidth(widths.map((_, one) => least(one))) <= room) break;
    widths[at] = 0;
  }
  const kept = (at: number) => Math.max(least(at), Math.min(widths[at] ?? 0, columns[at]?.keeps ?? 0));
  for (const floor of [kept, least]) cutTo(floor, widths, room);
  return widths;
}

/** Cuts the widest columns until all fit, but none below its floor. */
function cutTo(floor: (at: number) => number, widths: number[], room: number): void {
  for (let excess = totalWidth(widths) - room; excess > 0;) {
    const cuttable = widths.map((width, at) => (width > floor(at) ? width : 0));
    const widest = Math.max(...cuttable);
    if (widest === 0) return;
    const at = cuttable.indexOf(widest);
    // Cuts down to the next widest at once. Equal columns give way in turn.
    const next = Math.max(0, ...cuttable.toSpliced(at, 1));
    const step = Math.max(1, Math.min(excess, widest - Math.max(next, floor(at))));
    widths[at] = widest - step;
    excess -= step;
  }
}

function totalWidth(widths: readonly number[]): number {
  const shown = widths.filter((width) => width > 0);
  return shown.reduce((sum, width) => sum + width, 0) + GAP * Math.max(0, shown.length - 1);
}
