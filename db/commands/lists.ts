import { Column, getTableColumns, getTableName, is, Param, Placeholder, SQL, sql, type SQLWrapper } from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SqlValue } from "../sql/sql.ts";
import type { Tables, Tx } from "./command.ts";

/**
 * Reads and writes for many rows at once. SQLite runs a prepared statement for each, PostgreSQL one statement for all of
 * them over `unnest`. Each is described once, as a constant, and compiled when it is first used.
 */
export interface Lists {
  /** The rows that the query finds for each of the arguments, in their order. */
  find<Arg, Row>(query: FindList<Arg, Row>, args: readonly Arg[]): Promise<readonly (readonly Row[])[]>;
  /** Where it is refused, the command fails with it; PostgreSQL may say so with a later statement. */
  insert(into: InsertList, rows: readonly Values[]): Promise<void>;
  /** Whether each row was found and written; `rows` have the values to set and then those to find it by. */
  update(what: UpdateList, rows: readonly Values[]): Promise<readonly boolean[]>;
}

/** Values of columns as the database has them: times in milliseconds, flags 0 and 1. */
export type Values = readonly SqlValue[];

type TableName = keyof Tables;

export interface InsertList {
  readonly table: TableName;
  readonly columns: readonly string[];
  /** What follows the values, such as `on conflict do nothing`. */
  readonly onConflict: string;
}

export function insertList<Name extends TableName>(
  table: Name,
  columns: readonly (keyof Tables[Name]["$inferInsert"] & string)[],
  onConflict = "",
): InsertList {
  return { table, columns, onConflict };
}

export interface UpdateList {
  readonly table: TableName;
  readonly set: readonly string[];
  /** The columns that must have the values of a row. */
  readonly where: readonly string[];
}

export function updateList<Name extends TableName>(
  table: Name,
  set: readonly (keyof Tables[Name]["$inferInsert"] & string)[],
  where: readonly (keyof Tables[Name]["$inferInsert"] & string)[],
): UpdateList {
  return { table, set, where };
}

/** The type of an argument in SQL. */
type ArgType = "text" | "number";

export interface FindList<Arg, Row> {
  readonly types: Readonly<Record<string, ArgType>>;
  readonly build: (tx: Pick<Tx, "db" | "tables">, arg: Readonly<Record<string, Placeholder>>) => SQLWrapper;
  /** Never set: the types of an argument and of a row. */
  readonly of?: ((arg: Arg) => Row) | undefined;
}

type ArgOf<Types extends Readonly<Record<string, ArgType>>> = {
  readonly [Name in keyof Types]: Types[Name] extends "text" ? string : number;
};

type RowOf<Built> = Built extends { readonly _: { readonly result: readonly (infer Row)[] } } ? Row : never;

/** `build` returns a query of Drizzle's builder, in which an argument stands as `arg.name`. */
export function findList<const Types extends Readonly<Record<string, ArgType>>, Built extends SQLWrapper>(
  types: Types,
  build: (tx: Pick<Tx, "db" | "tables">, arg: Readonly<Record<keyof Types, Placeholder>>) => Built,
): FindList<ArgOf<Types>, RowOf<Built>> {
  // Safe: `compileFind` gives an argument of every name.
  return { types, build: build as FindList<never, never>["build"] };
}

/** The text of a statement and how its rows become objects. */
interface CompiledFind {
  readonly text: string;
  /** The names of the arguments in the order of the text's places. */
  readonly names: readonly string[];
  readonly decode: (row: readonly unknown[]) => unknown;
}

/** Compiles a query; `place` is how an argument stands in the text, by its name and its number among all places. */
export function compileFind<Arg, Row>(
  query: FindList<Arg, Row>,
  tx: Pick<Tx, "db" | "tables">,
  place: (name: string, number: number) => string,
): CompiledFind {
  const arg = Object.fromEntries(Object.keys(query.types).map((name) => [name, sql.placeholder(name)]));
  const built = query.build(tx, arg);
  const names: string[] = [];
  const { sql: text } = built
    .getSQL()
    .inlineParams()
    .toQuery({
      casing: new CasingCache(),
      escapeName: (name) => `"${name}"`,
      escapeString: (value) => `'${value.replaceAll("'", "''")}'`,
      escapeParam(_, param) {
        const name = nameOf(param);
        names.push(name);
        return place(name, names.length);
      },
    });
  return { text, names, decode: decoderOf(built) };
}

function nameOf(param: unknown): string {
  const placeholder = is(param, Param) ? param.value : param;
  if (is(placeholder, Placeholder)) return placeholder.name;
  throw new Error("A query of a list has a value that is no argument.");
}

function decoderOf(built: SQLWrapper): (row: readonly unknown[]) => unknown {
  // Safe: builders of queries have it.
  const { selectedFields = {} } = (built as unknown as { readonly _: { readonly selectedFields?: object } })._;
  const fields = Object.entries(selectedFields).map(([name, field]: [string, unknown]) => {
    if (is(field, Column)) return { name, decode: (value: unknown) => field.mapFromDriverValue(value) };
    if (!is(field, SQL.Aliased)) throw new Error(`${name} of a query of a list has no name.`);
    const { decoder } = field.sql as { readonly decoder?: { mapFromDriverValue(value: unknown): unknown } };
    return { name, decode: (value: unknown) => decoder?.mapFromDriverValue(value) ?? value };
  });
  return (row) =>
    Object.fromEntries(
      fields.map(({ name, decode }, at) => {
        const value = row[at] ?? null;
        return [name, value === null ? null : decode(value)];
      }),
    );
}

/** The columns of a table by the names of its members. */
export function columnsOf(tables: Tables, table: TableName, names: readonly string[]): readonly Column[] {
  const columns: Readonly<Record<string, unknown>> = getTableColumns<SQLiteTable>(tables[table]);
  return names.map((name) => {
    const column = columns[name];
    if (!is(column, Column)) throw new Error(`The table ${table} has no column ${name}.`);
    return column;
  });
}

/** The name of a table as SQL. */
export function tableName(tables: Tables, table: TableName): string {
  return `"${getTableName(tables[table])}"`;
}

/** Keeps what a definition was compiled to: there are as many as constants. */
export function compiledOnce<Definition extends object, Compiled>(
  compile: (definition: Definition) => Compiled,
): (definition: Definition) => Compiled {
  const known = new WeakMap<Definition, Compiled>();
  return (definition) => {
    const found = known.get(definition);
    if (found !== undefined) return found;
    const compiled = compile(definition);
    known.set(definition, compiled);
    return compiled;
  };
}
