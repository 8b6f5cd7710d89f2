import type { CommandCall } from "../commands/command.ts";
import type { Dialect } from "./dialect.ts";

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
