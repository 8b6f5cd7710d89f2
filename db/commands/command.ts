import { count, DrizzleQueryError, type SQL } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import type { Lock } from "../sql/sql.ts";
import type { describeTables } from "../tables.ts";

export type Tables = ReturnType<typeof describeTables>;

/** What a command reads and writes with: one transaction. It ends with the command. */
export interface Tx {
  /** Drizzle over the transaction. Of PostgreSQL too: the builders have the same methods, but for locks and `run`. */
  readonly db: Pick<SqliteRemoteDatabase, "select" | "selectDistinct" | "insert" | "update" | "delete">;
  /** The tables as this database has them. */
  readonly tables: Tables;
}

/**
 * A write. `run` reads what it has to know and writes, in one transaction with other commands. It waits for nothing but its
 * own statements, and it may run again when a commit failed: ids, times and random values are arguments. What it throws
 * undoes what it wrote and nothing else.
 */
export interface Command<Args, Result> {
  /** What must not be written at the same time by another process. Held until the commit, and taken before the first statement. */
  readonly locks: (args: Args) => readonly Lock[];
  readonly run: (tx: Tx, args: Args) => Promise<Result>;
}

export function command<Args, Result>(
  run: (tx: Tx, args: Args) => Promise<Result>,
  locks: (args: Args) => readonly Lock[] = () => [],
): Command<Args, Result> {
  return { run, locks };
}

/** How many rows of a table a condition holds for. */
export async function countRows({ db }: Tx, table: SQLiteTable, condition: SQL | undefined): Promise<number> {
  const [row] = await db.select({ rows: count() }).from(table).where(condition);
  return row?.rows ?? 0;
}

/** A command and the arguments for it, which cross a thread: plain objects, lists, texts, numbers and dates. */
export interface Call {
  readonly command: Command<never, unknown>;
  readonly args: unknown;
}

/** What came of one of several calls. */
export type CallResult = { readonly value: unknown } | { readonly error: unknown };

/** Runs a call over a transaction. An error of the database is thrown as it is, without the values of its statement. */
export async function runCall(tx: Tx, { command: called, args }: Call): Promise<unknown> {
  try {
    return await called.run(tx, args as never);
  } catch (error) {
    throw error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  }
}
