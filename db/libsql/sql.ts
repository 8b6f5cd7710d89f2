import type { Query } from "drizzle-orm";
import { drizzle } from "drizzle-orm/sqlite-proxy";

/** A value of a column. Times are integers in milliseconds, booleans 0 and 1. */
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
 * What the store needs of a connection: reads, and writes in one transaction. A transaction can't stay open across
 * turns of the event loop, because a second one would block it. Both throw `StoreUnavailable` when the database can't
 * be reached or written.
 */
export interface Sql {
  read(statement: Statement): Promise<readonly Row[]>;
  /** All or nothing; durable when it resolves; one `Done` per statement. */
  batch(statements: readonly Statement[]): Promise<readonly Done[]>;
  close(): Promise<void>;
}

/** Only for reads: writes are built with it and passed to the writer. */
export function drizzleOver(sql: Sql) {
  return drizzle(async (text, params) => {
    // Safe: the columns of these tables bind to text, integers and null only.
    const rows = await sql.read({ sql: text, args: params as SqlValue[] });
    return { rows: rows.map((row) => Object.values(row)) };
  });
}

/** The statement of a query builder. */
export function statementOf(builder: { toSQL(): Query }): Statement {
  const { sql, params } = builder.toSQL();
  // Safe: as above.
  return { sql, args: params as SqlValue[] };
}

/** A condition and its arguments. */
export interface Guard {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

export const ALWAYS: Guard = { sql: "1", args: [] };

/**
 * Holds if the statement before wrote a row. A change is a chain: first the action's row, guarded by its revision, then
 * each statement only where the one before wrote. So a change that lost writes nothing, and nothing is looked up twice.
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
 * Builds a statement's text once per variant: every new string would be hashed again for each lookup, seven times per
 * action.
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
