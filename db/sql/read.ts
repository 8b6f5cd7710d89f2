/**
 * Reads: SELECTs for both databases, built with Drizzle, compiled each time (`all`, `get`) or once (`prepare`), and the conditions that
 * most of them need.
 */
import {
  and,
  Column,
  count,
  eq,
  getTableColumns,
  is,
  Param,
  Placeholder,
  SQL,
  sql,
  type SQLWrapper,
} from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { drizzle, type SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import { jsonIn } from "../../src/core/json.ts";
import { actions } from "../tables.ts";
import type { ArgType, ArgValues, Dialect, Reader, Row, SqlValue } from "./dialect.ts";

type ArgTypes = Readonly<Record<string, ArgType>>;

/** The values of arguments, by name. */
type ArgsOf<Types extends ArgTypes> = { readonly [Name in keyof Types]: ArgValues[Types[Name]] };

/** The placeholders of arguments, by name. */
export type Args<Name extends string> = { readonly [Each in Name]: Placeholder<Each> };

/** The type of a row that a builder or `sql<Type>` selects. */
type RowOf<Built> = Built extends { readonly _: { readonly result: readonly (infer Selected)[] } }
  ? Selected
  : Built extends SQL<infer Typed>
    ? Typed
    : never;

/** Builds a SELECT for both databases. `all` and `get` run it. If it runs often, `prepare` it. */
export const qb: Pick<SqliteRemoteDatabase, "select" | "with" | "$with" | "$count"> = drizzle(() =>
  Promise.reject(new Error("Run statements over a connection.")),
);

/** Runs a SELECT. Building one costs 40 us, so prepare one that runs often. */
export async function all<Built extends SQLWrapper>(reader: Reader, built: Built): Promise<readonly RowOf<Built>[]> {
  // Safe: these are the types of the builder.
  return (await raw(reader, built)).map(rowDecoder(built)) as RowOf<Built>[];
}

/** Runs a SELECT and returns its first row. */
export async function get<Built extends SQLWrapper>(reader: Reader, built: Built): Promise<RowOf<Built> | null> {
  return (await all(reader, built))[0] ?? null;
}

/** The row of a table with these values. */
export function findRow<Table extends SQLiteTable>(
  reader: Reader,
  table: Table,
  values: ValuesOf<Table>,
): Promise<Table["$inferSelect"] | null> {
  return get(reader, qb.select().from<SQLiteTable>(table).where(hasValues(table, values)));
}

/** Whether any row of a table meets a condition. */
export async function hasRow(reader: Reader, table: SQLiteTable, condition?: SQL): Promise<boolean> {
  const found = qb.select({ one: sql`1`.as("one") }).from(table);
  return (await get(reader, found.where(condition).limit(1))) !== null;
}

/** How many rows of a table meet a condition, up to a limit if one is given. */
export async function countRows(
  reader: Reader,
  table: SQLiteTable,
  condition: SQL | undefined,
  limit?: number,
): Promise<number> {
  const found = qb
    .select({ one: sql`1`.as("one") })
    .from(table)
    .where(condition);
  const counted = limit === undefined ? found.as("counted") : found.limit(limit).as("counted");
  return (await get(reader, qb.select({ count: count().as("count") }).from(counted)))?.count ?? 0;
}

/** Runs a SELECT and returns the rows undecoded, for `rows.ts`. */
export function raw(reader: Reader, built: SQLWrapper): Promise<readonly Row[]> {
  return repeatable(reader, built)({});
}

/**
 * Builds once a SELECT that runs several times, each with other values for its placeholders. `isVaried`: what is selected depends on
 * the filters of a caller.
 */
export function repeatable(reader: Reader, built: SQLWrapper, isVaried = false) {
  const { sql: text, params } = toQuery(built.getSQL(), (at) => reader.dialect.place(at + 1));
  return (values: Readonly<Record<string, SqlValue>>): Promise<readonly Row[]> => {
    // Safe: columns encode their values, and other values are of these types.
    const args = (params as (SqlValue | Date | Placeholder)[]).map((one) =>
      one instanceof Placeholder ? (values[one.name] ?? null) : encoded(one),
    );
    return reader.read({ sql: text, args, isVaried });
  };
}

/** A SELECT that is compiled once per database. Filling in its arguments costs 0.35 us. */
export interface Prepared<Values, Selected> {
  readonly types: ArgTypes;
  readonly build: (dialect: Dialect) => SQLWrapper;
  all(reader: Reader, values: Values): Promise<readonly Selected[]>;
  /** The first row. */
  get(reader: Reader, values: Values): Promise<Selected | null>;
  /** Rows undecoded, for `rows.ts`. */
  raw(reader: Reader, values: Values): Promise<readonly Row[]>;
}

/**
 * Prepares a SELECT that runs often; it is compiled when it first runs. `build` returns a query of Drizzle's builder, or `sql`
 * if the builder can't express it, with `arg.name` for each argument. All other values become literals, since SQLite uses a
 * partial index only if it sees the value of the index's condition.
 */
export function prepare<const Types extends ArgTypes, Built extends SQLWrapper>(
  types: Types,
  build: (arg: Args<keyof Types & string>, dialect: Dialect) => Built,
): Prepared<ArgsOf<Types>, RowOf<Built>> {
  // Safe: it has a member for every name.
  const arg = Object.fromEntries(Object.keys(types).map((name) => [name, sql.placeholder(name)])) as Args<
    keyof Types & string
  >;
  const compiledFor = once((dialect: Dialect) =>
    compileSelect(build(arg, dialect), (name, number) => dialect.place(number, types[name] ?? "text")),
  );
  const read = (reader: Reader, values: ArgsOf<ArgTypes>) => {
    const { text, names } = compiledFor(reader.dialect);
    return reader.read({ sql: text, args: names.map((name) => argValue(values[name], reader.dialect)) });
  };
  return {
    types,
    build: (dialect) => build(arg, dialect),
    raw: read,
    // Safe: as the types of the builder say.
    all: async (reader, values) =>
      (await read(reader, values)).map(compiledFor(reader.dialect).decode) as RowOf<Built>[],
    async get(reader, values) {
      const [row] = await read(reader, values);
      return row === undefined ? null : (compiledFor(reader.dialect).decode(row) as RowOf<Built>);
    },
  };
}

function argValue(value: ArgValues[ArgType] | undefined, { list }: Dialect): SqlValue {
  if (value === undefined) throw new Error("An argument of a query is missing.");
  return typeof value === "object" && !(value instanceof Date) ? list(value) : encoded(value);
}

function encoded(value: SqlValue | Date): SqlValue {
  return value instanceof Date ? value.getTime() : value;
}

interface Compiled {
  readonly text: string;
  /** The names of the arguments, in the order of their numbers. */
  readonly names: readonly string[];
  readonly decode: (row: Row | readonly unknown[]) => unknown;
}

/** Compiles what `Prepared.build` returns. `place` returns the placeholder of an argument. */
export function compileSelect(built: SQLWrapper, place: (name: string, number: number) => string): Compiled {
  const names: string[] = [];
  const { sql: text } = toQuery(built.getSQL().inlineParams(), (_, param) => {
    const name = argumentName(param);
    if (!names.includes(name)) names.push(name);
    return place(name, names.indexOf(name) + 1);
  });
  return { text, names, decode: rowDecoder(built) };
}

function toQuery(built: SQL, escapeParam: (at: number, param: unknown) => string) {
  return built.toQuery({
    casing: new CasingCache(),
    escapeName: (name) => `"${name}"`,
    escapeString: (value) => `'${value.replaceAll("'", "''")}'`,
    escapeParam,
  });
}

function argumentName(param: unknown): string {
  const placeholder = is(param, Param) ? param.value : param;
  if (is(placeholder, Placeholder)) return placeholder.name;
  throw new Error("A query has a value that is no argument.");
}

/**
 * Decodes a row, which is an object or a list of values, to the builder's types. Rows of `sql` stay as they are, since it
 * doesn't say what its columns are.
 */
function rowDecoder(built: SQLWrapper): (row: Row | readonly unknown[]) => unknown {
  if (!("_" in built) || is(built, SQL)) return (row) => row;
  const { selectedFields = {} } = built._ as { readonly selectedFields?: Readonly<Record<string, unknown>> };
  const fields = Object.entries(selectedFields).map(([key, field], at) => {
    if (is(field, Column))
      return { key, at, name: field.name, decode: (value: unknown) => field.mapFromDriverValue(value) };
    if (!is(field, SQL.Aliased)) throw new Error(`The column ${key} of a query has no name.`);
    const { decoder } = field.sql as { readonly decoder?: { mapFromDriverValue(value: unknown): unknown } };
    return { key, at, name: field.fieldAlias, decode: (value: unknown) => decoder?.mapFromDriverValue(value) ?? value };
  });
  if (new Set(fields.map(({ name }) => name)).size < fields.length) throw new Error("Two columns have one name.");
  return (row) => {
    const selected: Record<string, unknown> = {};
    for (const { key, at, name, decode } of fields) {
      const value = (isList(row) ? row[at] : row[name]) ?? null;
      selected[key] = value === null ? null : decode(value);
    }
    return selected;
  };
}

function isList(row: Row | readonly unknown[]): row is readonly unknown[] {
  return Array.isArray(row);
}

/** Calls `make` once for each key and keeps the result as long as the key lives. */
export function once<Key extends object, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const known = new WeakMap<Key, Made>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(key);
    known.set(key, made);
    return made;
  };
}

/** Sorts after every id. */
export const AFTER_ALL_IDS = "\u{10ffff}";

/** The bytes of a column that may be long. Both databases store the length before the value, and read only the length. */
export function columnBytes(column: SQLWrapper): SQL {
  return sql`coalesce(cast(octet_length(${column}) as bigint), 0)`;
}

/** The bytes of an action's long columns together. */
export function bytesOfAction(): SQL<number> {
  const { body, sealedHeaders, extras, responseBody, lateResult } = actions;
  return sql<number>`${sql.join([body, sealedHeaders, extras, responseBody, lateResult].map(columnBytes), sql` + `)}`;
}

/**
 * Selects something for each distinct value (`found.value`) of a column, with one index look-up per value, however many rows
 * have it. The index must have the condition's columns first and then this one; if it is partial, `condition` must repeat its
 * condition. Drizzle's builder can't express the recursion.
 */
export function eachValue<Value>(column: Column, condition: SQL | undefined, selected: SQL, limit: number): SQL<Value> {
  const first = (after?: SQL) =>
    sql`(select ${column} from ${column.table} where ${and(condition, after)} order by ${column} limit 1)`;
  return sql<Value>`with recursive found (value) as (
      select ${first()}
      union all
      select ${first(sql`${column} > found.value`)} from found where found.value is not null)
    select ${selected} from found where found.value is not null limit ${limit}`;
}

/** The members of the JSON object in a text, or none if the text was altered to something else. */
export function membersIn(text: string | null | undefined): Readonly<Record<string, unknown>> {
  const value = jsonIn(text ?? "");
  // Safe: its members are of any type.
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** The condition that a row has these values. */
export function hasValues<Table extends SQLiteTable>(table: Table, values: ValuesOf<Table>): SQL | undefined {
  const columns = getTableColumns(table);
  const equal = Object.entries(values).map(([name, value]) => {
    const column = columns[name];
    if (column === undefined) throw new Error(`A table has no column ${name}.`);
    return eq(column, value);
  });
  // An empty condition would be true for all rows, even in a DELETE.
  if (equal.length === 0) throw new Error("A condition has no values.");
  return and(...equal);
}

type ValuesOf<Table extends SQLiteTable> = {
  readonly [Name in keyof Table["$inferSelect"]]?: NonNullable<Table["$inferSelect"][Name]> | Placeholder;
};
