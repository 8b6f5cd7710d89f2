import { Database } from "bun:sqlite";
import { type Row, type Sql, toStatement } from "../sql/sql.ts";

interface Column {
  readonly table: string;
  readonly name: string;
  /** As in a statement that adds it. */
  readonly definition: string;
}

/** The tables of a database, as far as they may be compared. */
interface Layout {
  /** The statements that make the tables and indexes, by name. */
  readonly tables: ReadonlyMap<string, string>;
  readonly indexes: ReadonlyMap<string, Index>;
  readonly columns: readonly Column[];
}

interface Index {
  readonly table: string;
  readonly sql: string;
}

/**
 * The statements that give a database what these migrations make today. Checkouts between two releases had earlier texts of
 * the newest migrations: a database of theirs says that a migration ran which has gained tables, columns and indexes since.
 */
export async function missingParts(sql: Pick<Sql, "read">, migrations: readonly string[]): Promise<readonly string[]> {
  const wanted = layoutMadeBy(migrations);
  const found = layoutOf(...(await Promise.all([sql.read(toStatement(OBJECTS)), sql.read(toStatement(COLUMNS))])));
  const tables = [...wanted.tables].flatMap(([name, text]) => (found.tables.has(name) ? [] : [text]));
  const has = new Set(found.columns.map(nameOf));
  const columns = wanted.columns
    .filter((column) => found.tables.has(column.table) && !has.has(nameOf(column)))
    .map(({ table, definition }) => `ALTER TABLE \`${table}\` ADD ${definition}`);
  const indexes = [...wanted.indexes].flatMap(([name, index]) => {
    const present = found.indexes.get(name);
    if (present === undefined) return [index.sql];
    return spellingOf(present) === spellingOf(index) ? [] : [`DROP INDEX \`${name}\``, index.sql];
  });
  return [...tables, ...columns, ...indexes];
}

const OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";

const COLUMNS = `SELECT m.name AS tbl, c.name, c.type, c."notnull" AS required, c.dflt_value AS standard
  FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`;

/** The newest answer of `layoutMadeBy`: tests open hundreds of databases in a process, and making it takes 6 ms of a core. */
let newest: { readonly text: string; readonly layout: Layout } | null = null;

/** What the migrations make in an empty database. */
function layoutMadeBy(migrations: readonly string[]): Layout {
  const text = migrations.join(";");
  if (newest?.text === text) return newest.layout;
  const database = new Database(":memory:");
  try {
    for (const statement of migrations) database.run(statement);
    const read = (query: string) => database.query<Row, []>(query).all();
    const layout = layoutOf(read(OBJECTS), read(COLUMNS));
    newest = { text, layout };
    return layout;
  } finally {
    database.close();
  }
}

function layoutOf(objects: readonly Row[], columns: readonly Row[]): Layout {
  const ofType = (wanted: string) => objects.filter(({ type }) => type === wanted);
  return {
    tables: new Map(ofType("table").map(({ name, sql }) => [String(name), String(sql)])),
    indexes: new Map(
      ofType("index").map(({ name, tbl_name: table, sql }) => [
        String(name),
        { table: String(table), sql: String(sql) },
      ]),
    ),
    columns: columns.map(({ tbl, name, type, required, standard }) => ({
      table: String(tbl),
      name: String(name),
      definition:
        `\`${String(name)}\` ${String(type)}` +
        (standard === null ? "" : ` DEFAULT ${String(standard)}`) +
        (required === 1 ? " NOT NULL" : ""),
    })),
  };
}

function nameOf({ table, name }: Column): string {
  return `${table}.${name}`;
}

/** Version 0.1 wrote the same indexes by hand. */
function spellingOf({ table, sql }: Index): string {
  return sql
    .replaceAll(/[`"\s]/g, "")
    .replaceAll(`${table}.`, "")
    .toLowerCase();
}
