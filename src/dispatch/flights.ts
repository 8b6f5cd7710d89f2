import { DRAIN_WRITE_MS } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";

/** How the loop and an attempt of it speak to each other. */
export interface Run {
  /** Ends the attempt early, as interrupted. */
  readonly stop: AbortSignal;
  /** Called once, when nothing is with the target any more; the end may still have to be written down. */
  readonly releaseSlot: () => void;
}

/** One attempt of a row that was claimed for it. */
export type Attempt<Row> = (row: Row, flight: Run) => Promise<void>;

/** Everything that the loop has set going: attempts by their row, and whatever else a stop must wait for. */
export class RunsInFlight<Row extends { readonly id: string }> {
  readonly #clock: Clock;
  readonly #attempt: Attempt<Row>;
  /** How many attempts of each row: one whose end is still to be written may be followed by the next. */
  readonly #inFlight = new Map<string, number>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #interrupt = new AbortController();

  constructor(clock: Clock, attempt: Attempt<Row>) {
    this.#clock = clock;
    this.#attempt = attempt;
  }

  /** Attempts that are not recorded yet. */
  get count(): number {
    return this.#inFlight.size;
  }

  has(id: string): boolean {
    return this.#inFlight.has(id);
  }

  /** Lets an attempt run; `landed` is called once, as soon as nothing is with the target any more. */
  start(row: Row, releaseSlot: () => void, onError: (error: unknown, id: string) => void): void {
    let isLanded = false;
    const landOnce = () => {
      if (isLanded) return;
      isLanded = true;
      releaseSlot();
    };
    this.#inFlight.set(row.id, (this.#inFlight.get(row.id) ?? 0) + 1);
    const run = async () => {
      try {
        await this.#attempt(row, { stop: this.#interrupt.signal, releaseSlot: landOnce });
      } catch (error) {
        onError(error, row.id);
      } finally {
        const left = (this.#inFlight.get(row.id) ?? 1) - 1;
        if (left === 0) this.#inFlight.delete(row.id);
        else this.#inFlight.set(row.id, left);
        landOnce();
      }
    };
    this.keep(run());
  }

  /** Has `drain` wait for this too. It must not reject. */
  keep(work: Promise<unknown>): void {
    const kept = work.finally(() => this.#work.delete(kept));
    this.#work.add(kept);
  }

  /**
   * Resolves when all of it has ended. What is in flight after `limitMs` is interrupted, and has `DRAIN_WRITE_MS` more to be
   * written down; then this resolves in any case.
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
