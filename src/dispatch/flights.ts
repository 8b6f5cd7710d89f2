import type { Action } from "../domain/action.ts";
import type { Clock } from "../ports/clock.ts";
import type { Attempt } from "./attempt.ts";

/** Everything that the loop has set going: attempts by their action, and whatever else a stop must wait for. */
export class Flights {
  readonly #clock: Clock;
  readonly #attempt: Attempt;
  readonly #inFlight = new Set<string>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #interrupt = new AbortController();

  constructor(clock: Clock, attempt: Attempt) {
    this.#clock = clock;
    this.#attempt = attempt;
  }

  /** Attempts that are not recorded yet. */
  get count(): number {
    return this.#inFlight.size;
  }

  has(actionId: string): boolean {
    return this.#inFlight.has(actionId);
  }

  /** Lets an attempt run; `landed` is called once, as soon as nothing is with the target any more. */
  start(action: Action, landed: () => void, onError: (error: unknown) => void): void {
    let isLanded = false;
    const landOnce = () => {
      if (isLanded) return;
      isLanded = true;
      landed();
    };
    this.#inFlight.add(action.id);
    const attempt = this.#attempt(action, { stop: this.#interrupt.signal, landed: landOnce });
    this.keep(
      attempt.catch(onError).finally(() => {
        this.#inFlight.delete(action.id);
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
