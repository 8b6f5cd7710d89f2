import { type Column, count, DrizzleQueryError, inArray, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import type { Reader } from "../sql/read.ts";
import type { Lock } from "../sql/sql.ts";
import type { Writer } from "../sql/writer.ts";
import type { ClaimResult, QueueClaim } from "./claims.ts";
import type { Lists } from "./lists.ts";

/** What every part of the store has. */
export interface Connection {
  readonly reader: Reader;
  readonly writer: Writer;
}

/** What a command reads and writes with: one transaction. It ends with the command. */
export interface Tx {
  /** Drizzle over the transaction. Of PostgreSQL too: the builders have the same methods, but for locks and `run`. */
  readonly db: Pick<SqliteRemoteDatabase, "select" | "selectDistinct" | "insert" | "update" | "delete">;
  /** The order in which the rows of `accounts` were added. */
  readonly addedOrder: SQL;
  /** For what is written often: one statement for many rows. */
  readonly lists: Lists;
  /** A claim of rows by `commands/claims.ts`: SQLite reads and writes, PostgreSQL locks in one statement. */
  claim(claims: readonly QueueClaim[]): Promise<readonly ClaimResult[]>;
}

/** What a SELECT is built with: `qb`, or the transaction of a command. */
export type Selects = Pick<Tx["db"], "select">;

/**
 * A write. `run` reads what it has to know and writes, in one transaction with other commands. It waits for nothing but its
 * own statements, and it may run again when a commit failed: ids and times are arguments. What it throws undoes what it wrote
 * and nothing else. Its arguments cross a thread: plain objects, lists, texts, numbers and dates.
 */
export interface Command<Args extends readonly unknown[], Result> {
  /** What must not be written at the same time by another process. Held until the commit, and taken before the first statement. */
  readonly locks: (...args: Args) => readonly Lock[];
  /** About how many rows and bytes it writes: a commit is bounded by them. */
  readonly size: (...args: Args) => { readonly rows: number; readonly bytes: number };
  readonly run: (tx: Tx, ...args: Args) => Promise<Result>;
  /** Of a command that is called often: runs several calls of one argument at once. Arguments and results are JSON. */
  readonly runAll: ((tx: Tx, args: readonly Args[0][]) => Promise<readonly Result[]>) | null;
  readonly turn: Turn;
}

/**
 * When a command runs among those of its commit. Claims come behind changes: they must not win over a pause or decision of
 * their commit. Creates come behind claims: what a claim finds was stored before it, so that memory has heard of it.
 */
type Turn = "change" | "claim" | "create";

const TURNS: readonly Turn[] = ["change", "claim", "create"];

/** A plain command takes the time of several rows, since it waits for each of its statements. */
const ROWS_OF_COMMAND = 10;

/** A command that is a method of a store, as `command<PauseStore["end"]>`, which says what it does; or one of its own. */
export function command<Args extends readonly unknown[], Result>(
  run: (tx: Tx, ...args: Args) => Promise<Result>,
  locks?: Locks<Args>,
): Command<Args, Result>;
export function command<Method extends (...args: never) => Promise<unknown>>(
  run: (tx: Tx, ...args: Parameters<Method>) => Promise<Awaited<ReturnType<Method>>>,
  locks?: (...args: Parameters<Method>) => readonly Lock[],
): Command<Parameters<Method>, Awaited<ReturnType<Method>>>;
export function command<Args extends readonly unknown[], Result>(
  run: (tx: Tx, ...args: Args) => Promise<Result>,
  locks: (...args: Args) => readonly Lock[] = () => [],
): Command<Args, Result> {
  const size = (...args: Args) => ({ rows: ROWS_OF_COMMAND, bytes: JSON.stringify(args).length });
  return { run, locks, size, runAll: null, turn: "change" };
}

/** Locks that say nothing of the types of arguments: it would be inferred that there are no more than these take. */
type Locks<Args> = Args extends infer Known extends readonly unknown[] ? (...args: Known) => readonly Lock[] : never;

/** A command for lists. `runAll` must return a result for each of its arguments. */
export function listCommand<Arg, Result>(
  runAll: (tx: Tx, args: readonly Arg[]) => Promise<readonly Result[]>,
  { locks, size, turn = "change" }: Pick<Command<[Arg], Result>, "locks" | "size"> & { readonly turn?: Turn },
): Command<[Arg], Result> {
  const run = async (tx: Tx, arg: Arg) => {
    const [result] = await runAll(tx, [arg]);
    if (result === undefined) throw new Error("A command gave no result.");
    return result;
  };
  return { run, runAll, locks, size, turn };
}

/** Files of commands export what they are called with too. */
export function isCommand(exported: unknown): exported is AnyCommand {
  return typeof exported === "object" && exported !== null && "runAll" in exported;
}

/** How many rows of a table a condition holds for. */
export async function countRows({ db }: Tx, table: SQLiteTable, condition: SQL | undefined): Promise<number> {
  const [row] = await db.select({ rows: count() }).from(table).where(condition);
  return row?.rows ?? 0;
}

/** Whether a condition holds for a row of a table. */
export async function hasRow({ db }: Tx, table: SQLiteTable, condition?: SQL): Promise<boolean> {
  const found = db.select({ one: sql`1` }).from(table);
  return (await found.where(condition).limit(1)).length > 0;
}

/** Rows that one command deletes, so that it never blocks the writer for long. */
export const PRUNE_ROWS = 500;

/** Deletes rows that a condition holds for, `PRUNE_ROWS` at most; returns how many. */
export async function deleteSome({ db }: Tx, key: SQLiteColumn, condition: SQL | undefined): Promise<number> {
  const some = db.select({ key }).from(key.table).where(condition).limit(PRUNE_ROWS);
  return (await db.delete(key.table).where(inArray(key, some)).returning({ key })).length;
}

/** Whether columns, those of a primary key, have the values of one of the rows. */
export function isOneOfRows(columns: readonly Column[], rows: readonly (readonly (string | number)[])[]): SQL {
  const names = sql.join([...columns], sql`, `);
  const values = rows.map((row) => {
    // PostgreSQL takes an argument for text here.
    const members = row.map((value) => (typeof value === "number" ? sql`cast(${value} as bigint)` : sql`${value}`));
    return sql`(${sql.join(members, sql`, `)})`;
  });
  return sql`(${names}) in (values ${sql.join(values, sql`, `)})`;
}

export type AnyCommand = Command<never, unknown>;

export interface CommandCall {
  readonly command: AnyCommand;
  readonly args: readonly unknown[];
}

/** Runs calls in their turns by `run`, which gets those of one list command together. One result per call, in order. */
export async function runCalls(
  calls: readonly CommandCall[],
  run: (group: readonly CommandCall[]) => Promise<readonly unknown[]>,
): Promise<readonly unknown[]> {
  const groups = [...Map.groupBy(calls, (call) => (call.command.runAll === null ? call : call.command)).values()];
  const results = new Map<CommandCall, unknown>();
  for (const turn of TURNS) {
    for (const group of groups.filter(([call]) => call?.command.turn === turn)) {
      const values = await run(group);
      for (const [at, call] of group.entries()) results.set(call, values[at]);
    }
  }
  return calls.map((call) => results.get(call));
}

/** Runs a group over a transaction. An error of the database is thrown as it is, without the values of its statement. */
export async function runGroup(tx: Tx, calls: readonly CommandCall[]): Promise<readonly unknown[]> {
  const [first] = calls;
  if (first === undefined) return [];
  const { run, runAll } = first.command;
  try {
    // Safe: `Writer.run` takes the arguments of the command.
    if (runAll === null) return [await run(tx, ...(first.args as never))];
    const results = await runAll(
      tx,
      calls.map(({ args: [one] }) => one as never),
    );
    if (results.length < calls.length) throw new Error("A command gave no result.");
    return results;
  } catch (error) {
    throw error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  }
}
