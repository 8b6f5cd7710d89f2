/** A libSQL database behind a URL: its connection, and the lock by which one service at a time writes to it. */
import { type Client, createClient, type InStatement, type ResultSet } from "@libsql/client";
import { setTimeout as pause } from "node:timers/promises";
import { REMOTE_CALL_MS_MAX, SERVICE_LOCK_BEAT_MS, SERVICE_LOCK_MS } from "../../src/core/limits.ts";
import { StoreLost, StoreUnavailable } from "../../src/core/store.ts";
import {
  type CommandCall,
  type DbConnection,
  execute,
  runCalls,
  runGroup,
  runStatements,
  type Values,
} from "../commands/command.ts";
import { type Row, rowsOf, sqliteDialect, type Statement, type StatementResult, toStatement } from "../sql/dialect.ts";
import { errorCode, faultKind, isAnswered, NoAnswer, orUnavailable, unavailable } from "../sql/errors.ts";
import { DatabaseInUse } from "./inspect.ts";
import { type Executed, openTx } from "./tx.ts";

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
    const results = (await ofDatabase(client.batch(lists.flat(), "write"))).map(toResult);
    return lists.map(({ length }) => results.splice(0, length));
  };
  return {
    dialect: sqliteDialect,
    // A transaction left open locks out others until the server ends it, so statements alone are sent without one.
    transact: (calls) => (calls.every(({ command }) => command === execute) ? runAtOnce(calls) : transact(calls)),
    read: (statement) =>
      orUnavailable(async () => toResult(await ofDatabase(client.execute(inStatement(statement)))).rows),
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
    return (await this.#next).slice(from, from + all.length).map(toExecuted);
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
    throw error instanceof NoAnswer || errorCode(error).startsWith("SQL") ? error : new NoAnswer(error);
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

function toExecuted({ columns, rows, rowsAffected }: ResultSet): Executed {
  const changes = columns.length > 0 ? rows.length : rowsAffected;
  return { columns, rows: rows.map((row) => columns.map((_, at) => row[at])), changes };
}

function toResult(result: ResultSet): StatementResult {
  const { columns, rows, changes } = toExecuted(result);
  return { rows: rowsOf(columns, rows), changes };
}

/** How long a lock lasts after a renewal, and how often it is renewed. */
export interface LockTimes {
  readonly lastsMs: number;
  readonly beatMs: number;
}

export const LOCK_TIMES: LockTimes = { lastsMs: SERVICE_LOCK_MS, beatMs: SERVICE_LOCK_BEAT_MS };

const LOOK_EVERY_MS = 500;

/** How often an unavailable database is tried again. */
const ASK_EVERY_MS = 250;

interface LockSettings {
  /** `id` is unique to this opening of the database. `name` tells the operator of another service who has the lock. */
  readonly holder: { readonly id: string; readonly name: string };
  readonly times: LockTimes;
  /** Called once if another service has the lock, so that this one must wait. */
  readonly onWait: () => void;
  /** Called when another service has taken over the database, or another database is in its place. Nothing can be written here any more. */
  readonly onLost: (cause: StoreLost) => void;
}

// Times come from the database's clock, which all services share. Older versions lack `subsec`.
const NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

const CREATE = `CREATE TABLE IF NOT EXISTS service_lock (id INTEGER PRIMARY KEY CHECK (id = 1),
  holder TEXT NOT NULL, name TEXT NOT NULL, fence INTEGER NOT NULL, expires_at INTEGER NOT NULL)`;

const INSERT = "INSERT OR IGNORE INTO service_lock (id, holder, name, fence, expires_at) VALUES (1, '', '', 0, 0)";

const TAKE = `UPDATE service_lock SET holder = ?, name = ?, fence = fence + 1, expires_at = ${NOW} + ?
  WHERE id = 1 AND (holder = '' OR expires_at < ${NOW})`;

const LOOK = "SELECT holder, name, fence, expires_at FROM service_lock WHERE id = 1";

// Raises the fence, after which no earlier write can be committed. If another service has the lock, or the fence is behind a write that
// was answered, this sets NULL, which the column refuses, so that nothing of the write is committed.
const RENEW = `UPDATE service_lock SET expires_at = ${NOW} + ?,
  fence = CASE WHEN holder = ? AND fence >= ? AND fence < ? THEN ? END WHERE id = 1`;

const RELEASE = "UPDATE service_lock SET holder = '', expires_at = 0 WHERE id = 1 AND holder = ?";

/**
 * Takes the lock of a remote database, which lets one service write to it: a row that expires unless it is renewed, with every
 * write and every few seconds. If another service holds the lock, waits: if that one renews it, throws `DatabaseInUse`; if it
 * expires, since that one was killed, takes it.
 */
export async function takeDatabase(connection: DbConnection, settings: LockSettings): Promise<FencedConnection> {
  const { holder, times, onWait } = settings;
  let seen: Row | null = null;
  for (;;) {
    const take = toStatement(TAKE, [holder.id, holder.name, times.lastsMs]);
    const done = await runStatements(connection, [toStatement(CREATE), toStatement(INSERT), take, toStatement(LOOK)]);
    const row = done[3]?.rows[0] ?? {};
    if (done[2]?.changes === 1) return new FencedConnection(connection, settings, Number(row["fence"]));
    if (seen !== null && seen["expires_at"] !== row["expires_at"]) {
      throw new DatabaseInUse(
        `Another Outgate (${String(row["name"])}) uses the database of DATABASE_URL, and a libSQL server serves one at a time. Stop the other one, or give this one a database of its own. Several at a time need PostgreSQL (postgres://).`,
      );
    }
    if (seen === null) onWait();
    seen = row;
    await pause(Math.min(LOOK_EVERY_MS, times.beatMs));
  }
}

/**
 * A remote database that one service writes to. Each write raises the fence, so that no earlier write can be committed after
 * it. If the database gives no answer, calls are refused until a renewal is answered. By then, what was sent before is
 * committed or never will be, so reading a row shows how its write ended.
 */
class FencedConnection implements DbConnection {
  readonly dialect = sqliteDialect;
  readonly #connection: DbConnection;
  readonly #settings: LockSettings;
  readonly #closing = new AbortController();
  /** The fence of the last write, and of the last one that was answered. */
  #fence: number;
  #answered: number;
  #isAway = false;
  #isLost = false;
  #renewedMs = performance.now();
  /** The last write. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #renewing: Promise<void>;

  constructor(connection: DbConnection, settings: LockSettings, fence: number) {
    this.#connection = connection;
    this.#settings = settings;
    this.#fence = fence;
    this.#answered = fence;
    this.#renewing = this.#renewRegularly();
  }

  async read(statement: Statement): Promise<readonly Row[]> {
    this.#refuseWhileAway();
    try {
      return await this.#connection.read(statement);
    } catch (error) {
      if (!isAnswered(error)) this.#isAway = true;
      throw error;
    }
  }

  async transact(calls: readonly CommandCall[]): Promise<readonly unknown[]> {
    this.#refuseWhileAway();
    return this.#inTurn(() => {
      // The previous write may have found the database unavailable.
      this.#refuseWhileAway();
      return this.#write(calls);
    });
  }

  /** Releases the lock, so that the next service can start at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#renewing;
    // If the database is unavailable, the lock expires.
    const release = toStatement(RELEASE, [this.#settings.holder.id]);
    if (!this.#isLost) await runStatements(this.#connection, [release]).catch(() => {});
    await this.#connection.close();
  }

  /** Runs writes one after the other, in the order of their fences. */
  #inTurn<Result>(write: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(write);
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Renews the lock and runs commands in one transaction. */
  async #write(calls: readonly CommandCall[]): Promise<readonly unknown[]> {
    const { holder, times } = this.#settings;
    const sentMs = performance.now();
    this.#fence += 1;
    const fence = this.#fence;
    const renew = toStatement(RENEW, [times.lastsMs, holder.id, this.#answered, fence, fence]);
    try {
      const results = await this.#connection.transact([...calls, { command: execute, args: [[renew]] }]);
      // Safe: the command returned it.
      const [renewed] = results.at(-1) as readonly StatementResult[];
      // The row was deleted, so it is unknown who has the lock.
      if (renewed?.changes !== 1) this.#reportLost();
      this.#answered = fence;
      this.#renewedMs = sentMs;
      this.#isAway = false;
      return results.slice(0, -1);
    } catch (error) {
      if (isRefusedByLock(error)) {
        this.#reportLost();
        throw unavailable(error);
      }
      if (faultKind(error) === "unavailable" && !isAnswered(error)) this.#isAway = true;
      throw error;
    }
  }

  #refuseWhileAway(): void {
    if (this.#isAway || this.#isLost || this.#closing.signal.aborted)
      throw new StoreUnavailable("The database gives no answer.", { reason: "it could not be reached" });
  }

  /** Renews the lock if no write has, and tries an unavailable database again. */
  async #renewRegularly(): Promise<void> {
    const { beatMs } = this.#settings.times;
    while (!this.#closing.signal.aborted && !this.#isLost) {
      const isDue = this.#isAway || performance.now() >= this.#renewedMs + beatMs;
      if (isDue) await this.#inTurn(() => this.#write([])).catch(() => {});
      const signal = this.#closing.signal;
      await pause(Math.min(ASK_EVERY_MS, beatMs), undefined, { signal, ref: false }).catch(() => {});
    }
  }

  #reportLost(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#settings.onLost(
      new StoreLost("Another Outgate has taken the database over, or an older copy is in its place."),
    );
  }
}

/** Whether a write failed at `RENEW`. Without its table, the database is another one. */
function isRefusedByLock(error: unknown): boolean {
  return error instanceof Error && /NOT NULL[^:]*: service_lock\.|no such table: service_lock/.test(error.message);
}
