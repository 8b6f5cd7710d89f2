import {
  ATTEMPTS_PER_TURN_MAX,
  DRAIN_WRITE_MS,
  NO_FILE_LOOK_MS,
  RESULT_RETRY_MS,
  RESULT_RETRY_MS_MAX,
  UNWRITTEN_RESULT_BYTES,
  UNWRITTEN_RESULTS_BYTES_MAX,
} from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { Counts } from "../core/maps.ts";
import type { Log } from "../observability/log.ts";
import { hasFreeFile } from "../outbound/connections.ts";

// What this process has in flight, and what bounds it: turns of the event loop, open files, results that wait to be written.

/** What the scheduler gives an attempt. */
interface AttemptControls {
  /** Aborts when the attempt must end early. */
  readonly stop: AbortSignal;
  /** Call it once, as soon as the target is done with the request. The result may still have to be written. */
  readonly releaseSlot: () => void;
}

export type RunAttempt<Row> = (row: Row, controls: AttemptControls) => Promise<void>;

/** Spreads attempts over turns of the event loop: a claim can start many at once, and many targets can answer at once. */
export class Turns {
  #left = ATTEMPTS_PER_TURN_MAX;
  readonly #waiting: (() => void)[] = [];

  /** Resolves in a turn that has room, in the order of the calls. Null: this turn has room. */
  wait(): Promise<void> | null {
    if (this.#left === ATTEMPTS_PER_TURN_MAX) setImmediate(this.#begin);
    if (this.#left === 0) return new Promise((resolve) => void this.#waiting.push(resolve));
    this.#left -= 1;
    return null;
  }

  readonly #begin = (): void => {
    const ready = this.#waiting.splice(0, ATTEMPTS_PER_TURN_MAX);
    this.#left = ATTEMPTS_PER_TURN_MAX - ready.length;
    if (ready.length > 0) setImmediate(this.#begin);
    for (const go of ready) go();
  };
}

/** Everything that a scheduler has started: attempts by row, and other work that a stop must wait for. */
export class WorkInFlight {
  readonly #clock: Clock;
  /** Attempts by row. The next attempt may start while the result of the last one is still being written. */
  readonly attempts = new Counts();
  readonly #work = new Set<Promise<unknown>>();
  readonly #interrupt = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Aborts when attempts must end early. */
  get stop(): AbortSignal {
    return this.#interrupt.signal;
  }

  /** Makes `drain` wait for this work, too. It must not reject. */
  keep(work: Promise<unknown>): void {
    const kept = work.finally(() => this.#work.delete(kept));
    this.#work.add(kept);
  }

  /**
   * Resolves when all work has ended. After `limitMs` the attempts in flight are interrupted and have `DRAIN_WRITE_MS`
   * to be recorded; then this resolves in any case.
   */
  async drain(limitMs: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    let isOver = false;
    const cancels = [
      this.#clock.after(limitMs, () => this.#interrupt.abort()),
      this.#clock.after(limitMs + DRAIN_WRITE_MS, () => {
        isOver = true;
        over.resolve();
      }),
    ];
    while (this.#work.size > 0 && !isOver) await Promise.race([Promise.allSettled(this.#work), over.promise]);
    for (const cancel of cancels) cancel();
  }
}

const NO_FREE_FILE =
  "Calls wait for a free file: raise the limit of open files (ulimit -n), or lower DISPATCH_CONCURRENCY.";

/** Whether calls find a free file. While they don't, nothing is claimed, since it could not be sent. */
export class OpenFiles {
  readonly #clock: Clock;
  readonly #log: Pick<Log, "warn">;
  readonly #onFree = new Set<() => void>();
  #areUsedUp = false;
  #isLogged = false;

  constructor(clock: Clock, log: Pick<Log, "warn">) {
    this.#clock = clock;
    this.#log = log;
  }

  get areUsedUp(): boolean {
    return this.#areUsedUp;
  }

  /** `run` is called whenever files are free again. */
  onFree(run: () => void): void {
    this.#onFree.add(run);
  }

  /** Call it when a call found no free file. Logged once in the life of a process, whose limit does not change. */
  lack(): void {
    if (!this.#isLogged) this.#log.warn("dispatch.no_files", { message: NO_FREE_FILE });
    this.#isLogged = true;
    if (this.#areUsedUp) return;
    this.#areUsedUp = true;
    this.#lookLater();
  }

  #lookLater(): void {
    this.#clock.after(NO_FILE_LOOK_MS, () => {
      if (!hasFreeFile()) return this.#lookLater();
      this.#areUsedUp = false;
      for (const run of this.#onFree) run();
    });
  }
}

/**
 * Results that are known but not yet written. Without its result an action might be sent again, so each write is repeated
 * until it succeeds or the process ends, even after the lease has ended. All schedulers share one instance, so that one bound
 * holds for their memory.
 */
export class UnwrittenResults {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  readonly #onRoom = new Set<() => void>();
  #count = 0;
  #bytes = 0;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nothing more may be claimed, since there is no memory left to keep its results. */
  get isFull(): boolean {
    return this.#bytes >= UNWRITTEN_RESULTS_BYTES_MAX;
  }

  /** `run` is called whenever this stops being full. */
  onRoom(run: () => void): void {
    this.#onRoom.add(run);
  }

  /** Resolves when the result is written, when another write came first, or when the process ends. Never rejects. */
  async write<Done>({ bytes, write, onKept }: KnownResult<Done>): Promise<Done | "never"> {
    const heldBytes = bytes + UNWRITTEN_RESULT_BYTES;
    this.#count += 1;
    this.#bytes += heldBytes;
    let isRepeat = false;
    try {
      for (let pauseMs = RESULT_RETRY_MS; ; pauseMs = Math.min(RESULT_RETRY_MS_MAX, 2 * pauseMs)) {
        const done = await write(isRepeat).catch((error: unknown): typeof FAILED => {
          if (!isRepeat) onKept(error);
          return FAILED;
        });
        if (done !== FAILED) return done;
        isRepeat = true;
        if (!(await this.#pause(pauseMs))) return "never";
      }
    } finally {
      this.#remove(heldBytes);
    }
  }

  /** Gives up all pending writes, because the process ends. */
  close(): void {
    this.#isClosed = true;
    for (const giveUp of this.#waiting) giveUp();
  }

  /** Returns false if the process ends. */
  async #pause(pauseMs: number): Promise<boolean> {
    if (this.#isClosed) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(pauseMs, resolve);
    this.#waiting.add(resolve);
    await promise;
    cancel();
    this.#waiting.delete(resolve);
    return !this.#isClosed;
  }

  #remove(bytes: number): void {
    const wasFull = this.isFull;
    this.#count -= 1;
    this.#bytes -= bytes;
    if (wasFull && !this.isFull) for (const run of this.#onRoom) run();
  }
}

const FAILED = Symbol("failed");

/** A known result and how to write it. If `write` rejects, the result may or may not be stored. */
interface KnownResult<Done> {
  /** Memory held until it is written. */
  readonly bytes: number;
  /** `isRepeat`: an earlier call failed, but may have been committed all the same. */
  readonly write: (isRepeat: boolean) => Promise<Done>;
  /** Called when the first write failed. */
  readonly onKept: (error: unknown) => void;
}
