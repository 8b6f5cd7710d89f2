import { setTimeout as pause } from "node:timers/promises";
import { SERVICE_LOCK_BEAT_MS, SERVICE_LOCK_MS } from "../../src/core/limits.ts";
import { DatabaseInUse } from "./inspect.ts";
import { type Row, type Sql, type Statement, toStatement } from "../sql/sql.ts";

/** How long a lock lasts after a renewal, and how often it is renewed. */
export interface LockTimes {
  readonly lastsMs: number;
  readonly beatMs: number;
}

export const LOCK_TIMES: LockTimes = { lastsMs: SERVICE_LOCK_MS, beatMs: SERVICE_LOCK_BEAT_MS };

const LOOK_EVERY_MS = 500;

/** Who holds the lock. */
interface Holder {
  /** Unique to this opening of the database. */
  readonly id: string;
  /** Shown to the operator of another service that finds the lock taken. */
  readonly name: string;
}

// Times come from the database's clock, which all services share. Older versions lack `subsec`.
const NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

const CREATE = `CREATE TABLE IF NOT EXISTS service_lock (id INTEGER PRIMARY KEY CHECK (id = 1),
  holder TEXT NOT NULL, name TEXT NOT NULL, fence INTEGER NOT NULL, expires_at INTEGER NOT NULL)`;

const INSERT = "INSERT OR IGNORE INTO service_lock (id, holder, name, fence, expires_at) VALUES (1, '', '', 0, 0)";

const TAKE = `UPDATE service_lock SET holder = ?, name = ?, fence = fence + 1, expires_at = ${NOW} + ?
  WHERE id = 1 AND (holder = '' OR expires_at < ${NOW})`;

const LOOK = "SELECT holder, name, fence, expires_at FROM service_lock WHERE id = 1";

// NULL when the lock is not ours any more, which the column refuses: the whole batch is rolled back.
const RENEW = `UPDATE service_lock SET expires_at = CASE WHEN holder = ? AND fence = ? THEN ${NOW} + ? END WHERE id = 1`;

const FENCE = `UPDATE service_lock SET expires_at = ${NOW} + ?,
  fence = CASE WHEN holder = ? AND fence < ? THEN ? END WHERE id = 1`;

const RELEASE = "UPDATE service_lock SET holder = '', expires_at = 0 WHERE id = 1 AND holder = ?";

/**
 * The right of one service to write a shared database: a row that it renews with every batch, and every few seconds.
 * After its time without renewal another service may take it, and this one can't write any more.
 */
export class ServiceLock {
  readonly #holder: Holder;
  readonly #times: LockTimes;

  /** Batches with a lower fence can't be committed. */
  #fence: number;

  private constructor(holder: Holder, times: LockTimes, fence: number) {
    this.#holder = holder;
    this.#times = times;
    this.#fence = fence;
  }

  /**
   * Takes the lock. If another service holds it, waits until that one renews it, and throws `DatabaseInUse`; or until
   * the lock expires, since that service may have been killed. `onWait` is called once when it has to wait.
   */
  static async take(sql: Sql, holder: Holder, times: LockTimes, onWait: () => void): Promise<ServiceLock> {
    let seen: Row | null = null;
    for (;;) {
      const take = { sql: TAKE, args: [holder.id, holder.name, times.lastsMs] };
      const done = await sql.batch([toStatement(CREATE), toStatement(INSERT), take, toStatement(LOOK)]);
      const row = done[3]?.rows[0] ?? {};
      if (done[2]?.changes === 1) return new ServiceLock(holder, times, Number(row["fence"]));
      if (seen !== null && seen["expires_at"] !== row["expires_at"]) throw inUseError(String(row["name"]));
      if (seen === null) onWait();
      seen = row;
      await pause(Math.min(LOOK_EVERY_MS, times.beatMs));
    }
  }

  get fence(): number {
    return this.#fence;
  }

  get beatMs(): number {
    return this.#times.beatMs;
  }

  /** The first statement of every batch: the batch fails if the lock is another's or the fence was raised since. */
  renew(): Statement {
    return { sql: RENEW, args: [this.#holder.id, this.#fence, this.#times.lastsMs] };
  }

  /** After its commit no batch that was sent earlier can be committed. It fails if the lock is another's. */
  raiseFence(): Statement {
    this.#fence += 1;
    return { sql: FENCE, args: [this.#times.lastsMs, this.#holder.id, this.#fence, this.#fence] };
  }

  /** Lets the next service start at once. */
  release(): Statement {
    return { sql: RELEASE, args: [this.#holder.id] };
  }
}

/** Whether a batch failed at `renew` or `raiseFence`. */
export function isRefusedByLock(error: unknown): boolean {
  return error instanceof Error && /NOT NULL[^:]*: service_lock\./.test(error.message);
}

function inUseError(name: string): DatabaseInUse {
  return new DatabaseInUse(
    `Another Outgate (${name}) uses the database of DATABASE_URL, and a libSQL server serves one at a time. Stop the other one, or give this one a database of its own. Several at a time need PostgreSQL (postgres://).`,
  );
}
