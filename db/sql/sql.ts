import type { Placeholder, SQL, SQLWrapper } from "drizzle-orm";
import type { CommandCall } from "../commands/command.ts";

/** A value of a column. Times are integers in milliseconds, booleans 0 and 1. */
export type SqlValue = string | number | null;

export type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

export function toStatement(sql: string, args: readonly SqlValue[] = []): Statement {
  return { sql, args };
}

/** Closes a connection again if the first work with it fails. */
export async function orClose<Result>(sql: Pick<Sql, "close">, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await sql.close();
    throw error;
  }
}

/**
 * What a write needs for itself where several processes write: it is held until the commit. Two writes that share it
 * may be written at the same time. One file has one writer, so SQLite ignores locks.
 */
export interface Lock {
  readonly name: string;
  readonly mode: "exclusive" | "shared";
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
  /** What its reads are built with. */
  readonly dialect: Dialect;
  read(statement: Statement): Promise<readonly Row[]>;
  /** All or nothing; durable when it resolves; one `Done` per statement. */
  batch(statements: readonly Statement[]): Promise<readonly Done[]>;
  /** Runs commands in one transaction, under their locks. All or nothing; durable when it resolves, with the result of each. */
  transact(calls: readonly CommandCall[]): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

/** What SQLite and PostgreSQL write in different ways. Each has one. */
export interface Dialect {
  /** How an argument stands in a text; by its type where that is known. */
  readonly place: (number: number, type?: ArgType) => string;
  /** A list as it is bound: the text of a statement stays the same, however many items there are. */
  readonly list: (items: readonly unknown[]) => string;
  /** Whether a column has one of the values of a list. */
  readonly isOneOf: (column: SQLWrapper, list: ListSql) => SQL;
  /** The items of a list as rows of one column, `j.value`. */
  readonly itemsOf: (list: ListSql) => SQL;
  /** A place of the list that an item of `itemsOf` is. */
  readonly placeIn: (at: number) => SQL;
  /** Values of rows as the text of a JSON list, in the order of the rows. */
  readonly jsonList: (value: SQLWrapper) => SQL;
  /** The table, read by this index. PostgreSQL chooses by itself. */
  readonly indexedBy: (table: SQLWrapper, index: string) => SQL;
  /** Joins `next`: of the rows of a table that hold a condition, the earliest of the first lane behind one. */
  readonly joinNextLane: (table: SQLWrapper, condition: SQLWrapper, lane: LaneSql) => SQL;
  /** The order in which the rows of `accounts` were added. */
  readonly addedOrder: SQL;
  /** In a group with `max(by)` over the rows where `value` is not null: the value of the row that has it. */
  readonly valueOfMax: (value: SQLWrapper, by: SQLWrapper) => SQL;
  /**
   * Whether no transaction can add a row at this position of the timeline any more. In PostgreSQL later positions may be
   * committed before earlier ones: readers stop at the first transaction that is still open. SQLite has one writer.
   */
  readonly isSettled: (position: SQLWrapper) => SQL | undefined;
}

/** Items, or the place of a list that is bound. */
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
  /** One argument, so that the text stays the same: see `Dialect.isOneOf`. Items that are no texts become JSON. */
  readonly list: readonly unknown[];
}
