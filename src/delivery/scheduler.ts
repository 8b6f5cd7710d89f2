import type { Claimed } from "../actions/settle.ts";
import {
  CLAIM_AGAIN_MS,
  CLAIM_ROWS_MAX,
  CLAIMS_IN_DOUBT_MAX,
  LANE_READY_MAX,
  LARGE_CLAIM_BYTES_MAX,
  LEASE_GRACE_MS,
  RESCUE_EVERY_MS,
  SLEEP_MS_MAX,
} from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import {
  type DueRow,
  type LaneHead,
  type LaneName,
  type Queue,
  type Store,
  StoreBusy,
  StoreUnavailable,
} from "../../db/store.ts";
import { ClockWatch, Pause, reschedule, Timers } from "./timers.ts";
import { type Attempt, RunsInFlight, LargeRows } from "./in-flight.ts";
import type { KeptResults } from "./settlement.ts";
import { type Candidate, type Lane, Lanes, type TakenSlot } from "./lanes.ts";
import type { Orphaned } from "./recovery.ts";
import { type SlotLimits, Slots } from "./slots.ts";

export interface LoopDeps<Row extends { readonly id: string }> {
  /** What it delivers, in the log. */
  readonly name: "actions" | "callbacks" | "mails";
  readonly store: Pick<Store, "probe" | "isAlone">;
  readonly queue: Queue<Row>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "taskFailed">;
  readonly attempt: Attempt<Row>;
  readonly rescue: (orphaned: Orphaned) => Promise<number>;
  /** Ends rows that were altered where they are stored. */
  readonly setAside: (isOurs: (id: string) => boolean) => Promise<void>;
  /** Gives back a claim that was written although nobody was told so. */
  readonly unclaim: (row: Row) => Promise<void>;
  readonly kept: KeptResults;
  readonly limits: SlotLimits;
  /** Nothing of the queue may be sent now; `pauseChanged` tells when that changes. */
  readonly isPaused?: (lane: LaneName) => boolean;
  /** Bytes of large rows that are claimed and not yet recorded; absent: none of them holds any. */
  readonly largeBytesMax?: number;
  /** Hears when so many bytes of large rows are done with that the runtime should collect them. */
  readonly collectGarbage?: () => void;
  readonly attemptTimeoutMs: number;
}

type TimerName = "alarm" | "again" | "sweep" | "rescue" | "probe";

/** What runs in the background, in the log and the metrics. */
type TaskName = TimerName | "attempt" | "claim" | "clock" | "load" | "set_aside" | "start";

/** Rows of which the store did not say whether they were claimed. */
interface InDoubt {
  readonly due: readonly DueRow[];
  readonly at: Claimed;
}

/** A lease may end so much later than its claim asks for; a clock that was set back by more begins anew. */
const LEASE_SPREAD_MS = 1_000;

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
  readonly #large: LargeRows;
  readonly #runs: RunsInFlight<Row>;
  readonly #timers: Timers<TimerName>;
  readonly #watch: ClockWatch;
  readonly #pause: Pause;
  #alarmAtMs = Number.POSITIVE_INFINITY;
  /** How far the wall clock was set back, as far as what sleeps is not rescheduled for it. */
  #setBackMs = 0;
  /** Of the newest claim. */
  #leaseEndMs = 0;
  /** The last try to reschedule it has failed. */
  #isRescheduleDue = false;
  #inDoubt: readonly InDoubt[] = [];
  /** Rows whose claim is being written: it may be in the store before anybody here has heard. */
  readonly #claiming = new Set<string>();
  /** Due rows whose claim found the store busy. */
  readonly #busy = new Map<string, Candidate>();
  #isClaimingLarge = false;
  #isRunning = false;
  /** What a dead process left behind has been ended. */
  #hasBegun = false;

  constructor(deps: LoopDeps<Row>) {
    this.#deps = deps;
    this.#slots = new Slots(deps.limits);
    this.#lanes = new Lanes(this.#slots, deps.isPaused);
    this.#large = new LargeRows(deps.largeBytesMax ?? 0);
    // A large row is in memory until its end is recorded, which is later than its slot is free.
    this.#runs = new RunsInFlight(deps.clock, async (row, flight) => {
      try {
        await deps.attempt(row, flight);
      } finally {
        this.#releaseLarge(row.id);
      }
    });
    this.#timers = new Timers(deps.clock);
    this.#watch = new ClockWatch(deps);
    this.#pause = new Pause({
      ...deps,
      later: (delayMs, run) => this.#run("probe", delayMs, run),
      keep: (work) => this.#runs.keep(work),
      resume: () => this.#begin(),
      onError: (error) => this.#onError("start", error),
    });
    deps.kept.onRoom(() => this.#turn());
  }

  /** Attempts in flight, for the metrics. */
  get inFlight(): number {
    return this.#runs.count;
  }

  /** Whether nothing is claimed because the store is away, for the metrics. */
  get isPaused(): boolean {
    return this.#pause.isOn;
  }

  /**
   * Ends what a dead process left active, then begins to claim. Resolves when the rescue is done, or put off until it can
   * be done.
   */
  async start(): Promise<void> {
    this.#isRunning = true;
    try {
      await this.#deps.store.probe();
      await this.#begin();
    } catch (error) {
      this.#onError("start", error);
      this.#pause.begin("it could not begin");
    }
    this.#rescueLater();
  }

  /**
   * Stops claiming and lets what is in flight end. What has not ended after `limitMs` is interrupted: recorded as such,
   * and sent again only as its kind allows. Resolves when everything is recorded, or half a second after the limit.
   */
  async drain(limitMs: number): Promise<void> {
    this.#isRunning = false;
    this.#timers.clear();
    await this.#runs.drain(limitMs);
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

  /** Hears that what is paused of an account has changed: what waited for that is looked for at once. */
  pauseChanged(accountId: string): void {
    this.#lanes.pauseChanged(accountId);
    this.#turn();
    if (this.#isRunning && this.#hasBegun) this.#runs.keep(this.#lookAt({ accountId, host: "", keyId: "" }));
  }

  /** Takes a slot for a row that the store does not have yet; null when others of its lane are before it. */
  reserve(name: LaneName & { readonly id: string }): TakenSlot | null {
    // Not before it has begun: the rescue of a start takes whatever is active for a dead process's.
    const slot = this.#mayClaim() ? this.#lanes.reserve(name) : null;
    if (slot !== null) this.#claiming.add(name.id);
    return slot;
  }

  /** The commit that creates a row whose slot was reserved has ended. */
  claimed(id: string): void {
    this.#claiming.delete(id);
  }

  /** Hears of a row that may be claimed, because the store did not say so: it is asked again when it can be. */
  doubt(due: readonly DueRow[], at: Claimed): void {
    let rows = 0;
    // The newest are kept: of the others the lease ends first.
    this.#inDoubt = [{ due, at }, ...this.#inDoubt].filter((one) => (rows += one.due.length) <= CLAIMS_IN_DOUBT_MAX);
  }

  /** Gives a slot back. */
  release(slot: TakenSlot): void {
    this.#lanes.release(slot);
    this.#turn();
  }

  /** Lets a claimed row be attempted. The slot is the target's: the commit after the answer holds up no other call. */
  run(row: Row, slot: TakenSlot): void {
    const releaseSlot = () => this.release(slot);
    this.#runs.start(row, releaseSlot, (error, id) => this.#onError("attempt", error, id));
  }

  /** Has `drain` wait for this too. It must not reject. */
  keep(work: Promise<unknown>): void {
    this.#runs.keep(work);
  }

  /** A claim from now on. Two claims of one moment end in different ones, so that a lease names its claim. */
  claimNow(): Claimed {
    const now = this.#deps.clock.now();
    const endMs = now.getTime() + this.#deps.attemptTimeoutMs + LEASE_GRACE_MS;
    const isTaken = endMs <= this.#leaseEndMs && this.#leaseEndMs - endMs < LEASE_SPREAD_MS;
    this.#leaseEndMs = isTaken ? this.#leaseEndMs + 1 : endMs;
    return { now, leaseUntil: new Date(this.#leaseEndMs) };
  }

  #mayClaim(): boolean {
    return this.#isRunning && this.#hasBegun && !this.#pause.isOn && !this.#deps.kept.isFull;
  }

  /** One turn of the wheel: wake, load, take, claim; then sleep to the next. Never throws: whoever calls has its own work. */
  #turn(): void {
    if (!this.#mayClaim()) return;
    try {
      this.#claimDue();
    } catch (error) {
      this.#onError("claim", error);
    }
  }

  #claimDue(): void {
    this.#checkClock();
    const nowMs = this.#nowMs();
    this.#lanes.wake(nowMs);
    const candidates: Candidate[] = [];
    while (candidates.length < CLAIM_ROWS_MAX) {
      const candidate = this.#lanes.next();
      if (candidate === null) break;
      if (candidate.due.largeBytes === undefined) candidates.push(candidate);
      else this.#large.add(candidate);
    }
    if (candidates.length > 0) this.#runs.keep(this.#claim(candidates));
    this.#claimLarge();
    for (const lane of this.#lanes.takeNeedingLoad(this.#slots.free)) this.#runs.keep(this.#load(lane));
    this.#setAlarm();
  }

  /** Large rows some at a time, as far as there is memory for them: a megabyte costs the event loop some milliseconds. */
  #claimLarge(): void {
    if (this.#isClaimingLarge || !this.#mayClaim()) return;
    const candidates: Candidate[] = [];
    let bytes = 0;
    while (bytes < LARGE_CLAIM_BYTES_MAX && candidates.length < CLAIM_ROWS_MAX) {
      const candidate = this.#large.next();
      if (candidate === null) break;
      candidates.push(candidate);
      bytes += candidate.due.largeBytes ?? 0;
    }
    if (candidates.length === 0) return;
    this.#isClaimingLarge = true;
    const claim = this.#claim(candidates).finally(() => (this.#isClaimingLarge = false));
    this.#runs.keep(claim.then((isDone) => isDone && this.#claimLarge()));
  }

  #releaseLarge(id: string): void {
    if (!this.#large.release(id)) return;
    if (this.#large.takeGarbage()) this.#deps.collectGarbage?.();
    this.#claimLarge();
  }

  /** Tells whether the store could be asked. */
  async #claim(candidates: readonly Candidate[]): Promise<boolean> {
    // A hint may have come twice: the slots of what is not won, and of the second, are given back.
    const byId = new Map(candidates.map((candidate) => [candidate.due.id, candidate]));
    const leftOver = new Set(candidates);
    const due = Array.from(byId.values(), (candidate) => candidate.due);
    const at = this.claimNow();
    for (const { id } of due) this.#claiming.add(id);
    let won: readonly Row[] | undefined;
    try {
      won = await this.#deps.queue.claim(due, at);
      for (const row of won) {
        const candidate = byId.get(row.id);
        if (candidate !== undefined && leftOver.delete(candidate)) this.run(row, candidate);
      }
    } catch (error) {
      if (error instanceof StoreBusy) this.#claimAgain(due, byId);
      else if (won === undefined) this.doubt(due, at);
      this.#onError("claim", error);
    } finally {
      for (const { id } of due) this.#claiming.delete(id);
    }
    for (const candidate of leftOver) {
      this.#large.release(candidate.due.id);
      this.#lanes.release(candidate);
    }
    // What was not won has made room for others, and more may be due than one claim takes.
    if (won !== undefined) this.#turn();
    return won !== undefined;
  }

  /** Too much waits to be written: the rows are due still, and memory has forgotten them. */
  #claimAgain(due: readonly DueRow[], byId: ReadonlyMap<string, Candidate>): void {
    for (const row of due) {
      const lane = byId.get(row.id)?.lane;
      if (lane !== undefined) this.#busy.set(row.id, { lane, due: row });
    }
    this.#run("again", CLAIM_AGAIN_MS, () => {
      const rows = [...this.#busy.values()];
      this.#busy.clear();
      for (const { lane, due: row } of rows) this.#lanes.add(lane, row, this.#nowMs());
      this.#turn();
    });
  }

  async #load(lane: Lane): Promise<void> {
    try {
      const found = await this.#deps.queue.pending(lane, LANE_READY_MAX);
      this.#lanes.loaded(lane, found, LANE_READY_MAX, this.#nowMs());
      this.#turn();
    } catch (error) {
      this.#lanes.loaded(lane, [], LANE_READY_MAX, this.#nowMs());
      this.#onError("load", error);
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
      this.#onError("sweep", error);
    }
    this.#run("sweep", next === null ? SLEEP_MS_MAX : SWEEP_REST_MS, () => this.#runs.keep(this.#sweep(next)));
  }

  /** Walks over the lanes of one account in the store: memory may have forgotten some, and what a claim refused. */
  async #lookAt(first: LaneName): Promise<void> {
    let after: LaneName | null = first;
    try {
      while (after !== null && this.#isRunning) {
        const found: readonly LaneHead[] = await this.#deps.queue.lanes(after, SWEEP_LANES);
        const heads = found.filter(({ accountId }) => accountId === first.accountId);
        const nowMs = this.#nowMs();
        for (const head of heads) this.#lanes.hint(head, head.dueAt.getTime(), nowMs);
        after = heads.length === SWEEP_LANES ? (heads.at(-1) ?? null) : null;
        this.#turn();
      }
    } catch (error) {
      this.#onError("sweep", error);
    }
  }

  /** At the start, and again whenever the store is back. */
  async #begin(): Promise<void> {
    const { rescue, store } = this.#deps;
    if (this.#hasBegun) await this.#settleDoubts();
    else {
      await this.#setAside();
      await rescue({ everything: store.isAlone, isOurs: () => false });
    }
    this.#hasBegun = true;
    this.#runs.keep(this.#reschedule());
  }

  #checkClock(): void {
    let byMs = 0;
    try {
      byMs = this.#watch.setBackMs();
    } catch (error) {
      this.#onError("clock", error);
    }
    if (byMs === 0) return;
    this.#setBackMs += byMs;
    this.#runs.keep(this.#reschedule());
  }

  /** Looks at everything anew, after what a clock that was set back has put off is due at its time again. */
  async #reschedule(): Promise<void> {
    const byMs = this.#setBackMs;
    try {
      await reschedule(this.#deps.queue, this.#deps.clock, byMs, () => this.#isRunning);
      this.#setBackMs = Math.max(0, this.#setBackMs - byMs);
      this.#isRescheduleDue = false;
    } catch (error) {
      this.#isRescheduleDue = true;
      this.#onError("clock", error);
    }
    await this.#sweep(null);
  }

  #rescueLater(): void {
    this.#run("rescue", RESCUE_EVERY_MS, () => this.#runs.keep(this.#rescuePass().finally(() => this.#rescueLater())));
  }

  /** Each step runs whatever has become of the one before it. */
  async #rescuePass(): Promise<void> {
    this.#checkClock();
    if (this.#isRescheduleDue) this.#runs.keep(this.#reschedule());
    await this.#do("set_aside", () => this.#setAside());
    await this.#do("rescue", () => this.#settleDoubts());
    await this.#do("rescue", () => this.#deps.rescue({ everything: false, isOurs: (id) => this.#isOurs(id) }));
  }

  /** Whether this process works on a row, or knows of it what the store does not. */
  #isOurs(id: string): boolean {
    if (this.#runs.has(id) || this.#claiming.has(id)) return true;
    return this.#inDoubt.some(({ due }) => due.some((row) => row.id === id));
  }

  #setAside(): Promise<void> {
    return this.#deps.setAside((id) => this.#isOurs(id));
  }

  /** Gives back the claims that were written although nobody was told so: nothing of them was sent. */
  async #settleDoubts(): Promise<void> {
    for (const doubt of this.#inDoubt) {
      const rows = await this.#deps.queue.claimed(doubt.due, doubt.at);
      this.#inDoubt = this.#inDoubt.filter((other) => other !== doubt);
      for (const row of rows) {
        if (!this.#runs.has(row.id)) this.#runs.keep(this.#do("claim", () => this.#deps.unclaim(row)));
      }
    }
  }

  /** Runs a piece of background work; never rejects. */
  async #do(task: TaskName, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#onError(task, error);
    }
  }

  /** Begins to rest where the store is away, and else writes a bug down. Never throws: the task has to run again. */
  #onError(task: TaskName, error: unknown, id?: string): void {
    const { log, metrics, name } = this.#deps;
    // It works: whoever was not heard writes again.
    if (error instanceof StoreBusy) return;
    try {
      if (error instanceof StoreUnavailable) {
        if (this.#isRunning) this.#pause.begin("the store cannot be used");
        return;
      }
      metrics.taskFailed(`${name}.${task}`);
      log.error("dispatch.failed", { of: name, task, id, error: error instanceof Error ? error.name : "unknown" });
    } catch {
      // Where even that can't be written down the work goes on all the same.
    }
  }

  #setAlarm(): void {
    const atMs = this.#lanes.earliestMs;
    if (atMs === null || atMs === this.#alarmAtMs) return;
    this.#alarmAtMs = atMs;
    const delayMs = Math.min(SLEEP_MS_MAX, Math.max(1, atMs - this.#nowMs()));
    this.#run("alarm", delayMs, () => {
      // Before anything that may fail: no other alarm is set for a time that is set already.
      this.#alarmAtMs = Number.POSITIVE_INFINITY;
      this.#turn();
    });
  }

  #run(name: TimerName, delayMs: number, run: () => void): void {
    if (this.#isRunning) this.#timers.set(name, delayMs, run);
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime();
  }
}
