/**
 * Many rows at once, for commands that run for many calls: descriptions of inserts and updates, which `libsql/tx.ts` and `postgres/tx.ts`
 * compile and run.
 */
import { type Column, getTableColumns, getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SqlValue } from "../sql/dialect.ts";
import type { Prepared } from "../sql/read.ts";

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
