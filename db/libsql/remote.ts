import { type Client, createClient, type InStatement, type ResultSet } from "@libsql/client";
import { REMOTE_CALL_MS_MAX } from "../../src/core/limits.ts";
import { type CommandCall, runCalls, runGroup, type DbConnection, execute } from "../commands/command.ts";
import { codeOf, NoAnswer, orUnavailable } from "../sql/errors.ts";
import { type StatementResult, rowsOf, type Statement, sqliteDialect } from "../sql/dialect.ts";
import type { Values } from "../commands/lists.ts";
import { openTx, type Executed } from "./tx.ts";

/** How many reads may run at a time, besides one write. */
const CALLS_AT_ONCE_MAX = 20;

/**
 * Opens a database behind a URL (`libsql://`, `http://`; tests use `file:`). Each call has a deadline. A transaction without an
 * answer may have been committed, or may still be: see `FencedConnection`.
 */
export function openRemote(
  url: string,
  authToken: string | null,
  callMsMax: number = REMOTE_CALL_MS_MAX,
): DbConnection {
  const client: Client = createClient({
    url,
    // Calls to a file block the event loop, so allow one to write and one to read.
    concurrency: url.startsWith("file:") ? 2 : CALLS_AT_ONCE_MAX,
    timeout: 20,
    fetch: (request: Request) => answerWithin(callMsMax, request),
    ...(authToken === null ? {} : { authToken }),
  });
  const transact = async (calls: readonly CommandCall[]) => {
    const transaction = await client.transaction("write");
    const sending = new RoundTrips((statements) => ofDatabase(transaction.batch(statements)));
    try {
      const results = await runCalls(calls, (group) => {
        const tx = openTx((sql, all, isAwaited) => sending.add(sql, all, isAwaited));
        return runGroup(tx, group).finally(() => tx.end());
      });
      await sending.send();
      await ofDatabase(transaction.commit());
      return results;
    } finally {
      transaction.close();
    }
  };
  const runAtOnce = async (calls: readonly CommandCall[]) => {
    // Safe: these are the arguments of `run`.
    const lists = calls.map(({ args: [statements] }) => (statements as readonly Statement[]).map(inStatement));
    const results = (await ofDatabase(client.batch(lists.flat(), "write"))).map(doneOf);
    return lists.map(({ length }) => results.splice(0, length));
  };
  return {
    dialect: sqliteDialect,
    // A transaction left open locks out others until the server ends it, so statements alone are sent without one.
    transact: (calls) => (calls.every(({ command }) => command === execute) ? runAtOnce(calls) : transact(calls)),
    read: (statement) =>
      orUnavailable(async () => doneOf(await ofDatabase(client.execute(inStatement(statement)))).rows),
    async close() {
      client.close();
    },
  };
}

/**
 * Sends the statements of a transaction in order and with few round trips: those of one turn together, and those that nobody
 * waits for with the next. If a statement is refused, the transaction fails.
 */
class RoundTrips {
  readonly #batch: (statements: InStatement[]) => Promise<ResultSet[]>;
  #waiting: InStatement[] = [];
  /** The next round trip; null: none is scheduled. */
  #next: Promise<readonly ResultSet[]> | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(batch: (statements: InStatement[]) => Promise<ResultSet[]>) {
    this.#batch = batch;
  }

  /** Runs a statement for each of the arguments. If nobody waits for the answers, it is sent with the next awaited one. */
  async add(sql: string, all: readonly Values[], isAwaited: boolean): Promise<readonly Executed[]> {
    const from = this.#waiting.length;
    this.#waiting.push(...all.map((args) => inStatement({ sql, args })));
    if (!isAwaited) return [];
    this.#next ??= Promise.resolve().then(() => this.send());
    return (await this.#next).slice(from, from + all.length).map(executedOf);
  }

  /** Sends the waiting statements. */
  send(): Promise<readonly ResultSet[]> {
    const statements = this.#waiting;
    [this.#waiting, this.#next] = [[], null];
    const sent = this.#last.then(() => (statements.length === 0 ? [] : this.#batch(statements)));
    this.#last = sent;
    return sent;
  }
}

/** An answer that is not the database's own, such as a page of a proxy or half an answer, does not say what has been done. */
async function ofDatabase<Result>(asked: Promise<Result>): Promise<Result> {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof NoAnswer || codeOf(error).startsWith("SQL") ? error : new NoAnswer(error);
  }
}

/** Reads the whole response within the deadline, since a server may stop in the middle of it. */
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

function executedOf({ columns, rows, rowsAffected }: ResultSet): Executed {
  const changes = columns.length > 0 ? rows.length : rowsAffected;
  return { columns, rows: rows.map((row) => columns.map((_, at) => row[at])), changes };
}

function doneOf(result: ResultSet): StatementResult {
  const { columns, rows, changes } = executedOf(result);
  return { rows: rowsOf(columns, rows), changes };
}
