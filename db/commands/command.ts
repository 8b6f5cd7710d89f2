/**
 * Writes: what a command is, with what it reads and writes (`Tx`), and how a connection runs the commands of one commit. `lists.ts` writes
 * many rows at once. Each other file of this folder has the commands of a subject, and `all.ts` lists them. `sql/writer.ts` collects
 * commands for a commit.
 */
import { and, DrizzleQueryError, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import type { NotificationKind } from "../../src/core/notification-events.ts";
import type { ClaimedLane, LaneName } from "../../src/core/store.ts";
import type { Reader, Statement, StatementResult } from "../sql/dialect.ts";
import type { Lock } from "../sql/locks.ts";
import { qb } from "../sql/read.ts";
import type { Lists } from "./lists.ts";

/** The transaction in which a command reads and writes. It ends with the command. */
export interface Tx extends Reader {
  /** Drizzle's builder for writes, for both databases. For reads, use `read.ts`. */
  readonly db: Pick<SqliteRemoteDatabase, "insert" | "update" | "delete">;
  /** One statement for many rows, for hot reads and writes. */
  readonly lists: Lists;
  /** Claims rows in one statement, where the database can (`postgres/claim.ts`). Null: `claims.ts` reads and then writes. */
  readonly claim: ((claims: readonly QueueClaim[]) => Promise<readonly ClaimResult[]>) | null;
  /** Runs a statement that is not written with the builder. */
  run(statement: Statement): Promise<StatementResult>;
}

/**
 * A write. `run` reads what it needs and writes, in one transaction with other commands. It must wait for nothing but its own
 * statements. It may run again after a failed commit, so ids and times are arguments. If it throws, only its own writes are
 * undone. Its arguments cross a thread, so they are plain objects, lists, texts, numbers and dates.
 */
export interface Command<Args extends readonly unknown[], Result> {
  /** Locks that are taken before the transaction's first statement and held until its commit. */
  readonly locks: (...args: Args) => readonly Lock[];
  /** About how many rows and bytes it writes, to bound a commit. */
  readonly size: (...args: Args) => { readonly rows: number; readonly bytes: number };
  readonly run: (tx: Tx, calls: readonly Args[]) => Promise<readonly Result[]>;
  /** Whether it is called often, and so runs all of its calls of a commit at once. Arguments and results are JSON. */
  readonly isList: boolean;
  readonly turn: Turn;
}

/**
 * When a command runs among those of its commit. Claims follow changes, so that a pause or decision of the same commit wins.
 * Creates follow claims, so that a claim finds nothing that memory does not know yet.
 */
type Turn = "change" | "claim" | "create";

const TURNS: readonly Turn[] = ["change", "claim", "create"];

/** A plain command counts as several rows, since it waits for each of its statements. */
const ROWS_OF_COMMAND = 10;

/** Makes a command. Its arguments may be those of a store's method, as in `command<PauseStore["end"]>`, or its own. */
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
  const runEach = (tx: Tx, calls: readonly Args[]) => Promise.all(calls.map((args) => run(tx, ...args)));
  return { run: runEach, locks, size, isList: false, turn: "change" };
}

/** Keeps TypeScript from inferring a command's arguments from those of its locks. */
type Locks<Args> = Args extends infer Known extends readonly unknown[] ? (...args: Known) => readonly Lock[] : never;

/** Makes a command that runs several calls at once. `runAll` must return a result for each argument. */
export function listCommand<Arg, Result>(
  runAll: (tx: Tx, args: readonly Arg[]) => Promise<readonly Result[]>,
  { locks, size, turn = "change" }: Pick<Command<[Arg], Result>, "locks" | "size"> & { readonly turn?: Turn },
): Command<[Arg], Result> {
  const run = (tx: Tx, calls: readonly [Arg][]) =>
    runAll(
      tx,
      calls.map(([arg]) => arg),
    );
  return { run, locks, size, isList: true, turn };
}

export function isCommand(exported: unknown): exported is AnyCommand {
  return typeof exported === "object" && exported !== null && "isList" in exported;
}

/** How many rows one command may delete, so that it never blocks the writer for long. */
export const PRUNE_ROWS = 500;

/** Deletes at most `limit` rows that meet a condition. `key`: the columns of the table's key. Returns whether there may be more. */
export async function deleteSome(
  { db }: Tx,
  key: readonly [SQLiteColumn, ...SQLiteColumn[]],
  condition: SQL | undefined,
  limit = PRUNE_ROWS,
): Promise<boolean> {
  const [first] = key;
  const columns = Object.fromEntries(key.map((column) => [column.name, column]));
  const some = qb.select(columns).from(first.table).where(condition).limit(limit);
  const isOne = sql`(${sql.join([...key], sql`, `)}) in ${some}`;
  return (await db.delete(first.table).where(and(isOne, condition)).returning({ key: first })).length === limit;
}

export type AnyCommand = Command<never, unknown>;

export interface CommandCall {
  readonly command: AnyCommand;
  readonly args: readonly unknown[];
}

/** Runs calls by their turns, and all calls of a list command together. Returns one result per call, in order. */
export async function runCalls(
  calls: readonly CommandCall[],
  run: (group: readonly CommandCall[]) => Promise<readonly unknown[]>,
): Promise<readonly unknown[]> {
  const groups = [...Map.groupBy(calls, (call) => (call.command.isList ? call.command : call)).values()];
  const results = new Map<CommandCall, unknown>();
  for (const turn of TURNS) {
    for (const group of groups.filter(([call]) => call?.command.turn === turn)) {
      const values = await run(group);
      for (const [at, call] of group.entries()) results.set(call, values[at]);
    }
  }
  return calls.map((call) => results.get(call));
}

/** Runs one call, or several of a list command. Unwraps Drizzle's errors, which contain the values of the statement. */
export async function runGroup(tx: Tx, calls: readonly CommandCall[]): Promise<readonly unknown[]> {
  const [first] = calls;
  if (first === undefined) return [];
  try {
    // Safe: `Writer.run` takes only arguments of the command.
    const results = await first.command.run(
      tx,
      calls.map(({ args }) => args as never),
    );
    if (results.length < calls.length) throw new Error("A command gave no result.");
    return results;
  } catch (error) {
    throw error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  }
}

/** The queues with lanes: actions, and each kind of notification. */
export type QueueName = "action" | NotificationKind;

/** A claim with times in milliseconds. See `Claim` in `src/core/store.ts`. */
export interface QueueClaim {
  readonly queue: QueueName;
  readonly lanes: readonly ClaimedLane[];
  readonly bytesMax: number;
  /** The largest row that may be claimed, in bytes: each lane ends before its first larger row. */
  readonly rowBytesMax: number;
  readonly now: number;
  readonly leaseUntil: number;
  /** The node that claims. */
  readonly by: string;
}

export interface ClaimResult {
  /** In the order of their turns. `fence` is the revision of an action and the attempts of a notification, after the claim. */
  readonly rows: readonly { readonly id: string; readonly fence: number }[];
  /** For each lane that is not paused, the earliest row that stays pending, if there is one. */
  readonly next: readonly (LaneName & { readonly dueAt: number; readonly bytes: number })[];
}

/** A connection to a database. Its methods throw `StoreUnavailable` if the database can't be reached or written. */
export interface DbConnection extends Reader {
  /** Runs commands in one transaction under their locks. Resolves with their results when they are durable. */
  transact(calls: readonly CommandCall[]): Promise<readonly unknown[]>;
  close(): Promise<void>;
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

/** Runs statements in order, after all other commands of the commit. */
export const execute = {
  ...command(async (tx, statements: readonly Statement[]) => {
    const done: StatementResult[] = [];
    // Stop at the first failure: on a full disk, SQLite ends the transaction, and the next statement would commit on its own.
    for (const statement of statements) done.push(await tx.run(statement));
    return done;
  }),
  turn: "create",
} as const;

/** Runs statements in one transaction of their own. Returns what each did. */
export async function runStatements(
  connection: Pick<DbConnection, "transact">,
  statements: readonly Statement[],
): Promise<readonly StatementResult[]> {
  const [done] = await connection.transact([{ command: execute, args: [statements] }]);
  // Safe: the command returned it.
  return done as readonly StatementResult[];
}
