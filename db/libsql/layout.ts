import { Database } from "bun:sqlite";
import { type Row, toStatement } from "../sql/sql.ts";
import type { Sql } from "../commands/command.ts";

/** What a database has, by name: of a table or index the statement that makes it, of a column (`table.name`) the one that adds it. */
type Layout = Readonly<Record<"tables" | "columns" | "indexes", ReadonlyMap<string, string>>>;

/**
 * The statements that give a database what these migrations make today. Checkouts between two releases had earlier texts of
 * the newest migrations: a database of theirs says that a migration ran which has gained tables, columns and indexes since.
 */
export async function missingParts(sql: Pick<Sql, "read">, migrations: readonly string[]): Promise<readonly string[]> {
  const wanted = layoutMadeBy(migrations);
  const found = layoutOf(...(await Promise.all([sql.read(toStatement(OBJECTS)), sql.read(toStatement(COLUMNS))])));
  const lacking = (kind: keyof Layout) => [...wanted[kind]].filter(([name]) => !found[kind].has(name));
  const indexes = [...wanted.indexes].flatMap(([name, text]) => {
    const present = found.indexes.get(name);
    if (present === undefined) return [text];
    return spellingOf(present) === spellingOf(text) ? [] : [`DROP INDEX \`${name}\``, text];
  });
  // Those of a table that is missing come with it.
  const columns = lacking("columns").filter(([name]) => found.tables.has(name.slice(0, name.indexOf("."))));
  return [...lacking("tables"), ...columns].map(([, text]) => text).concat(indexes);
}

const OBJECTS = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";

const COLUMNS = `SELECT m.name || '.' || c.name AS name, 'ALTER TABLE \`' || m.name || '\` ADD \`' || c.name || '\` ' || c.type ||
    coalesce(' DEFAULT ' || c.dflt_value, '') || CASE c."notnull" WHEN 1 THEN ' NOT NULL' ELSE '' END AS sql
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
  const byName = (rows: readonly Row[]) => new Map(rows.map(({ name, sql }) => [String(name), String(sql)]));
  return {
    tables: byName(objects.filter(({ type }) => type === "table")),
    columns: byName(columns),
    indexes: byName(objects.filter(({ type }) => type === "index")),
  };
}

/** Version 0.1 wrote the same indexes by hand. */
function spellingOf(index: string): string {
  const [, table = ""] = / ON `?(\w+)/i.exec(index) ?? [];
  return index
    .replaceAll(/[`"\s]/g, "")
    .replaceAll(`${table}.`, "")
    .toLowerCase();
}
