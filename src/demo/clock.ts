import type { Clock } from "../core/clock.ts";

interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
  cancel: () => void;
}

/**
 * A clock that begins in the past and can be moved forward until it shows the machine's time. Timers that are due during a
 * move ring at its end, as on a machine that was suspended.
 */
export class TravelClock implements Clock {
  readonly #machine: Clock;
  #behindMs: number;
  #movedMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(machine: Clock, behindMs: number) {
    this.#machine = machine;
    this.#behindMs = behindMs;
  }

  now(): Date {
    return new Date(this.#machine.now().getTime() - this.#behindMs);
  }

  monotonicMs(): number {
    return this.#machine.monotonicMs() + this.#movedMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer: Timer = { dueMs: this.monotonicMs() + delayMs, run, cancel: () => {} };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => {
      this.#timers.delete(timer);
      timer.cancel();
    };
  }

  /** Moves forward to a time, but never past the machine's. */
  moveTo(at: Date): void {
    const byMs = Math.min(this.#behindMs, Math.max(0, at.getTime() - this.now().getTime()));
    this.#behindMs -= byMs;
    this.#movedMs += byMs;
    const nowMs = this.monotonicMs();
    const due = [...this.#timers].filter(({ dueMs }) => dueMs <= nowMs).toSorted((a, b) => a.dueMs - b.dueMs);
    for (const timer of this.#timers) {
      timer.cancel();
      if (timer.dueMs > nowMs) this.#arm(timer);
    }
    // A timer that rings may cancel another.
    for (const timer of due) if (this.#timers.delete(timer)) timer.run();
  }

  #arm(timer: Timer): void {
    const delayMs = Math.max(0, timer.dueMs - this.monotonicMs());
    timer.cancel = this.#machine.after(delayMs, () => {
      this.#timers.delete(timer);
      timer.run();
    });
  }
}
