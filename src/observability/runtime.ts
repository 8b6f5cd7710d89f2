import { heapSize } from "bun:jsc";
import type { Clock } from "../core/clock.ts";

const SAMPLE_EVERY_MS = 100;

/** Measures how late the event loop runs timers, which shows anything that blocks it. */
export class LoopLag {
  readonly #clock: Clock;
  #maxMs = 0;
  #dueMs = 0;
  #cancel: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Samples every 100 ms until `stop`. */
  start(): void {
    if (this.#cancel === null) this.#wait();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  /** Longest delay in milliseconds since the last call, including one that still lasts; 0 before `start`. */
  takeMaxMs(): number {
    if (this.#cancel === null) return 0;
    const maxMs = Math.max(this.#maxMs, this.#latenessMs());
    this.#maxMs = 0;
    return maxMs;
  }

  #wait(): void {
    this.#dueMs = this.#clock.monotonicMs() + SAMPLE_EVERY_MS;
    this.#cancel = this.#clock.after(SAMPLE_EVERY_MS, () => {
      this.#maxMs = Math.max(this.#maxMs, this.#latenessMs());
      this.#wait();
    });
  }

  #latenessMs(): number {
    return Math.max(0, this.#clock.monotonicMs() - this.#dueMs);
  }
}

/**
 * Frees large texts, of which the garbage collector lets about fifty megabytes pile up. It collects concurrently, since a full
 * collection would stop the event loop for 30 ms. In a larger heap, the collector decides on its own when to begin.
 */
export function collectLargeTexts(heapBytesMax: number): void {
  if (heapSize() <= heapBytesMax) Bun.gc(false);
}

/**
 * Caches a read for `freshMs`, and shares one in progress. Failures are cached too, so that a source that fails slowly
 * is not read more often.
 */
export function cached<Value>(
  freshMs: number,
  monotonicMs: () => number,
  read: () => Promise<Value>,
): () => Promise<Value> {
  let last: { readonly value: Promise<Value>; endedMs: number } | null = null;
  return () => {
    if (last !== null && monotonicMs() - last.endedMs < freshMs) return last.value;
    const reading = { value: read(), endedMs: Number.POSITIVE_INFINITY };
    const ended = () => void (reading.endedMs = monotonicMs());
    reading.value.then(ended, ended);
    last = reading;
    return reading.value;
  };
}
