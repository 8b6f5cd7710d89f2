import type { Clock } from "../ports/clock.ts";

/** Timers by name, one for each: setting a name again replaces what it was set to. */
export class Timers<Name extends string> {
  readonly #clock: Clock;
  readonly #cancels = new Map<Name, () => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set(name: Name, delayMs: number, run: () => void): void {
    this.#cancels.get(name)?.();
    this.#cancels.set(name, this.#clock.after(delayMs, run));
  }

  clear(): void {
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
  }
}
