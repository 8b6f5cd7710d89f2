import type { Claimed } from "../domain/dispatch.ts";
import { CLAIM_ROWS_MAX, LANE_READY_MAX, LEASE_GRACE_MS, RESCUE_EVERY_MS, SLEEP_MS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type DueRow, type LaneName, type Queue, type Store, StoreUnavailable } from "../ports/store.ts";
import { ClockWatch } from "./clock-watch.ts";
import { type Attempt, Flights } from "./flights.ts";
import { type Candidate, type Lane, Lanes, type TakenSlot } from "./lanes.ts";
import { Pause } from "./pause.ts";
import { reschedule } from "./reschedule.ts";
import type { Orphaned } from "./rescue.ts";
import { type SlotLimits, Slots } from "./slots.ts";
import { Timers } from "./timers.ts";

export interface LoopDeps<Row extends { readonly id: string }> {
  /** What it delivers, in the log. */
  readonly name: "actions" | "callbacks" | "mails";
  readonly store: Pick<Store, "probe" | "isAlone">;
  readonly queue: Queue<Row>;
  readonly clock: Clock;
  readonly log: Log;
  readonly attempt: Attempt<Row>;
  readonly rescue: (orphaned: Orphaned) => Promise<number>;
  readonly limits: SlotLimits;
  readonly attemptTimeoutMs: number;
}

type TimerName = "alarm" | "sweep" | "rescue" | "probe";
/** Lanes that one step of the sweep reads, and how long it rests between two steps of a long one. */
const [SWEEP_LANES, SWEEP_REST_MS] = [128, 5];

/**
 * The engine's wheel, one for each kind of row: hears of pending rows, takes those that are due within its slots, claims
 * them, and lets each be attempted. One timer sleeps to the earliest that is not yet due; a sweep finds whatever memory
 * missed.
 *
 * new -> `start` -> running <-> paused (the store is away: nothing is claimed that could not be recorded) -> `drain`.
 */
export class Loop<Row extends { readonly id: string }> {
  readonly #deps: LoopDeps<Row>;
  readonly #slots: Slots;
  readonly #lanes: Lanes;
  readonly #flights: Flights<Row>;
  readonly #timers: Timers<TimerName>;
  readonly #watch: ClockWatch;
  readonly #pause: Pause;
  #alarmAtMs = Number.POSITIVE_INFINITY;
  #isRunning = false;
  /** What a dead process left behind has been ended. */
  #hasBegun = false;

  constructor(deps: LoopDeps<Row>) {
    this.#deps = deps;
    this.#slots = new Slots(deps.limits);
    this.#lanes = new Lanes(this.#slots);
    this.#flights = new Flights(deps.clock, deps.attempt);
    this.#timers = new Timers(deps.clock);
    this.#watch = new ClockWatch(deps);
    this.#pause = new Pause({
      ...deps,
      later: (delayMs, ring) => this.#ring("probe", delayMs, ring),
      keep: (work) => this.#flights.keep(work),
      resume: () => this.#begin().catch((error: unknown) => this.#stumble(error)),
    });
  }

  /** Attempts in flight, for the metrics. */
  get inFlight(): number {
    return this.#flights.count;
  }

  /**
   * Ends what a dead process left active, then begins to claim. Resolves when the rescue is done, or put off until the
   * store can be written.
   */
  async start(): Promise<void> {
    this.#isRunning = true;
    const begun = this.#deps.store.probe().then(() => this.#begin());
    await begun.catch((error: unknown) => {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#stumble(error);
    });
    this.#rescueLater();
  }

  /**
   * Stops claiming and lets what is in flight end. What has not ended after `limitMs` is interrupted: recorded as such,
   * and sent again only as its kind allows. Resolves when everything is recorded.
   */
  async drain(limitMs: number): Promise<void> {
    this.#isRunning = false;
    this.#timers.clear();
    await this.#flights.drain(limitMs);
  }

  /** Hears of a pending row. */
  add(name: LaneName, due: DueRow): void {
    this.#lanes.add(name, due, this.#nowMs());
    this.#turn();
  }

  /** Hears that a lane holds a row that is due now. */
  hint(name: LaneName): void {
    const nowMs = this.#nowMs();
    this.#lanes.hint(name, nowMs, nowMs);
    this.#turn();
  }

  /** Takes a slot for a row that the store does not have yet; null when others of its lane are before it. */
  reserve(name: LaneName): TakenSlot | null {
    // Not before it has begun: the rescue of a start takes whatever is active for a dead process's.
    return this.#isRunning && this.#hasBegun && !this.#pause.isOn ? this.#lanes.reserve(name) : null;
  }

  /** Gives a slot back. */
  release(slot: TakenSlot): void {
    this.#lanes.release(slot);
    this.#turn();
  }

  /** Lets a claimed row be attempted. The slot is the target's: the commit after the answer holds up no other call. */
  fly(row: Row, slot: TakenSlot): void {
    const landed = () => this.release(slot);
    this.#flights.start(row, landed, (error) => this.#stumble(error));
  }

  /** Has `drain` wait for this too. It must not reject. */
  keep(work: Promise<unknown>): void {
    this.#flights.keep(work);
  }

  /** A claim from now on. */
  claimNow(): Claimed {
    const now = this.#deps.clock.now();
    return { now, leaseUntil: new Date(now.getTime() + this.#deps.attemptTimeoutMs + LEASE_GRACE_MS) };
  }

  /** One turn of the wheel: wake, load, take, claim; then sleep to the next. */
  #turn(): void {
    if (!this.#isRunning || !this.#hasBegun || this.#pause.isOn) return;
    this.#heedClock();
    const nowMs = this.#nowMs();
    this.#lanes.wake(nowMs);
    const candidates: Candidate[] = [];
    while (candidates.length < CLAIM_ROWS_MAX) {
      const candidate = this.#lanes.next();
      if (candidate === null) break;
      candidates.push(candidate);
    }
    if (candidates.length > 0) this.#flights.keep(this.#claim(candidates));
    for (const lane of this.#lanes.takeHungry(this.#slots.free)) this.#flights.keep(this.#load(lane));
    this.#setAlarm();
  }

  async #claim(candidates: readonly Candidate[]): Promise<void> {
    // A hint may have come twice: the slots of what is not won, and of the second, are given back.
    const byId = new Map(candidates.map((candidate) => [candidate.due.id, candidate]));
    const leftOver = new Set(candidates);
    const due = Array.from(byId.values(), (candidate) => candidate.due);
    const claim = this.#deps.queue.claim(due, this.claimNow());
    const won = await claim.catch((error: unknown) => this.#stumble(error));
    for (const row of won ?? []) {
      const candidate = byId.get(row.id);
      if (candidate !== undefined && leftOver.delete(candidate)) this.fly(row, candidate);
    }
    for (const candidate of leftOver) this.#lanes.release(candidate);
    // What was not won has made room for others, and more may be due than one claim takes.
    if (won !== undefined) this.#turn();
  }

  async #load(lane: Lane): Promise<void> {
    try {
      const found = await this.#deps.queue.pending(lane, LANE_READY_MAX);
      this.#lanes.loaded(lane, found, LANE_READY_MAX, this.#nowMs());
      this.#turn();
    } catch (error) {
      this.#lanes.loaded(lane, [], LANE_READY_MAX, this.#nowMs());
      this.#stumble(error);
    }
  }

  /** Walks over the lanes of the store, some at a time, and tells memory of each. */
  async #sweep(after: LaneName | null): Promise<void> {
    let next: LaneName | null = null;
    try {
      const heads = await this.#deps.queue.lanes(after, SWEEP_LANES);
      const nowMs = this.#nowMs();
      for (const head of heads) this.#lanes.hint(head, head.dueAt.getTime(), nowMs);
      next = heads.length === SWEEP_LANES ? (heads.at(-1) ?? null) : null;
      this.#turn();
    } catch (error) {
      this.#stumble(error);
    }
    this.#ring("sweep", next === null ? SLEEP_MS_MAX : SWEEP_REST_MS, () => this.#flights.keep(this.#sweep(next)));
  }

  /** At the start, and again whenever the store is back. */
  async #begin(): Promise<void> {
    const { rescue, store } = this.#deps;
    if (!this.#hasBegun) await rescue({ everything: store.isAlone, isOurs: () => false });
    this.#hasBegun = true;
    this.#flights.keep(this.#reschedule(0));
  }

  #heedClock(): void {
    const byMs = this.#watch.setBackMs();
    if (byMs > 0) this.#flights.keep(this.#reschedule(byMs));
  }

  /** Looks at everything anew, after what a clock that was set back has put off is due at its time again. */
  async #reschedule(byMs: number): Promise<void> {
    try {
      await reschedule(this.#deps.queue, this.#deps.clock, byMs, () => this.#isRunning);
    } catch (error) {
      return this.#stumble(error);
    }
    await this.#sweep(null);
  }

  #rescueLater(): void {
    this.#ring("rescue", RESCUE_EVERY_MS, () => {
      this.#heedClock();
      const pass = this.#deps.rescue({ everything: false, isOurs: (id) => this.#flights.has(id) });
      this.#flights.keep(pass.catch((error: unknown) => this.#stumble(error)).finally(() => this.#rescueLater()));
    });
  }

  #stumble(error: unknown): void {
    if (this.#isRunning || !(error instanceof StoreUnavailable)) this.#pause.stumble(error);
  }

  #setAlarm(): void {
    const atMs = this.#lanes.earliestMs;
    if (atMs === null || atMs === this.#alarmAtMs) return;
    this.#alarmAtMs = atMs;
    const delayMs = Math.min(SLEEP_MS_MAX, Math.max(1, atMs - this.#nowMs()));
    this.#ring("alarm", delayMs, () => {
      this.#alarmAtMs = Number.POSITIVE_INFINITY;
      this.#turn();
    });
  }

  #ring(name: TimerName, delayMs: number, ring: () => void): void {
    if (this.#isRunning) this.#timers.set(name, delayMs, ring);
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime();
  }
}
