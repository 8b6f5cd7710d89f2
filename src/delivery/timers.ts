import type { Clock } from "../runtime/clock.ts";
import { CLOCK_TOLERANCE_MS, RESCHEDULE_ROWS_MAX } from "../config/limits.ts";
import type { Log } from "../observability/log.ts";
import type { Store, Queue } from "../../db/store.ts";

/** Named timers: setting a name again replaces its timer. */
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

interface Alarm {
  readonly atMs: number;
  readonly name: string;
}

/**
 * Names by due time, earliest first: a binary heap, so that one timer serves any number of lanes. Entries are never
 * removed early; the caller checks whether one still applies.
 */
export class Alarms {
  readonly #heap: Alarm[] = [];

  /** The earliest time, in milliseconds; null when nothing is set. */
  get earliestMs(): number | null {
    return this.#heap[0]?.atMs ?? null;
  }

  set(name: string, atMs: number): void {
    const heap = this.#heap;
    let at = heap.push({ name, atMs }) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#timeAt(parent) <= this.#timeAt(at)) break;
      this.#swap(parent, at);
      at = parent;
    }
  }

  /** Removes and returns every name whose time has come. */
  run(nowMs: number): readonly string[] {
    const names: string[] = [];
    while ((this.earliestMs ?? Number.POSITIVE_INFINITY) <= nowMs) names.push(this.#takeFirst());
    return names;
  }

  #takeFirst(): string {
    const heap = this.#heap;
    const name = heap[0]?.name ?? "";
    const last = heap.pop();
    if (heap.length > 0 && last !== undefined) heap[0] = last;
    let at = 0;
    while (true) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const least = this.#timeAt(right) < this.#timeAt(left) ? right : left;
      if (this.#timeAt(at) <= this.#timeAt(least)) return name;
      this.#swap(at, least);
      at = least;
    }
  }

  /** Infinity beyond the end of the heap. */
  #timeAt(at: number): number {
    return this.#heap[at]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
  }
}

interface WatchDeps {
  /** The loop's name, for the log. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Detects that the wall clock was set back, by the monotonic clock. Due times are wall-clock times, since they outlive
 * the process; after a set-back everything would wait longer.
 */
export class ClockWatch {
  readonly #deps: WatchDeps;
  /** Wall clock minus monotonic clock. */
  #aheadMs: number;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    this.#aheadMs = this.#measure();
  }

  /**
   * Milliseconds by which the wall clock was set back since the last call; 0 when it was not, or by less than the
   * tolerance. A clock set forward or a suspended machine only makes rows due earlier, which needs nothing.
   */
  setBackMs(): number {
    const aheadMs = this.#measure();
    const setBackMs = Math.round(this.#aheadMs - aheadMs);
    // Not forgotten: small steps add up.
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

export interface PauseDeps {
  /** The loop's name, for the log. */
  readonly name: string;
  readonly store: Pick<Store, "probe">;
  readonly log: Log;
  /** Runs `run` once after the delay, unless the loop has stopped. */
  readonly later: (delayMs: number, run: () => void) => void;
  /** Makes `drain` wait for this too. */
  readonly keep: (work: Promise<unknown>) => void;
  /** Resumes the loop. If it rejects, the pause goes on. */
  readonly resume: () => Promise<void>;
  /** Called with an error of `resume`. */
  readonly onError: (error: unknown) => void;
}

const PROBE_EVERY_MS = 1_000;

/**
 * While the store can't be written nothing is claimed, since its result could not be recorded. The store is probed once
 * a second.
 */
export class Pause {
  readonly #deps: PauseDeps;
  #isOn = false;

  constructor(deps: PauseDeps) {
    this.#deps = deps;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Begins the pause; `reason` is for the log. */
  begin(reason: string): void {
    if (this.#isOn) return;
    this.#isOn = true;
    const { log, name } = this.#deps;
    this.#probeLater();
    log.error("dispatch.paused", { of: name, reason });
  }

  #probeLater(): void {
    const { later, keep } = this.#deps;
    later(PROBE_EVERY_MS, () => keep(this.#probe()));
  }

  async #probe(): Promise<void> {
    const { store, log, name, resume, onError } = this.#deps;
    try {
      await store.probe();
    } catch {
      return this.#probeLater();
    }
    this.#isOn = false;
    try {
      log.info("dispatch.resumed", { of: name });
      await resume();
    } catch (error) {
      onError(error);
      this.begin("it could not go on");
    }
  }
}

/** Moves the due times of all rows that were scheduled before the clock was set back by `byMs`, while `isWanted`. */
export async function reschedule(
  queue: Pick<Queue<unknown>, "reschedule">,
  clock: Clock,
  byMs: number,
  isWanted: () => boolean,
): Promise<void> {
  while (isWanted()) {
    const count = await queue.reschedule({ now: clock.now(), byMs }, RESCHEDULE_ROWS_MAX);
    if (count < RESCHEDULE_ROWS_MAX) return;
  }
}
