import type { Placeholder, SQL, SQLWrapper } from "drizzle-orm";

/** A value of a column. Times are integers in milliseconds, booleans 0 and 1. */
export type SqlValue = string | number | null;

export type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  readonly sql: string;
  readonly args: readonly SqlValue[];
  /** Its text depends on what a caller asks for, so there may be thousands like it. */
  readonly isVaried?: boolean;
}

export function toStatement(sql: string, args: readonly SqlValue[] = []): Statement {
  return { sql, args };
}

/** Does the first work with a new connection, and closes the connection if that fails. */
export async function orClose<Result>(
  connection: { close(): Promise<void> },
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** A lock held until the commit. Shared locks don't exclude each other. SQLite ignores locks: a file has one writer. */
export interface Lock {
  readonly name: string;
  readonly mode: "exclusive" | "shared";
}

export interface StatementResult {
  /** Rows written; with RETURNING, rows returned. */
  readonly changes: number;
  readonly rows: readonly Row[];
}

/** Makes rows of lists of values. */
export function rowsOf(columns: readonly string[], rows: readonly (readonly unknown[])[]): readonly Row[] {
  // Safe: the tables have no blobs and no integers past 2^53, so that values are text, number or null.
  return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])) as Row);
}

/** A connection that reads. */
export interface Reader {
  /** How statements are written for this database. */
  readonly dialect: Dialect;
  read(statement: Statement): Promise<readonly Row[]>;
}

/** What SQLite and PostgreSQL spell differently. */
export interface Dialect {
  /** The placeholder of an argument, cast to its type if that is known. */
  readonly place: (number: number, type?: ArgType) => string;
  /** A list as one argument, so that the text of a statement does not depend on its length. */
  readonly list: (items: readonly unknown[]) => string;
  /** Whether a column has one of the values of a list. */
  readonly isOneOf: (column: SQLWrapper, list: ListSql) => SQL;
  /** The items of a list as rows of one column, `j.value`. */
  readonly itemsOf: (list: ListSql) => SQL;
  /** If the items of `itemsOf` are lists: the element of an item at this index. */
  readonly placeIn: (at: number) => SQL;
  /** Aggregates values into a JSON list, in the order of the rows. */
  readonly jsonList: (value: SQLWrapper) => SQL;
  /** Makes SQLite read the table by this index. PostgreSQL has no such hint. */
  readonly indexedBy: (table: SQLWrapper, index: string) => SQL;
  /** Joins, as `next`, the earliest row of the first lane after this one, among the rows that meet a condition. */
  readonly joinNextLane: (table: SQLWrapper, condition: SQLWrapper, lane: LaneSql) => SQL;
  /** A column that orders the rows of `accounts` as they were added. */
  readonly addedOrder: SQL;
  /** In a group that selects `max(by)`: the `value` of the row with that maximum. */
  readonly valueOfMax: (value: SQLWrapper, by: SQLWrapper) => SQL;
  /**
   * Whether no open transaction can still add a row up to this position of the timeline. PostgreSQL may commit later positions
   * before earlier ones, so readers stop at the first open transaction. Undefined for SQLite, which has one writer.
   */
  readonly isSettled: (position: SQLWrapper) => SQL | undefined;
}

/** A list, or the placeholder of one. */
export type ListSql = Placeholder | readonly unknown[];

/** The lane of an action, as SQL. */
export interface LaneSql {
  readonly accountId: SQLWrapper;
  readonly host: SQLWrapper;
  readonly keyId: SQLWrapper;
}

/** The type of an argument. */
export type ArgType = keyof ArgValues;

/** The values of arguments by their types. */
export interface ArgValues {
  readonly text: string;
  readonly number: number;
  /** Bound in milliseconds. */
  readonly time: Date | number;
  /** One argument: see `Dialect.list`. Items other than texts become JSON. */
  readonly list: readonly unknown[];
}
