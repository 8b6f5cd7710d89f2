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
  /** What the loop delivers, for the log. */
  readonly name: "actions" | "callbacks" | "mails";
  readonly store: Pick<Store, "probe" | "isAlone">;
  readonly queue: Queue<Row>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "taskFailed">;
  readonly attempt: Attempt<Row>;
  readonly rescue: (orphaned: Orphaned) => Promise<number>;
  /** Ends rows that were altered in the database. */
  readonly setAside: (isOurs: (id: string) => boolean) => Promise<void>;
  /** Returns a claim that was committed although its response was lost. */
  readonly unclaim: (row: Row) => Promise<void>;
  readonly kept: KeptResults;
  readonly limits: SlotLimits;
  /** Whether nothing of the lane may be sent now. Call `pauseChanged` when that changes. */
  readonly isPaused?: (lane: LaneName) => boolean;
  /** Limit of the bytes of large rows that are claimed and not yet recorded. Absent: no row counts as large. */
  readonly largeBytesMax?: number;
  /** Called when enough bytes of large rows were released to be worth a garbage collection. */
  readonly collectGarbage?: () => void;
  readonly attemptTimeoutMs: number;
}

type TimerName = "alarm" | "again" | "sweep" | "rescue" | "probe";

/** Background tasks, for the log and the metrics. */
type TaskName = TimerName | "attempt" | "claim" | "clock" | "load" | "set_aside" | "start";

/** Rows of a claim whose response was lost: the store may have them as claimed. */
interface LostClaim {
  readonly due: readonly DueRow[];
  readonly at: Claimed;
}

/**
 * How much later than requested a lease may end, to be unique. If the clock was set back by more, counting starts anew.
 */
const LEASE_SPREAD_MS = 1_000;

/** Lanes per step of the sweep, and the pause between two steps. */
const [SWEEP_LANES, SWEEP_REST_MS] = [128, 5];

/**
 * The scheduler of one kind of row: it learns of pending rows, takes those that are due within its slots, claims them
 * and starts an attempt for each. One timer waits for the earliest row that is not yet due; a sweep over the store
 * finds what memory missed.
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
  /** How far the wall clock was set back, as far as rows are not rescheduled for it yet. */
  #setBackMs = 0;
  /** End of the newest claim's lease. */
  #leaseEndMs = 0;
  /** The last attempt to reschedule failed. */
  #isRescheduleDue = false;
  #lostClaims: readonly LostClaim[] = [];
  /** Rows whose claim is being written: the store may show them as active already. */
  readonly #claiming = new Set<string>();
  /** Due rows whose claim was refused with `StoreBusy`. */
  readonly #busy = new Map<string, Candidate>();
  #isClaimingLarge = false;
  #isRunning = false;
  /** Whether the rescue at the start is done. */
  #hasBegun = false;

  constructor(deps: LoopDeps<Row>) {
    this.#deps = deps;
    this.#slots = new Slots(deps.limits);
    this.#lanes = new Lanes(this.#slots, deps.isPaused);
    this.#large = new LargeRows(deps.largeBytesMax ?? 0);
    // A large row stays in memory until its result is recorded, which is later than the release of its slot.
    this.#runs = new RunsInFlight(deps.clock, async (row, run) => {
      try {
        await deps.attempt(row, run);
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
    deps.kept.onRoom(() => this.#tick());
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
   * Ends what a dead process left active, then begins to claim. Resolves when that rescue is done, or postponed because
   * the store is away.
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
   * Stops claiming and waits for what is in flight. After `limitMs` the rest is interrupted, recorded as such, and sent
   * again only where that is allowed. Resolves when everything is recorded, or `DRAIN_WRITE_MS` after the limit.
   */
  async drain(limitMs: number): Promise<void> {
    this.#isRunning = false;
    this.#timers.clear();
    await this.#runs.drain(limitMs);
  }

  /** Adds a pending row. */
  add(name: LaneName, due: DueRow): void {
    this.#lanes.add(name, due, this.#nowMs());
    this.#tick();
  }

  /** Notes that the store has a row of this lane that is due now. */
  hint(name: LaneName): void {
    const nowMs = this.#nowMs();
    this.#lanes.hint(name, nowMs, nowMs);
    this.#tick();
  }

  /** Re-evaluates the account's lanes after a pause began or ended, and looks for its rows in the store. */
  pauseChanged(accountId: string): void {
    this.#lanes.pauseChanged(accountId);
    this.#tick();
    if (this.#isRunning && this.#hasBegun) this.#runs.keep(this.#sweepAccount({ accountId, host: "", keyId: "" }));
  }

  /** Takes a slot for a row that is not stored yet; null when other rows of its lane come first. */
  reserve(name: LaneName & { readonly id: string }): TakenSlot | null {
    // Not before the rescue is done: it would take the new row for one of a dead process.
    const slot = this.#mayClaim() ? this.#lanes.reserve(name) : null;
    if (slot !== null) this.#claiming.add(name.id);
    return slot;
  }

  /** Call it when the commit that creates a row with a reserved slot has ended. */
  claimed(id: string): void {
    this.#claiming.delete(id);
  }

  /** Remembers rows whose claim had no response; the store is asked about them later. */
  claimLost(due: readonly DueRow[], at: Claimed): void {
    let rows = 0;
    // Keep the newest: the leases of the others end first.
    this.#lostClaims = [{ due, at }, ...this.#lostClaims].filter(
      (one) => (rows += one.due.length) <= CLAIMS_IN_DOUBT_MAX,
    );
  }

  /** Releases a slot. */
  release(slot: TakenSlot): void {
    this.#lanes.release(slot);
    this.#tick();
  }

  /**
   * Starts the attempt of a claimed row. The slot is free as soon as the target has answered, before the result is
   * committed.
   */
  run(row: Row, slot: TakenSlot): void {
    const releaseSlot = () => this.release(slot);
    this.#runs.start(row, releaseSlot, (error, id) => this.#onError("attempt", error, id));
  }

  /** Makes `drain` wait for this too. It must not reject. */
  keep(work: Promise<unknown>): void {
    this.#runs.keep(work);
  }

  /** A claim that starts now. No two claims have the same lease end, so a lease identifies its claim. */
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

  /**
   * Takes and claims what is due, loads lanes, and sets the timer for the next row. Never throws, so that callers can
   * go on.
   */
  #tick(): void {
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

  /**
   * Claims large rows a few at a time, as far as memory allows: reading a megabyte blocks the event loop for
   * milliseconds.
   */
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

  /** False: the claim failed. */
  async #claim(candidates: readonly Candidate[]): Promise<boolean> {
    // A row may be listed twice. Slots of duplicates, and of rows that were not claimed, are released below.
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
      else if (won === undefined) this.claimLost(due, at);
      this.#onError("claim", error);
    } finally {
      for (const { id } of due) this.#claiming.delete(id);
    }
    for (const candidate of leftOver) {
      this.#large.release(candidate.due.id);
      this.#lanes.release(candidate);
    }
    // Released slots make room for others, and more may be due than one claim takes.
    if (won !== undefined) this.#tick();
    return won !== undefined;
  }

  /** The store is busy: queue the rows again after a moment, since memory has dropped them. */
  #claimAgain(due: readonly DueRow[], byId: ReadonlyMap<string, Candidate>): void {
    for (const row of due) {
      const lane = byId.get(row.id)?.lane;
      if (lane !== undefined) this.#busy.set(row.id, { lane, due: row });
    }
    this.#run("again", CLAIM_AGAIN_MS, () => {
      const rows = [...this.#busy.values()];
      this.#busy.clear();
      for (const { lane, due: row } of rows) this.#lanes.add(lane, row, this.#nowMs());
      this.#tick();
    });
  }

  async #load(lane: Lane): Promise<void> {
    try {
      const found = await this.#deps.queue.pending(lane, LANE_READY_MAX);
      this.#lanes.loaded(lane, found, LANE_READY_MAX, this.#nowMs());
      this.#tick();
    } catch (error) {
      this.#lanes.loaded(lane, [], LANE_READY_MAX, this.#nowMs());
      this.#onError("load", error);
    }
  }

  /** Reads the lanes of the store page by page and notes each in memory. Runs again after the last page. */
  async #sweep(after: LaneName | null): Promise<void> {
    let next: LaneName | null = null;
    try {
      const heads = await this.#deps.queue.lanes(after, SWEEP_LANES);
      const nowMs = this.#nowMs();
      for (const head of heads) this.#lanes.hint(head, head.dueAt.getTime(), nowMs);
      next = heads.length === SWEEP_LANES ? (heads.at(-1) ?? null) : null;
      this.#tick();
    } catch (error) {
      this.#onError("sweep", error);
    }
    this.#run("sweep", next === null ? SLEEP_MS_MAX : SWEEP_REST_MS, () => this.#runs.keep(this.#sweep(next)));
  }

  /** The same for one account at once: memory may have dropped some of its lanes, and rows whose claim was refused. */
  async #sweepAccount(first: LaneName): Promise<void> {
    let after: LaneName | null = first;
    try {
      while (after !== null && this.#isRunning) {
        const found: readonly LaneHead[] = await this.#deps.queue.lanes(after, SWEEP_LANES);
        const heads = found.filter(({ accountId }) => accountId === first.accountId);
        const nowMs = this.#nowMs();
        for (const head of heads) this.#lanes.hint(head, head.dueAt.getTime(), nowMs);
        after = heads.length === SWEEP_LANES ? (heads.at(-1) ?? null) : null;
        this.#tick();
      }
    } catch (error) {
      this.#onError("sweep", error);
    }
  }

  /** Runs at the start, and whenever the store is back. */
  async #begin(): Promise<void> {
    const { rescue, store } = this.#deps;
    if (this.#hasBegun) await this.#returnLostClaims();
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

  /** Moves due times after the clock was set back, then sweeps. */
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

  /** Each step runs even if the one before failed. */
  async #rescuePass(): Promise<void> {
    this.#checkClock();
    if (this.#isRescheduleDue) this.#runs.keep(this.#reschedule());
    await this.#runTask("set_aside", () => this.#setAside());
    await this.#runTask("rescue", () => this.#returnLostClaims());
    await this.#runTask("rescue", () => this.#deps.rescue({ everything: false, isOurs: (id) => this.#isOurs(id) }));
  }

  /** Whether this process works on the row, or may hold a claim on it. */
  #isOurs(id: string): boolean {
    if (this.#runs.has(id) || this.#claiming.has(id)) return true;
    return this.#lostClaims.some(({ due }) => due.some((row) => row.id === id));
  }

  #setAside(): Promise<void> {
    return this.#deps.setAside((id) => this.#isOurs(id));
  }

  /** Returns the claims that were committed although their response was lost: nothing of them was sent. */
  async #returnLostClaims(): Promise<void> {
    for (const claimLost of this.#lostClaims) {
      const rows = await this.#deps.queue.claimed(claimLost.due, claimLost.at);
      this.#lostClaims = this.#lostClaims.filter((other) => other !== claimLost);
      for (const row of rows) {
        if (!this.#runs.has(row.id)) this.#runs.keep(this.#runTask("claim", () => this.#deps.unclaim(row)));
      }
    }
  }

  /** Runs a background task; never rejects. */
  async #runTask(task: TaskName, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#onError(task, error);
    }
  }

  /** Pauses the loop if the store is away; logs any other error. Never throws, so that the task runs again. */
  #onError(task: TaskName, error: unknown, id?: string): void {
    const { log, metrics, name } = this.#deps;
    // The store works; the caller tries again.
    if (error instanceof StoreBusy) return;
    try {
      if (error instanceof StoreUnavailable) {
        if (this.#isRunning) this.#pause.begin("the store cannot be used");
        return;
      }
      metrics.taskFailed(`${name}.${task}`);
      log.error("dispatch.failed", { of: name, task, id, error: error instanceof Error ? error.name : "unknown" });
    } catch {
      // Even if it can't be logged, the loop goes on.
    }
  }

  #setAlarm(): void {
    const atMs = this.#lanes.earliestMs;
    if (atMs === null || atMs === this.#alarmAtMs) return;
    this.#alarmAtMs = atMs;
    const delayMs = Math.min(SLEEP_MS_MAX, Math.max(1, atMs - this.#nowMs()));
    this.#run("alarm", delayMs, () => {
      // First, before anything that may fail: while it is set, no other timer is set for that time.
      this.#alarmAtMs = Number.POSITIVE_INFINITY;
      this.#tick();
    });
  }

  #run(name: TimerName, delayMs: number, run: () => void): void {
    if (this.#isRunning) this.#timers.set(name, delayMs, run);
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime();
  }
}
