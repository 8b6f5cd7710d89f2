import { type Client, createClient, type InStatement, type ResultSet } from "@libsql/client";
import { REMOTE_CALL_MS_MAX } from "../../src/core/limits.ts";
import { type CommandCall, runCalls, runGroup, type Sql } from "../commands/command.ts";
import { NoAnswer, orUnavailable } from "../sql/errors.ts";
import type { Done, Row, Statement } from "../sql/sql.ts";
import { sqliteDialect } from "./dialect.ts";
import type { Values } from "../commands/lists.ts";
import { type Answers, openTx, type Executed } from "./tx.ts";

/** A database behind a URL. */
export interface RemoteSql extends Sql {
  /** Runs commands and then these statements in one transaction. */
  transactThen(
    calls: readonly CommandCall[],
    last: readonly Statement[],
  ): Promise<{ readonly results: readonly unknown[]; readonly done: readonly Done[] }>;
}

/** Concurrent reads, besides one write. */
const CALLS_AT_ONCE_MAX = 20;

/**
 * A database behind a URL (`libsql://`, `http://`; tests use `file:`). Each call has a deadline. A batch without an
 * answer may be committed all the same, even later: see `FencedSql`.
 */
export function openRemote(url: string, authToken: string | null, callMsMax: number = REMOTE_CALL_MS_MAX): RemoteSql {
  const client: Client = createClient({
    url,
    // Calls to a file block the event loop: one to write and one to read.
    concurrency: url.startsWith("file:") ? 2 : CALLS_AT_ONCE_MAX,
    timeout: 20,
    fetch: (request: Request) => answerWithin(callMsMax, request),
    ...(authToken === null ? {} : { authToken }),
  });
  const transact = async (calls: readonly CommandCall[], last: readonly Statement[] = []) => {
    const transaction = await client.transaction("write");
    const sending = new RoundTrips((statements) => transaction.batch(statements));
    try {
      const results = await runCalls(calls, (group) => {
        const tx = openTx((sql, all, answers) => sending.add(sql, all, answers));
        return runGroup(tx, group).finally(() => tx.end());
      });
      const done = (await sending.send(last.map(inStatement))).map(doneOf);
      await transaction.commit();
      return { done, results };
    } finally {
      transaction.close();
    }
  };
  const batch = async (statements: readonly Statement[]) =>
    (await client.batch(statements.map(inStatement), "write")).map(doneOf);
  return {
    dialect: sqliteDialect,
    transact: async (calls) => (await transact(calls)).results,
    transactThen: transact,
    batch,
    read: (statement) => orUnavailable(async () => rowsOf(await client.execute(inStatement(statement)))),
    async close() {
      client.close();
    },
  };
}

/**
 * Sends the statements of a transaction in order with few round trips: those of one turn together, those that nobody waits for with the
 * next. The transaction fails with a statement that is refused.
 */
class RoundTrips {
  readonly #batch: (statements: InStatement[]) => Promise<ResultSet[]>;
  #waiting: InStatement[] = [];
  /** The next round trip; null: none is planned. */
  #next: Promise<readonly ResultSet[]> | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(batch: (statements: InStatement[]) => Promise<ResultSet[]>) {
    this.#batch = batch;
  }

  /** Runs a statement for each of the arguments. If nobody needs the answers, it is sent with the next that waits. */
  async add(sql: string, all: readonly Values[], answers: Answers): Promise<readonly Executed[]> {
    const from = this.#waiting.length;
    this.#waiting.push(...all.map((args) => inStatement({ sql, args })));
    if (answers === "nothing") return [];
    this.#next ??= Promise.resolve().then(() => this.#send());
    return (await this.#next).slice(from, from + all.length).map(({ columns, rows, rowsAffected }) => {
      return { rows: rows.map((row) => columns.map((_, at) => row[at])), changes: rowsAffected };
    });
  }

  /** Sends what waits and then these; returns the results of these. */
  async send(last: readonly InStatement[]): Promise<readonly ResultSet[]> {
    const from = this.#waiting.length;
    this.#waiting.push(...last);
    return (await this.#send()).slice(from);
  }

  #send(): Promise<readonly ResultSet[]> {
    const statements = this.#waiting;
    [this.#waiting, this.#next] = [[], null];
    const sent = this.#last.then(() => this.#batch(statements));
    this.#last = sent;
    return sent;
  }
}

/** Reads the whole response within the deadline, since a server may stop in the middle of one. */
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

/** As plain objects: rows of the client also have their columns by number. */
function rowsOf({ columns, rows }: ResultSet): readonly Row[] {
  // Safe: the schema has no blobs and no integers past 2^53, so that values are text, number or null.
  return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])) as Row);
}
