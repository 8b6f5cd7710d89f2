import { CLOCK_TOLERANCE_MS } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";

export interface WatchDeps {
  /** Whose watch it is, in the log. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Holds the wall clock against the monotonic one. Due times are the wall's, since they outlive the process; where it is
 * set back, whatever sleeps would sleep longer by as much.
 */
export class ClockWatch {
  readonly #deps: WatchDeps;
  /** How far the wall is ahead of the monotonic clock. */
  #aheadMs: number;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    this.#aheadMs = this.#measure();
  }

  /**
   * How far the wall clock was set back since the last look, in milliseconds; 0 when it was not, or by less than the
   * tolerance. What it was set forward, or a suspended machine has slept, is due the sooner and needs no more.
   */
  setBackMs(): number {
    const aheadMs = this.#measure();
    const setBackMs = Math.round(this.#aheadMs - aheadMs);
    // Small steps add up to a large one: they are remembered until they do.
    if (setBackMs > 0 && setBackMs <= CLOCK_TOLERANCE_MS) return 0;
    this.#aheadMs = aheadMs;
    if (setBackMs <= 0) return 0;
    this.#deps.log.warn("clock.set_back", { of: this.#deps.name, by_ms: setBackMs });
    return setBackMs;
  }

  #measure(): number {
    const { clock } = this.#deps;
    return clock.now().getTime() - clock.monotonicMs();
  }
}
