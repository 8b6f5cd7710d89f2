import { fullGC, heapSize } from "bun:jsc";
import type { Clock } from "../runtime/clock.ts";

const SAMPLE_EVERY_MS = 100;

/** How late the event loop rings: everything that holds it shows up here, whatever the cause. */
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

  /** Milliseconds of the longest delay since the last call, a delay that still lasts included; 0 before `start`. */
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
 * Collects texts of a megabyte that nobody needs any more: the collector lets some fifty of them lie before it begins by
 * itself. A full collection of a larger heap would hold up the event loop, so that there it is left to the collector.
 */
export function collectLargeTexts(heapBytesMax: number): void {
  if (heapSize() <= heapBytesMax) fullGC();
}

/** Bytes of memory that the process holds (resident set). */
export function residentBytes(): number {
  return process.memoryUsage.rss();
}

/**
 * Reads once for all who ask within so many milliseconds, and for all who ask while it reads. A failure is theirs too, so
 * that a source that fails slowly is not asked the more often for it.
 */
export function freshFor<Value>(
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
