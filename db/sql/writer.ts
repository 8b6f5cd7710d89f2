/** Group commit: collects commands (`commands/command.ts`), has the connection run them in one transaction, and gives each caller its result. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterRunning, type Clock, sleep, systemClock } from "../../src/core/clock.ts";
import {
  FLUSH_BYTES_MAX,
  FLUSH_ROWS_MAX,
  STORE_CALL_MS_MAX,
  WRITES_WAITING_BYTES_MAX,
  WRITES_WAITING_MAX,
} from "../../src/core/limits.ts";
import { StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import type { AnyCommand, CommandCall, Command, DbConnection } from "../commands/command.ts";
import { faultKind, type OnAway, unavailable } from "./errors.ts";
import type { Reader } from "./dialect.ts";

/** Pauses between tries while another process holds the lock. They don't block the event loop. */
const BUSY_PAUSES_MS = [25, 50, 100, 200, 250, 250, 250, 250, 250, 250];

/** A command that waits for its commit. */
interface Write {
  readonly call: CommandCall;
  readonly rows: number;
  readonly bytes: number;
  readonly resolve: (result: unknown) => void;
  reject(error: unknown): void;
}

interface WriterOptions {
  readonly commitMsMax?: number;
  readonly onAway?: OnAway;
  /** Default: the machine's clock. */
  readonly clock?: Pick<Clock, "after" | "monotonicMs">;
}

/** Commands as methods of a store. */
type Methods<Commands> = {
  readonly [Name in keyof Commands]: Commands[Name] extends Command<infer Args, infer Result>
    ? (...args: Args) => Promise<Result>
    : never;
};

/**
 * Group commit: all writes of a turn of the event loop share one transaction, and so one fsync under `synchronous=FULL`.
 * Callers get their results after the commit. While one commit runs, writes for the next one are collected.
 */
export class Writer {
  readonly #connection: DbConnection;
  readonly #onFatal: (cause: unknown) => void;
  readonly #onAway: OnAway;
  readonly #waiting: Write[] = [];
  /** Bytes of the writes that wait or are being committed. */
  #bytes = 0;
  #flushing: Promise<void> | null = null;
  /** Set after a failed fsync, when the state of the disk is unknown: nothing more is written until the process ends. */
  #deathCause: unknown = null;
  #isAway = false;
  readonly #commitMsMax: number;
  readonly #clock: Pick<Clock, "after" | "monotonicMs">;
  /** The running commit has exceeded its time: new writes are refused until it ends. */
  #isStuck = false;

  /**
   * `onFatal` is called when an accepted commit could not be made durable; the process must end. `onAway` is called when a
   * commit doesn't end in time, or finds the database locked at each try. `tellingAway` reports other outages.
   */
  constructor(
    connection: DbConnection,
    onFatal: (cause: unknown) => void,
    { commitMsMax, onAway, clock }: WriterOptions = {},
  ) {
    this.#connection = connection;
    this.#onFatal = onFatal;
    this.#onAway = onAway ?? (() => {});
    this.#commitMsMax = commitMsMax ?? STORE_CALL_MS_MAX;
    this.#clock = clock ?? systemClock;
  }

  /** Whether the last commit found the database unavailable, or has not ended in time. */
  get isAway(): boolean {
    return this.#isAway || this.#isStuck;
  }

  /**
   * Runs a command in one transaction with other waiting writes, under its locks, and returns its result after the commit. Rejects with
   * `StoreBusy` if the queue is full, with `StoreUnavailable` if the database is unavailable, or with what the command throws; a command that
   * throws writes nothing. Settles within the time limit of a commit. After a timeout, its writes may have been committed, or may still be.
   */
  run<Args extends readonly unknown[], Result>(command: Command<Args, Result>, ...args: Args): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#add({ call: { command, args }, ...command.size(...args), resolve, reject });
    // Safe: the command returned it.
    return promise as Promise<Result>;
  }

  /** Makes methods of a store from commands. */
  methods<Commands extends Readonly<Record<string, AnyCommand>>>(commands: Commands): Methods<Commands> {
    const methods = Object.entries(commands).map(([name, command]) => {
      // Safe: a method has the arguments of its command.
      return [name, (...args: readonly unknown[]) => this.run(command, ...(args as never))];
    });
    return Object.fromEntries(methods) as Methods<Commands>;
  }

  #add(write: Write): void {
    // A single write always fits, however large.
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
      // At least one turn of the event loop per commit, even if the database has no thread of its own.
      [notify] = await Promise.all([committing, nextTurn()]);
      if (this.#waiting.length > 0) continue;
      notify();
      notify = noCallers;
      // Callers that just got their results may write again.
      await nextTurn();
    }
    this.#flushing = null;
  }

  async #commitInTime(writes: readonly Write[]): Promise<() => void> {
    const cancel = afterRunning(this.#clock, this.#commitMsMax, () => {
      this.#isStuck = true;
      const waiting = this.#waiting.splice(0);
      rejectAll([...writes, ...waiting], tooLate());
      this.#onAway(tooLate());
      this.#bytes -= sumOf(waiting);
    });
    try {
      return await this.#commit(writes);
    } finally {
      cancel();
      this.#isStuck = false;
      this.#bytes -= sumOf(writes);
    }
  }

  /** Removes and returns the next writes, as many as one commit may hold. */
  #take(): readonly Write[] {
    let rows = 0;
    let bytes = 0;
    const count = this.#waiting.findIndex((write) => {
      rows += write.rows;
      bytes += write.bytes;
      return rows > FLUSH_ROWS_MAX || bytes > FLUSH_BYTES_MAX;
    });
    return this.#waiting.splice(0, count === -1 ? this.#waiting.length : Math.max(1, count));
  }

  /** Commits, and returns a function that gives the callers their results. Callers of failed writes are rejected at once. */
  async #commit(writes: readonly Write[]): Promise<() => void> {
    if (this.#deathCause !== null) return rejectAll(writes, this.#deathCause);
    try {
      const calls = writes.map(({ call }) => call);
      const results = await whileBusy(() => this.#connection.transact(calls), this.#clock);
      this.#isAway = false;
      return () => {
        for (const [at, { resolve }] of writes.entries()) resolve(results[at]);
      };
    } catch (error) {
      const fault = faultKind(error);
      if (fault === "rejected") return this.#commitHalves(writes, error);
      this.#isAway = true;
      if (fault === "fatal") this.#deathCause = error;
      if (fault === "busy") this.#onAway(unavailable(error));
      rejectAll(writes, error);
      if (fault === "fatal") this.#onFatal(error);
      return noCallers;
    }
  }

  /** Commits each half separately, since one refused write must not fail the others of its commit. */
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
}

/** Tries again while another process holds the lock. */
async function whileBusy<Result>(work: () => Promise<Result>, clock: Pick<Clock, "after">): Promise<Result> {
  for (const pauseMs of BUSY_PAUSES_MS) {
    try {
      return await work();
    } catch (error) {
      if (faultKind(error) !== "busy") throw error;
      await sleep(clock, pauseMs);
    }
  }
  return work();
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

/** How each part of the store reads and writes. */
export interface StoreAccess {
  readonly reader: Reader;
  readonly writer: Writer;
}
