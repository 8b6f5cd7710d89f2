import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import {
  FLUSH_BYTES_MAX,
  FLUSH_ROWS_MAX,
  STORE_CALL_MS_MAX,
  WRITES_WAITING_BYTES_MAX,
  WRITES_WAITING_MAX,
} from "../../src/config/limits.ts";
import { StoreBusy, StoreUnavailable } from "../store.ts";
import { faultOf, unavailable } from "./errors.ts";
import type { Done, Sql, Statement } from "./sql.ts";

/** A lock of another process is waited for this often and this long, without stopping the event loop. */
const BUSY_PAUSES_MS = [25, 50, 100, 200, 250, 250, 250, 250, 250, 250];

interface Write {
  readonly statements: readonly Statement[];
  readonly bytes: number;
  resolve(done: readonly Done[]): void;
  reject(error: unknown): void;
}

/**
 * Group commit: every write of a turn of the event loop goes into one transaction, and each caller hears of its own after
 * the commit. `synchronous=FULL` then costs one fsync for all of them. While a commit runs, the next one gathers.
 */
export class Writer {
  readonly #sql: Sql;
  readonly #onFatal: (cause: unknown) => void;
  readonly #waiting: Write[] = [];
  /** Of those that wait, and of those that are being committed. */
  #bytes = 0;
  #flushing: Promise<void> | null = null;
  /** What a failed fsync has left on the disk nobody knows: until the process has ended nothing is written behind it. */
  #deathCause: unknown = null;
  #isAway = false;
  readonly #commitMsMax: number;
  /** The commit that is under way takes longer than that: nothing is taken up behind it until it has ended. */
  #isStuck = false;

  /** `onFatal` hears of a commit that was accepted and could not be made durable; the process must not go on. */
  constructor(sql: Sql, onFatal: (cause: unknown) => void, commitMsMax: number = STORE_CALL_MS_MAX) {
    this.#sql = sql;
    this.#onFatal = onFatal;
    this.#commitMsMax = commitMsMax;
  }

  /** Whether the last commit found that nothing can be written, or has not ended in time. */
  get isAway(): boolean {
    return this.#isAway || this.#isStuck;
  }

  /**
   * Writes the statements in one transaction with whatever else waits; one `Done` a statement. Rejects with `StoreBusy`
   * when too much waits, with `StoreUnavailable` when nothing can be written, or with the database's own error when these
   * statements are at fault. Within the time of one commit, but then it is open whether they are written, or will be.
   */
  write(statements: readonly Statement[]): Promise<readonly Done[]> {
    if (this.#isStuck) return Promise.reject(tooLate());
    const bytes = bytesOf(statements);
    // One always fits, however large.
    const isFull = this.#bytes > 0 && this.#bytes + bytes > WRITES_WAITING_BYTES_MAX;
    if (isFull || this.#waiting.length >= WRITES_WAITING_MAX) {
      const most = `${WRITES_WAITING_MAX} writes or ${WRITES_WAITING_BYTES_MAX} bytes`;
      return Promise.reject(new StoreBusy(`More than ${most} would wait for the database.`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<readonly Done[]>();
    this.#waiting.push({ statements, bytes, resolve, reject });
    this.#bytes += bytes;
    this.#flushing ??= this.#flush();
    return promise;
  }

  /** Resolves when nothing waits. */
  async drain(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
  }

  /**
   * One commit after the other for as long as something waits. The next one is under way before those of the last hear of
   * it, so that what they do then and what the disk does go on side by side.
   */
  async #flush(): Promise<void> {
    await nextTurn();
    let tell = nobody;
    while (this.#waiting.length > 0) {
      const committing = this.#commitInTime(this.#take());
      tell();
      // Sockets get their turn in every commit, also where the database has no thread of its own.
      [tell] = await Promise.all([committing, nextTurn()]);
      if (this.#waiting.length > 0) continue;
      tell();
      tell = nobody;
      // What those who have just heard want to write is not there yet.
      await nextTurn();
    }
    this.#flushing = null;
  }

  async #commitInTime(writes: readonly Write[]): Promise<() => void> {
    const timer = setTimeout(() => {
      this.#isStuck = true;
      const waiting = this.#waiting.splice(0);
      refuse([...writes, ...waiting], tooLate());
      this.#bytes -= sumOf(waiting);
    }, this.#commitMsMax);
    try {
      return await this.#commit(writes);
    } finally {
      clearTimeout(timer);
      this.#isStuck = false;
      this.#bytes -= sumOf(writes);
    }
  }

  /** As much as one commit may hold, in the order in which it came. */
  #take(): readonly Write[] {
    let rows = 0;
    let bytes = 0;
    const count = this.#waiting.findIndex((write) => {
      rows += write.statements.length;
      bytes += write.bytes;
      return rows > FLUSH_ROWS_MAX || bytes > FLUSH_BYTES_MAX;
    });
    return this.#waiting.splice(0, count === -1 ? this.#waiting.length : Math.max(1, count));
  }

  /** Commits, and resolves with what tells the callers of it; refused ones have heard already. */
  async #commit(writes: readonly Write[]): Promise<() => void> {
    if (this.#deathCause !== null) return refuse(writes, this.#deathCause);
    try {
      const done = await this.#batch(writes.flatMap((write) => write.statements));
      this.#isAway = false;
      return () => resolveAll(writes, done);
    } catch (error) {
      const fault = faultOf(error);
      if (fault === "rejected") return this.#commitHalves(writes, error);
      this.#isAway = true;
      if (fault === "fatal") this.#deathCause = error;
      refuse(writes, error);
      if (fault === "fatal") this.#onFatal(error);
      return nobody;
    }
  }

  /** One write that the database refuses must not take the others of its turn along: the half without it is committed. */
  async #commitHalves(writes: readonly Write[], error: unknown): Promise<() => void> {
    const [only] = writes;
    if (writes.length === 1) {
      only?.reject(error);
      return nobody;
    }
    const middle = Math.ceil(writes.length / 2);
    const tellFirst = await this.#commit(writes.slice(0, middle));
    tellFirst();
    await nextTurn();
    return this.#commit(writes.slice(middle));
  }

  async #batch(statements: readonly Statement[]): Promise<readonly Done[]> {
    for (const pauseMs of BUSY_PAUSES_MS) {
      try {
        return await this.#sql.batch(statements);
      } catch (error) {
        if (faultOf(error) !== "busy") throw error;
        await pause(pauseMs);
      }
    }
    return this.#sql.batch(statements);
  }
}

function resolveAll(writes: readonly Write[], done: readonly Done[]): void {
  let from = 0;
  for (const write of writes) {
    write.resolve(done.slice(from, from + write.statements.length));
    from += write.statements.length;
  }
}

function refuse(writes: readonly Write[], cause: unknown): () => void {
  for (const write of writes) write.reject(unavailable(cause));
  return nobody;
}

function tooLate(): StoreUnavailable {
  return new StoreUnavailable("The database has not answered in time.");
}

function sumOf(writes: readonly Write[]): number {
  return writes.reduce((sum, { bytes }) => sum + bytes, 0);
}

function nobody(): void {
  // Everybody has heard.
}

function bytesOf(statements: readonly Statement[]): number {
  let bytes = 0;
  for (const { args } of statements) for (const arg of args) bytes += typeof arg === "string" ? arg.length : 8;
  return bytes;
}
