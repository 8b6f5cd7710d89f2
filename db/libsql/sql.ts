import type { Query } from "drizzle-orm";
import { drizzle } from "drizzle-orm/sqlite-proxy";

/** What goes into a column and comes out of it. Times are integers in milliseconds, booleans 0 and 1. */
export type SqlValue = string | number | null;

export type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

export interface Done {
  /** Rows written; with RETURNING, rows returned. */
  readonly changes: number;
  readonly rows: readonly Row[];
}

/**
 * The little of a database connection that the store needs: reads, and writes in one transaction. There is no way to hold
 * a transaction open across turns of the event loop, because a second one would stop the loop until the first ends.
 * Both throw `StoreUnavailable` when the database can't be reached or written now.
 */
export interface Sql {
  read(statement: Statement): Promise<readonly Row[]>;
  /** All or nothing, durable when it resolves; one `Done` a statement. */
  batch(statements: readonly Statement[]): Promise<readonly Done[]>;
  close(): Promise<void>;
}

/** Only reads are ever run by it: what it would write is handed to the writer as a statement. */
export function drizzleOver(sql: Sql) {
  return drizzle(async (text, params) => {
    // Safe: the columns of these tables bind to text, integers and null only.
    const rows = await sql.read({ sql: text, args: params as SqlValue[] });
    return { rows: rows.map((row) => Object.values(row)) };
  });
}

/** What a builder has built. */
export function statementOf(builder: { toSQL(): Query }): Statement {
  const { sql, params } = builder.toSQL();
  // Safe: as above.
  return { sql, args: params as SqlValue[] };
}

/** A condition of a statement, and its arguments. */
export interface Guard {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

export const ALWAYS: Guard = { sql: "1", args: [] };

/**
 * True when the statement before this one wrote a row. A change is a chain: the row of the action first, under its
 * revision, and each statement after it only where the one before wrote; so a change that lost leaves nothing behind,
 * and nothing is looked up twice.
 */
export const CHANGED: Guard = { sql: "changes() > 0", args: [] };

/** All of several conditions. */
export function allOf(guards: readonly Guard[]): Guard {
  return { sql: guards.map(({ sql }) => sql).join(" AND "), args: guards.flatMap(({ args }) => args) };
}

/** One of two conditions. */
export function eitherOf(one: Guard, other: Guard): Guard {
  return { sql: `(${one.sql} OR ${other.sql})`, args: [...one.args, ...other.args] };
}

/**
 * Makes a statement's text from one changing part, once for each: a text that is built anew is hashed anew wherever it is
 * looked up, and there are seven to an action.
 */
export function textOnce<Part extends string>(build: (part: Part) => string): (part: Part) => string {
  const built = new Map<Part, string>();
  return (part) => {
    const known = built.get(part);
    if (known !== undefined) return known;
    const text = build(part);
    built.set(part, text);
    return text;
  };
}
