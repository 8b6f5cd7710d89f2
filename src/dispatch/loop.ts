import type { Action } from "../domain/action.ts";
import { CLAIM_ROWS_MAX, LANE_READY_MAX, LEASE_GRACE_MS, RESCUE_EVERY_MS, SLEEP_MS_MAX } from "../domain/limits.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type ActionStore, type LaneName, type Store, StoreUnavailable } from "../ports/store.ts";
import type { Attempt } from "./attempt.ts";
import { type Candidate, type Lane, Lanes } from "./lanes.ts";
import type { Orphaned } from "./rescue.ts";
import { type SlotLimits, Slots } from "./slots.ts";

export interface LoopDeps {
  readonly store: Pick<Store, "actions" | "probe" | "isAlone">;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly log: Log;
  readonly attempt: Attempt;
  readonly rescue: (orphaned: Orphaned) => Promise<number>;
  readonly limits: SlotLimits;
  readonly attemptTimeoutMs: number;
}

/** Lanes that one step of the sweep reads, and how long it rests between two steps of a long one. */
const SWEEP_LANES = 128;
const SWEEP_REST_MS = 5;
const PROBE_EVERY_MS = 1_000;

/**
 * The engine's wheel: hears of pending actions, takes those that are due within the slots, claims them, and lets each be
 * attempted. One timer sleeps to the earliest that is not yet due; a sweep finds whatever memory missed.
 *
 * new -> `start` -> running <-> paused (the store is away: nothing is claimed that could not be recorded) -> `drain`.
 */
export class Loop {
  readonly #deps: LoopDeps;
  readonly #actions: ActionStore;
  readonly #slots: Slots;
  readonly #lanes: Lanes;
  /** What is being worked on; `drain` waits for all of it. */
  readonly #work = new Set<Promise<unknown>>();
  readonly #inFlight = new Set<string>();
  readonly #interrupt = new AbortController();
  readonly #timers = new Map<"alarm" | "sweep" | "rescue" | "probe", () => void>();
  #alarmAtMs = Number.POSITIVE_INFINITY;
  #isRunning = false;
  #isPaused = false;
  #unsubscribe: () => void = () => {};

  constructor(deps: LoopDeps) {
    this.#deps = deps;
    this.#actions = deps.store.actions;
    this.#slots = new Slots(deps.limits);
    this.#lanes = new Lanes(this.#slots);
  }

  /** Attempts in flight, for the metrics. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Ends what a dead process left active, then begins to claim. Resolves when the rescue is done. */
  async start(): Promise<void> {
    await this.#deps.rescue({ everything: this.#deps.store.isAlone, isOurs: () => false });
    this.#isRunning = true;
    this.#unsubscribe = this.#deps.bus.subscribe((action) => this.#hear(action));
    this.#keep(this.#sweep(null));
    this.#rescueLater();
  }

  /**
   * Stops claiming and lets what is in flight end. What has not ended after `limitMs` is interrupted: recorded as
   * `unknown`, and sent again only as the action allows. Resolves when everything is recorded.
   */
  async drain(limitMs: number): Promise<void> {
    this.#isRunning = false;
    this.#unsubscribe();
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    const cancel = this.#deps.clock.after(limitMs, () => this.#interrupt.abort());
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
    cancel();
  }

  #hear(action: Action): void {
    const { id, revision, dueAt, status } = action;
    if (status !== "pending" || dueAt === null) return;
    this.#lanes.add(action, { id, revision, dueAt }, this.#nowMs());
    this.#turn();
  }

  /** One turn of the wheel: wake, load, take, claim; then sleep to the next. */
  #turn(): void {
    if (!this.#isRunning || this.#isPaused) return;
    const nowMs = this.#nowMs();
    this.#lanes.wake(nowMs);
    const candidates: Candidate[] = [];
    while (candidates.length < CLAIM_ROWS_MAX) {
      const candidate = this.#lanes.next();
      if (candidate === null) break;
      candidates.push(candidate);
    }
    if (candidates.length > 0) this.#keep(this.#claim(candidates));
    for (const lane of this.#lanes.takeHungry(this.#slots.free)) this.#keep(this.#load(lane));
    this.#setAlarm();
  }

  async #claim(candidates: readonly Candidate[]): Promise<void> {
    const byId = new Map(candidates.map((candidate) => [candidate.due.id, candidate]));
    try {
      const now = this.#deps.clock.now();
      const leaseUntil = new Date(now.getTime() + this.#deps.attemptTimeoutMs + LEASE_GRACE_MS);
      const won = await this.#actions.claim(
        [...byId.values()].map(({ due }) => due),
        { now, leaseUntil },
      );
      for (const action of won) {
        const candidate = byId.get(action.id);
        if (candidate === undefined || !byId.delete(action.id)) continue;
        this.#deps.bus.publish(action);
        this.#keep(this.#fly(action, candidate));
      }
    } catch (error) {
      this.#stumble(error);
    } finally {
      // Those not won have moved on, or wait in the store for the sweep that follows a pause.
      for (const candidate of candidates) if (byId.get(candidate.due.id) === candidate) this.#lanes.release(candidate);
    }
  }

  async #fly(action: Action, candidate: Candidate): Promise<void> {
    this.#inFlight.add(action.id);
    let isLanded = false;
    // The slot is the target's: the commit that follows does not keep the next call from it.
    const landed = () => {
      if (isLanded) return;
      isLanded = true;
      this.#lanes.release(candidate);
      this.#turn();
    };
    try {
      await this.#deps.attempt(action, { stop: this.#interrupt.signal, landed });
    } catch (error) {
      this.#stumble(error);
    } finally {
      this.#inFlight.delete(action.id);
      landed();
    }
  }

  async #load(lane: Lane): Promise<void> {
    try {
      const found = await this.#actions.pending(lane, LANE_READY_MAX);
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
      const heads = await this.#actions.lanes(after, SWEEP_LANES);
      const nowMs = this.#nowMs();
      for (const head of heads) this.#lanes.hint(head, head.dueAt.getTime(), nowMs);
      next = heads.length === SWEEP_LANES ? (heads.at(-1) ?? null) : null;
      this.#turn();
    } catch (error) {
      this.#stumble(error);
    }
    this.#ring("sweep", next === null ? SLEEP_MS_MAX : SWEEP_REST_MS, () => this.#keep(this.#sweep(next)));
  }

  #rescueLater(): void {
    this.#ring("rescue", RESCUE_EVERY_MS, () => {
      const pass = this.#deps.rescue({ everything: false, isOurs: (id) => this.#inFlight.has(id) });
      this.#keep(pass.catch((error: unknown) => this.#stumble(error)).finally(() => this.#rescueLater()));
    });
  }

  /** What can't be recorded is not sent: claiming rests until the store can be written again. */
  #stumble(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) {
      this.#deps.log.error("dispatch.failed", { error: error instanceof Error ? error.name : "unknown" });
      return;
    }
    if (this.#isPaused || !this.#isRunning) return;
    this.#isPaused = true;
    this.#deps.log.error("dispatch.paused", { reason: "the store cannot be used" });
    this.#probeLater();
  }

  #probeLater(): void {
    this.#ring("probe", PROBE_EVERY_MS, () => {
      const probe = this.#deps.store.probe().then(
        () => {
          this.#isPaused = false;
          this.#deps.log.info("dispatch.resumed");
          return this.#sweep(null);
        },
        () => this.#probeLater(),
      );
      this.#keep(probe);
    });
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

  /** Sets the one timer of a name, in place of the one that was set before. */
  #ring(name: "alarm" | "sweep" | "rescue" | "probe", delayMs: number, ring: () => void): void {
    if (!this.#isRunning) return;
    this.#timers.get(name)?.();
    this.#timers.set(name, this.#deps.clock.after(delayMs, ring));
  }

  #keep(work: Promise<unknown>): void {
    const kept = work.finally(() => this.#work.delete(kept));
    this.#work.add(kept);
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime();
  }
}
