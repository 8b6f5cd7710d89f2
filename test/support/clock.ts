import type { Clock } from "../../src/core/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** A clock whose hands a test moves. Timers ring in order, each at its own time. */
export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(start = new Date("2026-01-01T00:00:00.000Z")) {
    this.#wallMs = start.getTime();
  }

  now(): Date {
    return new Date(this.#wallMs);
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#monotonicMs + delayMs, run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Timers that are set: none may be left when everything has stopped. */
  get timers(): number {
    return this.#timers.size;
  }

  /** When the next timer rings, by the monotonic clock; null: none is set. */
  get nextMs(): number | null {
    return this.#next?.atMs ?? null;
  }

  /** Of those that ring at one time, the one that was set first. */
  get #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (next === undefined || timer.atMs < next.atMs) next = timer;
    return next;
  }

  /** Lets time pass. What a timer sets in motion sets its own timers from its own time. */
  advance(byMs: number): void {
    const endMs = this.#monotonicMs + byMs;
    while (true) {
      const next = this.#next;
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.delete(next);
      this.#move(Math.max(0, next.atMs - this.#monotonicMs));
      next.run();
    }
    this.#move(endMs - this.#monotonicMs);
  }

  /** The process stands still: both clocks go on without it, and what should have rung meanwhile rings at the end. */
  stall(byMs: number): void {
    this.#move(byMs);
    this.advance(0);
  }

  /** The wall clock is set to another time; the monotonic clock and the timers know nothing of it. */
  jump(byMs: number): void {
    this.#wallMs += byMs;
  }

  #move(byMs: number): void {
    this.#wallMs += byMs;
    this.#monotonicMs += byMs;
  }
}
