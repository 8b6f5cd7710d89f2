import { type Client, createClient, type InStatement, type ResultSet } from "@libsql/client";
import { faultOf, unavailable } from "./fault.ts";
import type { Done, Row, Sql, Statement } from "./sql.ts";

/** A database behind a URL (`libsql://`, `http://`); `file:` works too, and is how its tests reach it. */
export function openRemote(url: string, authToken: string | null): Sql {
  const client: Client = createClient({
    url,
    concurrency: 1,
    timeout: 20,
    ...(authToken === null ? {} : { authToken }),
  });
  return {
    async read(statement) {
      try {
        return rowsOf(await client.execute(inStatement(statement)));
      } catch (error) {
        throw faultOf(error) === "rejected" ? error : unavailable(error);
      }
    },
    async batch(statements) {
      return (await client.batch(statements.map(inStatement), "write")).map(doneOf);
    },
    async close() {
      client.close();
    },
  };
}

function inStatement({ sql, args }: Statement): InStatement {
  return { sql, args: [...args] };
}

function doneOf(result: ResultSet): Done {
  const rows = rowsOf(result);
  return { changes: result.columns.length > 0 ? rows.length : result.rowsAffected, rows };
}

/** Plain objects: the client's rows have the columns as numbers as well. */
function rowsOf({ columns, rows }: ResultSet): readonly Row[] {
  // Safe: the schema has no blobs and no integers past 2^53, so that values are text, number or null.
  return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])) as Row);
}
