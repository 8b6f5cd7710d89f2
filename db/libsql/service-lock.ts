import { setTimeout as pause } from "node:timers/promises";
import { SERVICE_LOCK_BEAT_MS, SERVICE_LOCK_MS } from "../../src/core/limits.ts";
import { StoreLost, StoreUnavailable } from "../../src/core/store.ts";
import { type CommandCall, type DbConnection, execute, runStatements } from "../commands/command.ts";
import { faultOf, isAnswered, unavailable } from "../sql/errors.ts";
import { type StatementResult, type Row, type Statement, toStatement, sqliteDialect } from "../sql/dialect.ts";
import { DatabaseInUse } from "./inspect.ts";

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
export class FencedConnection implements DbConnection {
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
      if (faultOf(error) === "unavailable" && !isAnswered(error)) this.#isAway = true;
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
