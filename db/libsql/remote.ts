import { type Client, createClient, type InStatement, type ResultSet } from "@libsql/client";
import { STORE_CALL_MS_MAX } from "../../src/domain/limits.ts";
import { faultOf, NoAnswer, unavailable } from "./fault.ts";
import type { Done, Row, Sql, Statement } from "./sql.ts";

/** Reads that are under way at a time; a batch comes alone, since the writer sends one after the other. */
const CALLS_AT_ONCE_MAX = 20;

/**
 * A database behind a URL (`libsql://`, `http://`); `file:` works too, and is how its tests reach it. Each call has a
 * deadline. A batch that was not answered may be committed all the same, also later: see `FencedSql`.
 */
export function openRemote(url: string, authToken: string | null, callMsMax: number = STORE_CALL_MS_MAX): Sql {
  const client: Client = createClient({
    url,
    // On a file a second call would stop the event loop until the first has ended.
    concurrency: url.startsWith("file:") ? 1 : CALLS_AT_ONCE_MAX,
    timeout: 20,
    fetch: (request: Request) => answerWithin(callMsMax, request),
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

/** The whole answer: a server may also stop in the middle of one. */
async function answerWithin(ms: number, request: Request): Promise<Response> {
  try {
    const { status, headers, body } = await fetch(request, { signal: AbortSignal.timeout(ms) });
    return new Response(await new Response(body).arrayBuffer(), { status, headers });
  } catch (cause) {
    throw new NoAnswer(cause);
  }
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
