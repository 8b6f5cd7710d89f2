/**
 * Writes: what a command is, with what it reads and writes (`Tx`), and how a connection runs the commands of one commit. Last come reads and
 * writes of many rows at once (`Lists`). Each other file of this folder has the commands of a subject, and `all.ts` lists them.
 * `sql/writer.ts` collects commands for a commit.
 */
import { and, type Column, DrizzleQueryError, getTableColumns, getTableName, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import type { NotificationKind } from "../../src/core/notification-events.ts";
import type { ClaimedLane, LaneName } from "../../src/core/store.ts";
import type { Reader, SqlValue, Statement, StatementResult } from "../sql/dialect.ts";
import type { Lock } from "../sql/locks.ts";
import { type Prepared, qb } from "../sql/read.ts";

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

/**
 * Reads and writes many rows at once: SQLite with a prepared statement for each row, PostgreSQL with one statement over
 * `unnest`. Queries and writes are constants, compiled when they are first used.
 */
export interface Lists {
  /** Runs the query for each of the arguments. Returns a list of rows for each. */
  find<Args extends Named, Row>(
    query: Prepared<Args, Row>,
    args: readonly Args[],
  ): Promise<readonly (readonly Row[])[]>;
  /** Inserts rows. A refused row fails the command; PostgreSQL may report it with a later statement. */
  insert(into: InsertList, rows: readonly Values[]): Promise<void>;
  /** Updates rows. Returns for each whether it was found and written. A row has the values to set, then those to find it. */
  update(what: UpdateList, rows: readonly Values[]): Promise<readonly boolean[]>;
}

/** Runs the query for each argument and returns its rows by the argument's name. Arguments of the same name run once. */
export async function findEach<Args extends Named, Row>(
  lists: Pick<Lists, "find">,
  query: Prepared<Args, Row>,
  args: readonly Args[],
  name: (args: Args) => string,
): Promise<ReadonlyMap<string, readonly Row[]>> {
  const asked = new Map(args.map((one) => [name(one), one]));
  const found = await lists.find(query, [...asked.values()]);
  return new Map([...asked.keys()].map((key, at) => [key, found[at] ?? []]));
}

/** Updates a row for each item. Returns the items whose rows were found and written. */
export async function updateEach<Item>(
  lists: Pick<Lists, "update">,
  what: UpdateList,
  items: readonly Item[],
  row: (item: Item) => Values,
): Promise<readonly Item[]> {
  const isWritten = await lists.update(what, items.map(row));
  return items.filter((_, at) => isWritten[at] === true);
}

/** Arguments by name. */
export type Named = Readonly<Record<string, SqlValue>>;

/** Values as the database stores them: times in milliseconds, flags 0 and 1. */
export type Values = readonly SqlValue[];

type Member<Table extends SQLiteTable> = keyof Table["$inferInsert"] & string;

export interface InsertList {
  readonly table: SQLiteTable;
  readonly columns: readonly string[];
  /** What follows the values, such as `on conflict do nothing`. */
  readonly onConflict: string;
}

/** Describes an insert with all columns of a table, in their order, except these. */
export function insertList<Table extends SQLiteTable>(
  table: Table,
  but: readonly Member<Table>[] = [],
  onConflict = "",
): InsertList {
  const left: ReadonlySet<string> = new Set(but);
  const columns = Object.keys(getTableColumns<SQLiteTable>(table)).filter((name) => !left.has(name));
  return { table, columns, onConflict };
}

/** Describes an insert that, if a row has the same key, sets these columns of it (default: all). */
export function upsertList<Table extends SQLiteTable>(
  table: Table,
  key: readonly Member<Table>[],
  set?: readonly Member<Table>[],
): InsertList {
  const { columns } = insertList(table, key);
  const names = (of: readonly string[]) => columnsOf(table, of).map(({ name }) => `"${name}"`);
  const values = names(set ?? columns).map((name) => `${name} = excluded.${name}`);
  return insertList(table, [], `on conflict (${names(key).join(", ")}) do update set ${values.join(", ")}`);
}

export interface UpdateList {
  readonly table: SQLiteTable;
  readonly set: readonly string[];
  /** The columns that must have the values of a row. */
  readonly where: readonly string[];
  /** What SQLite does with a row that it refuses. By default, the command fails. */
  readonly onRefusal: "" | "or ignore";
}

export function updateList<Table extends SQLiteTable>(
  table: Table,
  set: readonly Member<Table>[],
  where: readonly Member<Table>[],
  onRefusal: UpdateList["onRefusal"] = "",
): UpdateList {
  return { table, set, where, onRefusal };
}

/** The columns of a table, by member names. */
export function columnsOf(table: SQLiteTable, names: readonly string[]): readonly Column[] {
  const columns = getTableColumns(table);
  return names.map((name) => {
    const column = columns[name];
    if (column === undefined) throw new Error(`The table ${getTableName(table)} has no column ${name}.`);
    return column;
  });
}

/** The values of columns as the database stores them, from `row` or, if it has none, from `others`. */
export function valuesOf(names: readonly string[], row: Readonly<Record<string, unknown>>, others?: object): Values {
  // Safe: it is only read. Merging both into a copy would cost as much as everything else here.
  const rest = others as Readonly<Record<string, unknown>> | undefined;
  return names.map((name) => valueOf(row[name] === undefined ? rest?.[name] : row[name]));
}

function valueOf(value: unknown): SqlValue {
  if (typeof value === "string" || typeof value === "number" || value === null || value === undefined)
    return value ?? null;
  return value instanceof Date ? value.getTime() : Number(value);
}
