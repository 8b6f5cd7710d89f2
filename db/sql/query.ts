import { type Column, is, Param, Placeholder, type SQL, sql, type SQLWrapper } from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import { decoderOf } from "./decode.ts";
import type { PostgresText, Row, Sql, SqlValue, Statement } from "./sql.ts";

/**
 * Drizzle's builder. It only builds: `prepare` compiles a statement once, and reader and writer run it. For what the
 * builder can't express there is drizzle's `sql` over the tables' columns.
 */
export const query = drizzle(() => Promise.reject(new Error("Run statements by `prepare`.")));

/** The databases that a statement is compiled for, from one builder: SQLite when it is prepared, PostgreSQL when it first runs there. */
type Dialect = "sqlite" | "postgres";

/** For which one `compile` builds now: it runs to its end without a pause. */
let compiling: Dialect = "sqlite";

/** A part of a statement that differs between the databases. Each difference is a function or constant of this file. */
class ByDialect implements SQLWrapper {
  readonly #variants: Readonly<Record<Dialect, SQL>>;

  constructor(variants: Readonly<Record<Dialect, SQL>>) {
    this.#variants = variants;
  }

  getSQL(): SQL {
    return this.#variants[compiling];
  }

  /** Drizzle asks: without it, parentheses are added. */
  shouldOmitSQLParens(): true {
    return true;
  }
}

export function byDialect<Type = unknown>(variants: Readonly<Record<Dialect, SQL>>): SQL<Type> {
  return sql<Type>`${new ByDialect(variants)}`;
}

/** The same for what PostgreSQL's types hold by themselves. */
export function onlySqlite(condition: SQL): SQL | undefined {
  return compiling === "sqlite" ? condition : undefined;
}

/** Marks an argument that is bound as a JSON list and becomes an array in PostgreSQL. */
export const LIST = { mapToDriverValue: (value: unknown) => value };

/** A condition that SQLite needs no words for. Call it in the builder of a statement. */
export function onlyPostgres(condition: SQL): SQL | undefined {
  return compiling === "postgres" ? condition : undefined;
}

/** The arguments of a statement, by name. */
export type Args<Name extends string> = { readonly [Each in Name]: Placeholder<Each> };

/** Times are bound in milliseconds, booleans as 0 and 1. */
export type Argument = SqlValue | Date | boolean;

/** A statement that is compiled once: building one costs 40 us, filling in its arguments 0.35. */
interface Prepared<Name extends string, Result> {
  /** Values of other names are ignored. */
  bind(values: Readonly<Record<Name, Argument>>): Statement;
  /** Runs a SELECT; rows are as the builder's types say. */
  read(connection: Pick<Sql, "read">, values: Readonly<Record<Name, Argument>>): Promise<readonly Result[]>;
  /** Rows as the database has them, for `Columns`: they may have been altered there. */
  readRaw(connection: Pick<Sql, "read">, values: Readonly<Record<Name, Argument>>): Promise<readonly Row[]>;
}

/** The rows that a builder selects, or the type of a row of `sql<Type>`. */
type RowOf<Built> = Built extends { readonly _: { readonly result: readonly (infer Selected)[] } }
  ? Selected
  : Built extends SQL<infer Typed>
    ? Typed
    : never;

/**
 * A statement, compiled when it first runs: all of them together take a tenth of a second, which each start and each file of
 * tests would wait for. Values in it that are no arguments become literals, as SQLite uses a partial index only where
 * it sees the value of its condition. `shape` is a builder that selects the same rows as a `sql`, for their types.
 */
export function prepare<
  Name extends string = never,
  Built extends SQLWrapper = SQLWrapper,
  Shape extends SQLWrapper = Built,
>(build: (arg: Args<Name>) => Built, shape?: Shape): Prepared<Name, RowOf<Shape>> {
  // Safe: it has a placeholder for every name.
  const arg = new Proxy({} as Args<Name>, { get: (_, name) => sql.placeholder(String(name)) });
  const compiledOf = once(() => {
    const built = build(arg);
    const { text, names } = compile(built.getSQL());
    const source = new PostgresSource(() => build(arg).getSQL(), names);
    return { text, names, source, decode: decoderOf(shape ?? built) };
  });
  const bind = (values: Readonly<Record<string, Argument>>): Statement => {
    const { text, names, source } = compiledOf();
    return { sql: text, args: names.map((name) => valueOf(values[name])), source };
  };
  return {
    bind,
    // Safe: as the types of drizzle say.
    read: async (connection, values) =>
      (await connection.read(bind(values))).map((row) => compiledOf().decode(row) as RowOf<Shape>),
    readRaw: (connection, values) => connection.read(bind(values)),
  };
}

/** What a function returns when it is first called. */
function once<Value extends object>(make: () => Value): () => Value {
  let made: Value | null = null;
  return () => (made ??= make());
}

/** Prepares statements once for each variant. */
export function prepareEach<Variant extends string, Statements>(
  build: (variant: Variant) => Statements,
): (variant: Variant) => Statements {
  const built = new Map<Variant, Statements>();
  return (variant) => {
    const statements = built.get(variant) ?? build(variant);
    built.set(variant, statements);
    return statements;
  };
}

/** PostgreSQL takes an argument for text where it can't see the column that it is for. */
export function typed(value: unknown, column: Column): SQL {
  const type = column.getSQLType() === "integer" ? sql`bigint` : sql`text`;
  return byDialect({ sqlite: sql`${value}`, postgres: sql`cast(${value} as ${type})` });
}

/** Columns without their table, as the grammar wants them in INSERT and ON CONFLICT. */
export function bareNames(...columns: readonly Column[]): SQL {
  return list(columns.map(({ name }) => sql.identifier(name)));
}

/** All of several conditions; a condition with OR brings its own parentheses. */
export function allOf(...conditions: readonly SQL[]): SQL {
  return sql.join([...conditions], sql` and `);
}

/** Separated by commas. */
export function list(parts: readonly SQLWrapper[]): SQL {
  return sql.join(
    parts.map((part) => sql`${part}`),
    sql`, `,
  );
}

/** The text, with arguments as `?1`, `?2` in the order of their names, so that each is sent once. */
function compile(built: SQL): { readonly text: string; readonly names: readonly string[] } {
  const names: string[] = [];
  const text = render(built, (param) => {
    const name = nameOf(param);
    if (!names.includes(name)) names.push(name);
    return `?${names.indexOf(name) + 1}`;
  });
  return { text, names };
}

function render(built: SQL, escapeParam: (param: unknown) => string): string {
  const { sql: text } = built.inlineParams().toQuery({
    casing: new CasingCache(),
    escapeName: (name) => `"${name}"`,
    escapeString: (value) => `'${value.replaceAll("'", "''")}'`,
    escapeParam: (_, param) => escapeParam(param),
  });
  return text;
}

/** Compiles a statement for PostgreSQL when it first runs there. */
class PostgresSource {
  readonly #build: () => SQL;
  readonly #names: readonly string[];
  #text: PostgresText | null = null;

  constructor(build: () => SQL, names: readonly string[]) {
    this.#build = build;
    this.#names = names;
  }

  get text(): PostgresText {
    return (this.#text ??= this.#compile());
  }

  #compile(): PostgresText {
    const args: { at: number; isList: boolean }[] = [];
    const place = (param: unknown) => {
      const [at, isList] = [this.#names.indexOf(nameOf(param)), is(param, Param) && param.encoder === LIST];
      if (at === -1) throw new Error(`PostgreSQL's statement has an argument of its own: ${nameOf(param)}.`);
      const known = args.findIndex((arg) => arg.at === at && arg.isList === isList);
      return `$${known === -1 ? args.push({ at, isList }) : known + 1}`;
    };
    compiling = "postgres";
    try {
      return { text: render(this.#build(), place), args };
    } finally {
      compiling = "sqlite";
    }
  }
}

function nameOf(param: unknown): string {
  const placeholder = is(param, Param) ? param.value : param;
  if (is(placeholder, Placeholder)) return placeholder.name;
  throw new Error("A prepared statement has a value that is no argument.");
}

function valueOf(value: Argument | undefined): SqlValue {
  if (typeof value === "string" || typeof value === "number" || value === null) return value;
  if (value === undefined) throw new Error("An argument of a statement is missing.");
  return Number(value);
}
