import { DRAIN_WRITE_MS } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";

/** What the scheduler gives an attempt. */
export interface Run {
  /** Aborts when the attempt must end early. */
  readonly stop: AbortSignal;
  /** Call it once, as soon as the target is done with the request. The result may still have to be written. */
  readonly releaseSlot: () => void;
}

export type Attempt<Row> = (row: Row, run: Run) => Promise<void>;

interface RunEvents {
  /** Called exactly once, as soon as the target is done with the request. */
  readonly releaseSlot: () => void;
  readonly onError: (error: unknown, id: string) => void;
  /** Called when the result is recorded. */
  readonly onEnd: () => void;
}

/** Everything a scheduler has started: attempts by row, and other work that a stop must wait for. */
export class RunsInFlight<Row extends { readonly id: string }> {
  readonly #clock: Clock;
  readonly #attempt: Attempt<Row>;
  /** Attempts per row. The next attempt may start while the result of the last one is still being written. */
  readonly #inFlight = new Map<string, number>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #interrupt = new AbortController();

  constructor(clock: Clock, attempt: Attempt<Row>) {
    this.#clock = clock;
    this.#attempt = attempt;
  }

  /** Rows with an attempt whose result is not recorded yet. */
  get count(): number {
    return this.#inFlight.size;
  }

  has(id: string): boolean {
    return this.#inFlight.has(id);
  }

  start(row: Row, { releaseSlot, onError, onEnd }: RunEvents): void {
    let isReleased = false;
    const releaseOnce = () => {
      if (isReleased) return;
      isReleased = true;
      releaseSlot();
    };
    this.#inFlight.set(row.id, (this.#inFlight.get(row.id) ?? 0) + 1);
    const run = async () => {
      try {
        await this.#attempt(row, { stop: this.#interrupt.signal, releaseSlot: releaseOnce });
      } catch (error) {
        onError(error, row.id);
      } finally {
        const left = (this.#inFlight.get(row.id) ?? 1) - 1;
        if (left === 0) this.#inFlight.delete(row.id);
        else this.#inFlight.set(row.id, left);
        onEnd();
        releaseOnce();
      }
    };
    this.keep(run());
  }

  /** Makes `drain` wait for this too. It must not reject. */
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
