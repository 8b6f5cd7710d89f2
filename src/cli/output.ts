import { type Io, UsageError, EXIT } from "./command.ts";
import { OutgateError } from "../client/transport.ts";

const COLORS = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const;

export type Color = keyof typeof COLORS;

/** Colours a text for a terminal; leaves it as it is elsewhere, and where NO_COLOR is set (no-color.org). */
export type Paint = (text: string, color: Color) => string;

export function createPaint({ isTty, env }: Io): Paint {
  const isColored = isTty && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  return (text, color) => (isColored ? `\u001b[${COLORS[color]}m${text}\u001b[0m` : text);
}

/** Control, format and bidirectional characters: in a terminal they act, or hide what is shown. */
const ACTING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const ACTING_IN_LINES = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Text of strangers for a terminal: what would act is shown as a code. */
export function seen(text: string, keepsLines = false): string {
  return text.replaceAll(keepsLines ? ACTING_IN_LINES : ACTING, codeOf);
}

function codeOf(character: string): string {
  return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** JSON on one line, or indented for people. What would act in a terminal is escaped, so it is the same JSON. */
export function jsonText(value: unknown, isIndented: boolean): string {
  const text = JSON.stringify(value, null, isIndented ? 2 : undefined);
  const escaped = text.replaceAll(ACTING_IN_LINES, (character) =>
    Array.from({ length: character.length }, (_, at) => escapeOf(character.charCodeAt(at))).join(""),
  );
  return `${escaped}\n`;
}

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}

/** A cell of a table: its text, how it is painted, and how much of its beginning is never cut. */
export type Cell = string | { readonly text: string; readonly color?: Color; readonly uncut?: number };

/** Columns side by side, the last one cut where the terminal ends. */
export function table(rows: readonly (readonly Cell[])[], paint: Paint, columns = Number.POSITIVE_INFINITY): string {
  const textOf = (cell: Cell) => (typeof cell === "string" ? cell : cell.text);
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, at) => Math.max(...rows.map((row) => textOf(row[at] ?? "").length)));
  return rows
    .map((row) => {
      let room = columns;
      const cells = row.map((cell, at) => {
        const isLast = at === row.length - 1;
        const uncut = typeof cell === "string" ? 0 : (cell.uncut ?? 0);
        const text = isLast ? cut(textOf(cell), Math.max(room, uncut + 1)) : textOf(cell).padEnd(widths[at] ?? 0);
        room -= text.length + 2;
        return typeof cell === "string" || cell.color === undefined ? text : paint(text, cell.color);
      });
      return `${cells.join("  ")}\n`;
    })
    .join("");
}

function cut(text: string, room: number): string {
  return text.length <= room || room < 2 ? text : `${text.slice(0, room - 1)}…`;
}

interface SourceText {
  readonly source?: string;
}

type ExactReviver = (name: string, value: unknown, context?: SourceText) => unknown;

// Safe: JSON.rawJSON (ES2026) is there or it is not, as in Node 20; nothing else is taken from it.

// Safe: JSON.rawJSON (ES2026) is there or it is not, as in Node 20; nothing else is taken from it.
const { rawJSON } = JSON as { readonly rawJSON?: (text: string) => unknown };

/**
 * Parses JSON so that it is printed as it was written: 12345678901234567890 and 1.0 stay what they are. Where the runtime
 * can't do it (Node before 22) such a number comes out as JavaScript has it.
 */
export function parseExact(text: string): unknown {
  const revive: ExactReviver = (_name, value, context) => {
    const source = context?.source;
    const isRounded = typeof value === "number" && source !== undefined && String(value) !== source;
    return isRounded && rawJSON !== undefined ? rawJSON(source) : value;
  };
  return JSON.parse(text, revive);
}

/** A JSON object that a person has written. */
export function parseObject(text: string, what: string): Readonly<Record<string, unknown>> {
  const value = parseOr(text, what);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`${what} has to be a JSON object.`);
  }
  // Safe: an object of JSON has members by name.
  return value as Readonly<Record<string, unknown>>;
}

function parseOr(text: string, what: string): unknown {
  try {
    return parseExact(text);
  } catch {
    throw new UsageError(`${what} is not valid JSON.`);
  }
}

/** A failed call in sentences for a person, with the exit code that it has. Null: it was no call that failed. */
export function explain(error: unknown, url: string): { readonly message: string; readonly code: number } | null {
  if (!(error instanceof OutgateError)) return null;
  const lines = [
    sentenceOf(error, url),
    ...error.details.map(({ field, message }) => `  ${field || "body"}: ${message}`),
  ];
  if (error.code === "internal_error" && error.requestId !== null) lines.push(`  Request id: ${error.requestId}`);
  return { message: seen(lines.join("\n"), true), code: error.code === "timed_out" ? EXIT.timeout : EXIT.failed };
}

function sentenceOf({ code, message }: OutgateError, url: string): string {
  if (code === "unreachable") {
    return `${message} Start it with \`outgate serve\`, or set OUTGATE_URL to where it is.`;
  }
  if (code === "unauthorized") {
    return `The API key is not one that ${url} knows: it is mistyped, revoked, or of another service.`;
  }
  if (code === "not_outgate") return `${message} Set OUTGATE_URL to where Outgate is; it is ${url} now.`;
  return message;
}
