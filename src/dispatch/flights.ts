import type { Clock } from "../ports/clock.ts";

/** How the loop and an attempt of it speak to each other. */
export interface Flight {
  /** Ends the attempt early, as interrupted. */
  readonly stop: AbortSignal;
  /** Called once, when nothing is with the target any more; the end may still have to be written down. */
  readonly landed: () => void;
}

/** One attempt of a row that was claimed for it. */
export type Attempt<Row> = (row: Row, flight: Flight) => Promise<void>;

/** Everything that the loop has set going: attempts by their row, and whatever else a stop must wait for. */
export class Flights<Row extends { readonly id: string }> {
  readonly #clock: Clock;
  readonly #attempt: Attempt<Row>;
  readonly #inFlight = new Set<string>();
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
  start(row: Row, landed: () => void, onError: (error: unknown) => void): void {
    let isLanded = false;
    const landOnce = () => {
      if (isLanded) return;
      isLanded = true;
      landed();
    };
    this.#inFlight.add(row.id);
    const attempt = this.#attempt(row, { stop: this.#interrupt.signal, landed: landOnce });
    this.keep(
      attempt.catch(onError).finally(() => {
        this.#inFlight.delete(row.id);
        landOnce();
      }),
    );
  }

  /** Has `drain` wait for this too. It must not reject. */
  keep(work: Promise<unknown>): void {
    const kept = work.finally(() => this.#work.delete(kept));
    this.#work.add(kept);
  }

  /** Resolves when all of it has ended; what is in flight after `limitMs` is interrupted. */
  async drain(limitMs: number): Promise<void> {
    const cancel = this.#clock.after(limitMs, () => this.#interrupt.abort());
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
    cancel();
  }
}
