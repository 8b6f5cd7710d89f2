import { RATE_BURST_MS } from "../core/limits.ts";

const SECOND_MS = 1_000;

/** A whole token, less the rounding error of adding up its fractions. */
const TOKEN = 1 - 1e-9;

/**
 * A token bucket that starts full: each call takes a token as it begins. No second sees more calls begin than the rate (at
 * least one), since the few tokens of a full bucket count towards the rate. Times are of the monotonic clock, so that no jump
 * of the wall clock changes the rate.
 */
export class TokenBucket {
  #perMs = 0;
  #most = 1;
  #tokens = 1;
  #atMs: number;

  constructor(perSecond: number, nowMs: number) {
    this.#atMs = nowMs;
    this.setRate(perSecond, nowMs);
    this.#tokens = this.#most;
  }

  /** Keeps the tokens that are left, so that a change of the rate allows no new burst. */
  setRate(perSecond: number, nowMs: number): void {
    this.#fill(nowMs);
    this.#most = Math.max(1, Math.floor((perSecond * RATE_BURST_MS) / SECOND_MS));
    // The tokens of a full bucket but one may be taken at the start of a second, so refill that much slower.
    this.#perMs = (perSecond - (this.#most - 1)) / SECOND_MS;
  }

  has(nowMs: number): boolean {
    this.#fill(nowMs);
    return this.#tokens >= TOKEN;
  }

  /** Whether it is full, like a new bucket. */
  isFull(nowMs: number): boolean {
    this.#fill(nowMs);
    return this.#tokens >= this.#most;
  }

  /** When it has a token: now, or later. */
  nextMs(nowMs: number): number {
    this.#fill(nowMs);
    return this.#atMs + Math.max(0, 1 - this.#tokens) / this.#perMs;
  }

  take(): void {
    this.#tokens -= 1;
  }

  /** For calls that did not begin. */
  giveBack(count: number): void {
    this.#tokens = Math.min(this.#most, this.#tokens + count);
  }

  #fill(nowMs: number): void {
    this.#tokens = Math.min(this.#most, this.#tokens + Math.max(0, nowMs - this.#atMs) * this.#perMs);
    this.#atMs = Math.max(this.#atMs, nowMs);
  }
}

/**
 * Removes idle entries from a map to which one is about to be added. Looks only at the two oldest entries, and those that stay become
 * the newest, so that the map has about twice as many as are in use, and each new entry costs the same however many there are.
 */
export function forgetIdle<Value>(map: Map<string, Value>, isIdle: (value: Value, name: string) => boolean): void {
  for (const [name, value] of map.entries().take(2)) {
    map.delete(name);
    if (!isIdle(value, name)) map.set(name, value);
  }
}
