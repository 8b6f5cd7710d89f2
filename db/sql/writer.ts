import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import {
  FLUSH_BYTES_MAX,
  FLUSH_ROWS_MAX,
  STORE_CALL_MS_MAX,
  WRITES_WAITING_BYTES_MAX,
  WRITES_WAITING_MAX,
} from "../../src/core/limits.ts";
import { StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import type { Call, CallResult, Command } from "../commands/command.ts";
import type { OnAway } from "./away.ts";
import { faultOf, unavailable } from "./errors.ts";
import type { Done, Lock, Sql, Statement } from "./sql.ts";

/** Pauses between retries while another process holds the lock; they don't block the event loop. */
const BUSY_PAUSES_MS = [25, 50, 100, 200, 250, 250, 250, 250, 250, 250];

interface Waiting {
  readonly locks: readonly Lock[];
  readonly bytes: number;
  reject(error: unknown): void;
}

interface StatementsWaiting extends Waiting {
  readonly statements: readonly Statement[];
  resolve(done: readonly Done[]): void;
}

interface CallWaiting extends Waiting {
  readonly call: Call;
  resolve(value: unknown): void;
}

type Write = StatementsWaiting | CallWaiting;

interface WriterOptions {
  readonly commitMsMax?: number;
  readonly onAway?: OnAway;
}

/**
 * Group commit: all writes of a turn of the event loop share one transaction, and so one fsync under
 * `synchronous=FULL`. Callers get their results after the commit. While a commit runs, the next one is collected.
 */
export class Writer {
  readonly #sql: Sql;
  readonly #onFatal: (cause: unknown) => void;
  readonly #onAway: OnAway;
  #waiting: Write[] = [];
  /** Bytes of the writes that wait or are being committed. */
  #bytes = 0;
  #flushing: Promise<void> | null = null;
  /** After a failed fsync the state of the disk is unknown: nothing more is written until the process ends. */
  #deathCause: unknown = null;
  #isAway = false;
  readonly #commitMsMax: number;
  /** The running commit exceeds its time: new writes are refused until it ends. */
  #isStuck = false;

  /**
   * `onFatal` is called when an accepted commit could not be made durable; the process must end. `onAway` is called with each
   * commit that found the database away.
   */
  constructor(sql: Sql, onFatal: (cause: unknown) => void, { commitMsMax, onAway }: WriterOptions = {}) {
    this.#sql = sql;
    this.#onFatal = onFatal;
    this.#onAway = onAway ?? (() => {});
    this.#commitMsMax = commitMsMax ?? STORE_CALL_MS_MAX;
  }

  /** Whether the last commit found the database unavailable, or has not ended in time. */
  get isAway(): boolean {
    return this.#isAway || this.#isStuck;
  }

  /**
   * Writes the statements in one transaction with other waiting writes, under the locks; one `Done` per statement. Rejects with
   * `StoreBusy` when the queue is full, with `StoreUnavailable` when the database is, or with its own error when these
   * statements are wrong. It settles within the time limit of a commit; after a timeout it is open whether the
   * statements were or will be written.
   */
  write(statements: readonly Statement[], locks: readonly Lock[] = []): Promise<readonly Done[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Done[]>();
    this.#add({ statements, locks, bytes: bytesOf(statements), resolve, reject });
    return promise;
  }

  /**
   * Runs the command in one transaction with other waiting commands, under its locks, and returns its result once that is
   * committed. Rejects as `write` does; with what the command throws, none of it is written.
   */
  run<Args, Result>(called: Command<Args, Result>, args: Args): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const call = { command: called, args };
    this.#add({ call, locks: called.locks(args), bytes: JSON.stringify(args).length, resolve, reject });
    // Safe: it is what the command returned.
    return promise as Promise<Result>;
  }

  #add(write: Write): void {
    // One write always fits, however large.
    const isFull = this.#bytes > 0 && this.#bytes + write.bytes > WRITES_WAITING_BYTES_MAX;
    if (this.#isStuck) {
      write.reject(tooLate());
    } else if (isFull || this.#waiting.length >= WRITES_WAITING_MAX) {
      const most = `${WRITES_WAITING_MAX} writes or ${WRITES_WAITING_BYTES_MAX} bytes`;
      write.reject(new StoreBusy(`More than ${most} would wait for the database.`));
    } else {
      this.#waiting.push(write);
      this.#bytes += write.bytes;
      this.#flushing ??= this.#flush();
    }
  }

  /** Resolves when no write waits. */
  async drain(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
  }

  /**
   * Commits until nothing waits. The next commit starts before the callers of the last one get their results, so that
   * their work and the disk's overlap.
   */
  async #flush(): Promise<void> {
    await nextTurn();
    let notify = noCallers;
    while (this.#waiting.length > 0) {
      const committing = this.#commitInTime(this.#take());
      notify();
      // Sockets get a turn in every commit, even if the database has no thread of its own.
      [notify] = await Promise.all([committing, nextTurn()]);
      if (this.#waiting.length > 0) continue;
      notify();
      notify = noCallers;
      // Callers that just got their results may write again: wait for that.
      await nextTurn();
    }
    this.#flushing = null;
  }

  async #commitInTime(writes: readonly Write[]): Promise<() => void> {
    const timer = setTimeout(() => {
      this.#isStuck = true;
      const waiting = this.#waiting.splice(0);
      rejectAll([...writes, ...waiting], tooLate());
      this.#onAway(tooLate());
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

  /** Removes and returns as many writes as one commit may hold, in order: all of them statements, or all commands. */
  #take(): readonly Write[] {
    const [first] = this.#waiting;
    const isOfKind = (write: Write) => first !== undefined && "call" in write === "call" in first;
    let rows = 0;
    let bytes = 0;
    const end = this.#waiting.findIndex((write) => {
      if (!isOfKind(write)) return false;
      rows += "call" in write ? 1 : write.statements.length;
      bytes += write.bytes;
      return write !== first && (rows > FLUSH_ROWS_MAX || bytes > FLUSH_BYTES_MAX);
    });
    const seen = end === -1 ? this.#waiting : this.#waiting.slice(0, end);
    const taken = seen.filter(isOfKind);
    this.#waiting =
      taken.length === seen.length
        ? this.#waiting.slice(seen.length)
        : [...seen.filter((write) => !isOfKind(write)), ...this.#waiting.slice(seen.length)];
    return taken;
  }

  /** Commits, and returns a function that gives the callers their results; failed ones are rejected already. */
  async #commit(writes: readonly Write[]): Promise<() => void> {
    if (this.#deathCause !== null) return rejectAll(writes, this.#deathCause);
    try {
      const notify = await this.#transact(writes);
      this.#isAway = false;
      return notify;
    } catch (error) {
      const fault = faultOf(error);
      if (fault === "rejected") return this.#commitHalves(writes, error);
      this.#isAway = true;
      if (fault === "fatal") this.#deathCause = error;
      else this.#onAway(unavailable(error));
      rejectAll(writes, error);
      if (fault === "fatal") this.#onFatal(error);
      return noCallers;
    }
  }

  /** One refused write must not fail the others of its commit: commit each half separately. */
  async #commitHalves(writes: readonly Write[], error: unknown): Promise<() => void> {
    const [only] = writes;
    if (writes.length === 1) {
      only?.reject(error);
      return noCallers;
    }
    const middle = Math.ceil(writes.length / 2);
    const notifyFirst = await this.#commit(writes.slice(0, middle));
    notifyFirst();
    await nextTurn();
    return this.#commit(writes.slice(middle));
  }

  async #transact(writes: readonly Write[]): Promise<() => void> {
    const locks = writes.flatMap((write) => write.locks);
    const calls = writes.filter((write) => "call" in write);
    if (calls.length > 0) {
      const results = await whileBusy(() =>
        this.#sql.call(
          calls.map(({ call }) => call),
          locks,
        ),
      );
      return () => results.forEach((result, at) => settle(calls[at], result));
    }
    const all = writes.filter((write) => "statements" in write);
    const statements = all.flatMap((write) => write.statements);
    const done = await whileBusy(() => this.#sql.batch(statements, locks));
    return () => resolveAll(all, done);
  }
}

/** Tries again while another process holds the lock. */
async function whileBusy<Result>(work: () => Promise<Result>): Promise<Result> {
  for (const pauseMs of BUSY_PAUSES_MS) {
    try {
      return await work();
    } catch (error) {
      if (faultOf(error) !== "busy") throw error;
      await pause(pauseMs);
    }
  }
  return work();
}

function settle(write: CallWaiting | undefined, result: CallResult): void {
  if ("error" in result) write?.reject(result.error);
  else write?.resolve(result.value);
}

function resolveAll(writes: readonly StatementsWaiting[], done: readonly Done[]): void {
  let from = 0;
  for (const write of writes) {
    write.resolve(done.slice(from, from + write.statements.length));
    from += write.statements.length;
  }
}

function rejectAll(writes: readonly Write[], cause: unknown): () => void {
  for (const write of writes) write.reject(unavailable(cause));
  return noCallers;
}

function tooLate(): StoreUnavailable {
  return new StoreUnavailable("The database has not answered in time.", { reason: "no answer came in time" });
}

function sumOf(writes: readonly Write[]): number {
  return writes.reduce((sum, { bytes }) => sum + bytes, 0);
}

function noCallers(): void {
  // All callers have their results.
}

function bytesOf(statements: readonly Statement[]): number {
  let bytes = 0;
  for (const { args } of statements) for (const arg of args) bytes += typeof arg === "string" ? arg.length : 8;
  return bytes;
}
