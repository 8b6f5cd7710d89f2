import { RATE_BURST_MS } from "../core/limits.ts";

/** A second has so many milliseconds. */
const SECOND_MS = 1_000;

/** Sums of parts of a token are exact up to this. */
const TOKEN = 1 - 1e-9;

/**
 * A token bucket: each call that begins takes a token. In no second do more calls begin than the rate says (at least one):
 * the few tokens that a full bucket holds count in the rate. Times are of the monotonic clock, so that no jump of the wall
 * clock changes the rate. It starts full.
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

  /** Goes on with the tokens that are left, so that a change of the rate begins no new burst. */
  setRate(perSecond: number, nowMs: number): void {
    this.#fill(nowMs);
    this.#most = Math.max(1, Math.floor((perSecond * RATE_BURST_MS) / SECOND_MS));
    // Of the tokens of a second all but one may be taken at its start.
    this.#perMs = (perSecond - (this.#most - 1)) / SECOND_MS;
    this.#tokens = Math.min(this.#tokens, this.#most);
  }

  has(nowMs: number): boolean {
    this.#fill(nowMs);
    return this.#tokens >= TOKEN;
  }

  /** Whether a new bucket would be the same. */
  isFull(nowMs: number): boolean {
    this.#fill(nowMs);
    return this.#tokens >= this.#most;
  }

  /** When it has a token again: now, or later. */
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
