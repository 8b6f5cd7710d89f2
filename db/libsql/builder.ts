import type { Query } from "drizzle-orm";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import type { Sql, SqlValue, Statement } from "./sql.ts";

/** Only reads are ever run by it: what it would write is handed to the writer as a statement. */
export function drizzleOver(sql: Sql) {
  return drizzle(async (text, params) => {
    // Safe: the columns of these tables bind to text, integers and null only.
    const rows = await sql.read({ sql: text, args: params as SqlValue[] });
    return { rows: rows.map((row) => Object.values(row)) };
  });
}

/** What a builder has built. */
export function statementOf(builder: { toSQL(): Query }): Statement {
  const { sql, params } = builder.toSQL();
  // Safe: as above.
  return { sql, args: params as SqlValue[] };
}
