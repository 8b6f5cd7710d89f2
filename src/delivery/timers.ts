import type { Clock } from "../runtime/clock.ts";
import { CLOCK_TOLERANCE_MS, RESCHEDULE_ROWS_MAX } from "../config/limits.ts";
import type { Log } from "../observability/log.ts";
import type { Store, Queue } from "../../db/store.ts";

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

interface Alarm {
  readonly atMs: number;
  readonly name: string;
}

/**
 * Names by the time at which they ring, earliest first: a binary heap, so that one timer serves however many sleep. An
 * alarm that is no longer wanted is not searched for; whoever it wakes looks and finds nothing.
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

  /** Takes out every name whose time has come. */
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

  /** Beyond the end nothing ever rings. */
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

export interface PauseDeps {
  /** What rests, in the log. */
  readonly name: string;
  readonly store: Pick<Store, "probe">;
  readonly log: Log;
  /** Rings once, unless nobody wants it any more. */
  readonly later: (delayMs: number, run: () => void) => void;
  /** Has whoever drains wait for this too. */
  readonly keep: (work: Promise<unknown>) => void;
  /** Goes on where it stopped. Where that rejects it rests on. */
  readonly resume: () => Promise<void>;
  /** Hears of what went wrong in `resume`. */
  readonly onError: (error: unknown) => void;
}

const PROBE_EVERY_MS = 1_000;

/** What can't be recorded is not sent: while the store can't be written nothing is claimed, and once a second it is asked. */
export class Pause {
  readonly #deps: PauseDeps;
  #isOn = false;

  constructor(deps: PauseDeps) {
    this.#deps = deps;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Begins to rest; `reason` is for the log. */
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

/** Brings everything that a clock that was set back has put off to its time again, for as long as somebody wants it. */
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
