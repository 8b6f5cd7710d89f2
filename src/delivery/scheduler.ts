import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action } from "../core/action.ts";
import { NO_LIMITS } from "../core/host-settings.ts";
import {
  ATTEMPT_TIMEOUT_SET_MS_MAX,
  CLAIM_BYTES_MAX,
  CLAIM_RETRY_MS,
  CLAIM_ROWS_MAX,
  CLAIMS_AT_ONCE_MAX,
  COLLECTED_HEAP_BYTES_MAX,
  LARGE_GARBAGE_BYTES_MAX,
  LEASE_GRACE_MS,
  NODE_LOOK_LANES_MAX,
  NODE_LOOK_MS_MIN,
  RECOVERY_INTERVAL_MS,
  SLEEP_MS_MAX,
  STORE_RETRY_MS,
} from "../core/limits.ts";
import type { Lease } from "../core/settle.ts";
import {
  type ClaimedRows,
  type LaneHead,
  type LaneName,
  type Queue,
  StoreBusy,
  StoreUnavailable,
} from "../core/store.ts";
import { errorName } from "../observability/log.ts";
import { collectLargeTexts } from "../observability/runtime.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { RecoveryLease } from "../runtime/jobs.ts";
import type { Node } from "../runtime/node.ts";
import { type NodeShare, WHOLE_SHARE } from "../runtime/membership.ts";
import { NEVER } from "./alarms.ts";
import { createClockRepair, type LeasedRow, rescue, type RowRecovery } from "./recovery.ts";
import { type Lane, laneName } from "./lane.ts";
import { type LaneClaim, type LaneRules, Lanes, type SlotLimits } from "./lanes.ts";
import { Reservations, type Reservation, Leases } from "./reservations.ts";
import { type RunAttempt, type Turns, WorkInFlight, type OpenFiles, type UnwrittenResults } from "./in-flight.ts";

/** What delivery needs of this process as one node of several. */
export type DeliveryNode = Pick<Node, "id" | "share" | "recoveryLease"> & {
  readonly membership: Pick<Node["membership"], "onChange" | "reportOver">;
};

/** What every delivery loop needs. */
export interface LoopContext extends AppContext {
  readonly unwritten: UnwrittenResults;
  readonly files: OpenFiles;
  readonly turns: Turns;
  /** Null: this is the only process of the store. */
  readonly node: DeliveryNode | null;
}

/** A row that was just stored. */
export interface Due {
  readonly lane: LaneName;
  readonly dueAt: Date;
  /** It is larger than `SMALL_ROW_BYTES_MAX`. False if its size is not known. */
  readonly isLarge: boolean;
}

/** One shared array, since most changes leave nothing due. */
export const NOTHING_DUE: readonly Due[] = [];

export interface SchedulerOptions<Row extends LaneName & LeasedRow>
  extends Pick<LaneRules, "isPaused">, Partial<Pick<LaneRules, "findLimits" | "beginWaitMs">> {
  /** What is delivered, for the log. */
  readonly name: "actions" | "callbacks" | "mails" | "messages";
  readonly queue: Queue<Row>;
  /** The rows of this queue that a change of an action has stored, at most one for each lane. */
  readonly findDue: (action: Action) => readonly Due[];
  readonly attempt: RunAttempt<Row>;
  readonly recovery: RowRecovery<Row>;
  readonly limits: SlotLimits;
  /** How long an attempt of this lane may take if its row doesn't say. Default: `attemptTimeoutMs`. */
  readonly callTimeoutMs?: (lane: LaneName) => number;
  /** Reads what must be known before anything is claimed. Rejects when the store is unavailable. */
  readonly prepare?: () => Promise<void>;
}

/**
 * `new` until `start`; `starting` until what a dead process left active is ended, which waits for the store; `running`, when rows are
 * claimed; `stopped` from `drain` on.
 */
type Phase = "new" | "starting" | "running" | "stopped";

type TimerName = "alarm" | "look" | "sweep" | "rescue" | "probe";

/** Background tasks, for the log and the metrics. */
type TaskName = TimerName | "attempt" | "claim" | "clock" | "start";

/** Lanes that are read at a time, and how long the sweep rests in between. */
const [LANES_PER_PAGE, SWEEP_REST_MS] = [128, 5];

/**
 * The scheduler of one kind of row: it learns which lanes have due rows, claims as many as its slots allow and starts an
 * attempt for each. One timer waits for the earliest row that is not yet due; a sweep over the store finds what memory
 * missed.
 */
export class Scheduler<Row extends LaneName & LeasedRow> {
  readonly #app: LoopContext;
  readonly #options: SchedulerOptions<Row>;
  readonly #share: NodeShare;
  readonly #lanes: Lanes;
  readonly #work: WorkInFlight;
  /** The right to end rows of dead processes. Null: this is the only process of the store. */
  readonly #recoveryLease: RecoveryLease | null;
  readonly #leases: Leases;
  /** How to cancel each timer that is set. */
  readonly #timers = new Map<TimerName, () => void>();
  #unsubscribe: () => void = () => {};
  /** By the monotonic clock. */
  #alarmAtMs = NEVER;
  readonly #clockRepair: ReturnType<typeof createClockRepair>;
  readonly #reservations: Reservations<Row>;
  /** Claims that are being written. */
  #claims = 0;
  #isClaimingLarge = false;
  #isTickDue = false;
  #garbageBytes = 0;
  #phase: Phase = "new";
  /** Nothing is claimed, since no result could be recorded. `Outage` reports it once for all schedulers. */
  #isStoreAway = false;
  /** A look for rows of other nodes is running or scheduled; `#looksAfter` is where the next one continues. */
  #isLooking = false;
  #looksAfter: LaneName | null = null;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(app: LoopContext, options: SchedulerOptions<Row>) {
    const { clock, config, files, unwritten, node } = app;
    const { name, limits, isPaused, findLimits = () => NO_LIMITS, beginWaitMs = () => 0, callTimeoutMs } = options;
    const { attemptTimeoutMs } = config;
    this.#app = app;
    this.#options = options;
    this.#share = node?.share ?? WHOLE_SHARE;
    this.#lanes = new Lanes(limits, {
      isPaused,
      findLimits,
      share: this.#share,
      beginWaitMs,
      monotonicMs: () => clock.monotonicMs(),
    });
    this.#work = new WorkInFlight(clock);
    const longestMs = Math.max(attemptTimeoutMs, callTimeoutMs === undefined ? 0 : ATTEMPT_TIMEOUT_SET_MS_MAX);
    this.#recoveryLease = node?.recoveryLease(name, longestMs + LEASE_GRACE_MS) ?? null;
    this.#leases = new Leases(clock, attemptTimeoutMs, node?.id);
    this.#reservations = new Reservations({
      clock,
      lanes: this.#lanes,
      leases: this.#leases,
      work: this.#work,
      attempt: (row, lane) => this.#attempt(row, lane, 0),
      onFree: () => this.#tick(),
    });
    this.#clockRepair = createClockRepair(clock, options.queue, unwritten);
    unwritten.onRoom(() => this.#tick());
    files.onFree(() => this.#tick());
  }

  /** Rows with an attempt whose result is not recorded yet, for the metrics. */
  get inFlight(): number {
    return this.#work.attempts.size;
  }

  /** The hosts that have more calls in progress than this process may have there now. */
  get overHosts(): readonly string[] {
    return this.#lanes.overHosts;
  }

  /** Whether nothing is claimed because the store is unavailable, for the metrics. */
  get isStoreAway(): boolean {
    return this.#isStoreAway;
  }

  /**
   * Ends what a dead process left active, then begins to claim. Resolves when that rescue is done, or is postponed because
   * the store is unavailable.
   */
  async start(): Promise<void> {
    this.#enter("starting");
    this.#unsubscribe = this.#app.bus.subscribe((action) => {
      if (this.#reservations.has(action.id)) return;
      for (const due of this.#options.findDue(action)) this.add(due);
    });
    try {
      await this.#app.store.probe();
      await this.#begin();
    } catch (error) {
      this.#onError("start", error);
      this.#waitForStore("it could not begin");
    }
    this.#rescueLater();
  }

  /**
   * Stops claiming and waits for what is in flight. After `limitMs` the remaining attempts are interrupted and recorded as
   * such; the usual rules decide whether they are retried. Resolves when everything is recorded, or `DRAIN_WRITE_MS` later.
   */
  async drain(limitMs: number): Promise<void> {
    this.#unsubscribe();
    this.#phase = "stopped";
    for (const cancel of this.#timers.values()) cancel();
    this.#reservations.stop();
    await this.#work.drain(limitMs);
  }

  /** Notes a row that was just stored. */
  add({ lane, dueAt, isLarge }: Due): void {
    this.#lanes.add(lane, dueAt, isLarge, this.#nowMs());
    this.#tick();
  }

  /** Takes a slot for a row that is not stored yet: see `Reservations`. Its attempt may take `timeoutMs`, if that is longer. */
  reserve(row: Row, timeoutMs = 0): Reservation<Row> | null | Promise<Reservation<Row> | null> {
    // Not before the rescue is done, which would take the new row for one of a dead process.
    return this.#mayClaim() ? this.#reservations.reserve(row, timeoutMs) : null;
  }

  /** Re-evaluates the account's lanes after a pause began or ended, and looks for its rows in the store. */
  pauseChanged(accountId: string): void {
    this.#lanes.pauseChanged(accountId);
    this.#afterChange(() => this.#sweepAccount(accountId));
  }

  /** Applies the limits that an account has set for its hosts, and looks for its rows in the store. */
  limitsChanged(accountId: string): void {
    this.#lanes.limitsChanged(accountId);
    this.#afterChange(() => this.#sweepAccount(accountId));
  }

  /** Divides the slots again after a node joined or left, and looks in the store for lanes that are this node's now. */
  sharesChanged(): void {
    this.#lanes.sharesChanged();
    this.#afterChange(() => this.#sweep(null));
  }

  #afterChange(sweep: () => Promise<void>): void {
    this.#tick();
    if (this.#phase === "running") this.#work.keep(sweep());
  }

  /**
   * Claims what is due, at the end of this turn of the event loop: one commit answers many creates, and claiming all of them
   * costs little more than claiming the first. Never throws.
   */
  #tick(): void {
    if (this.#isTickDue) return;
    this.#isTickDue = true;
    queueMicrotask(() => {
      this.#isTickDue = false;
      this.#claimDue();
    });
  }

  #mayClaim(): boolean {
    const { files, unwritten } = this.#app;
    const isReady = this.#phase === "running" && !this.#isStoreAway && !unwritten.isFull && !files.areUsedUp;
    return isReady && this.#share.mayClaim();
  }

  /** Claims what is due and sets the timer for the next row. Never throws. */
  #claimDue(): void {
    if (!this.#mayClaim()) return;
    try {
      this.#checkClock();
      this.#lanes.wake(this.#nowMs());
      this.#lanes.wakeHosts();
      // At the limit, slots that become free share the next claim: claiming many rows costs little more than claiming one.
      const small = this.#claims < CLAIMS_AT_ONCE_MAX ? this.#lanes.take(CLAIM_ROWS_MAX) : [];
      if (small.length > 0) this.#work.keep(this.#claim(small, false));
      // One claim at a time takes large rows: reading a megabyte blocks the event loop for milliseconds.
      const large = this.#isClaimingLarge ? [] : this.#lanes.takeLarge(CLAIM_ROWS_MAX);
      if (large.length > 0) this.#work.keep(this.#claim(large, true));
      this.#reservations.admit();
      this.#setAlarm();
    } catch (error) {
      this.#onError("claim", error);
    }
  }

  async #claim(taken: readonly LaneClaim[], takesLarge: boolean): Promise<void> {
    this.#claims += 1;
    if (takesLarge) this.#isClaimingLarge = true;
    const { queue, callTimeoutMs } = this.#options;
    const lease = this.#leases.begin(
      callTimeoutMs === undefined ? 0 : Math.max(...taken.map(({ lane }) => callTimeoutMs(lane))),
    );
    const lanes = taken.map(({ lane: { accountId, host, keyId, dueFromMs }, limit }) => {
      return { accountId, host, keyId, limit, dueFromMs };
    });
    try {
      const claimed = await queue.claimDue({ lanes, bytesMax: CLAIM_BYTES_MAX, takesLarge, lease });
      this.#startClaimed(taken, claimed, lease);
      this.#leases.end(lease);
    } catch (error) {
      const isBusy = error instanceof StoreBusy;
      if (isBusy) this.#leases.end(lease);
      else this.#leases.lose({ accountIds: [...new Set(lanes.map(({ accountId }) => accountId))], lease });
      // After any other error, the sweep finds the rows.
      for (const claim of taken) this.#lanes.failed(claim, isBusy ? this.#nowMs() + CLAIM_RETRY_MS : null);
      this.#setAlarm();
      return this.#onError("claim", error);
    } finally {
      this.#claims -= 1;
      if (takesLarge) this.#isClaimingLarge = false;
    }
    // Slots may be free again, and more rows may be due than one claim takes.
    this.#tick();
  }

  /** Starts the rows of a claim. Never throws. */
  #startClaimed(taken: readonly LaneClaim[], { rows, next }: ClaimedRows<Row>, { now }: Lease): void {
    const nextHeads = new Map(next.map((head) => [laneName(head), head]));
    const times = { claimMs: now.getTime(), nowMs: this.#nowMs() };
    const claimedRows = Map.groupBy(rows, ({ row }) => laneName(row));
    for (const claim of taken) {
      const won = claimedRows.get(claim.lane.name) ?? [];
      for (const { row, largeBytes } of won) this.#work.keep(this.#attempt(row, claim.lane, largeBytes));
      this.#lanes.answered(claim, won.length, nextHeads.get(claim.lane.name), times);
    }
  }

  /**
   * Makes the attempt of a claimed row, which already holds a slot. The slot is freed as soon as the target has answered; a
   * large row counts as memory in use until its result is committed. Never rejects.
   */
  async #attempt(row: Row, lane: Lane, largeBytes: number): Promise<void> {
    let hasSlot = true;
    const releaseSlot = () => {
      if (!hasSlot) return;
      hasSlot = false;
      this.#lanes.release(lane);
      this.#tick();
    };
    if (largeBytes > 0) this.#lanes.holdLarge(lane, largeBytes);
    this.#work.attempts.add(row.id);
    try {
      await this.#app.turns.wait();
      await this.#options.attempt(row, { stop: this.#work.stop, releaseSlot });
    } catch (error) {
      this.#onError("attempt", error, row.id);
    } finally {
      this.#work.attempts.remove(row.id);
      if (largeBytes > 0) this.#releaseLarge(lane, largeBytes);
      releaseSlot();
    }
  }

  #releaseLarge(lane: Lane, bytes: number): void {
    this.#lanes.holdLarge(lane, -bytes);
    this.#tick();
    this.#garbageBytes += bytes;
    if (this.#garbageBytes < LARGE_GARBAGE_BYTES_MAX) return;
    this.#garbageBytes = 0;
    collectLargeTexts(COLLECTED_HEAP_BYTES_MAX);
  }

  /** Sets the timer for the earliest row that is not yet due, or the next call to a host with a rate. */
  #setAlarm(): void {
    const monotonicMs = this.#app.clock.monotonicMs();
    const { earliestMs, nextTokenMs } = this.#lanes;
    const delayMs = Math.min((earliestMs ?? NEVER) - this.#nowMs(), (nextTokenMs ?? NEVER) - monotonicMs);
    const sleepMs = Math.min(SLEEP_MS_MAX, Math.max(1, Math.ceil(delayMs)));
    // An alarm that rings earlier sets the next one.
    if (delayMs === NEVER || monotonicMs + sleepMs >= this.#alarmAtMs) return;
    this.#alarmAtMs = monotonicMs + sleepMs;
    this.#setTimer("alarm", sleepMs, () => {
      // First, before anything that may fail: while it is set, no later alarm is.
      this.#alarmAtMs = NEVER;
      this.#tick();
    });
  }

  /** Looks for lanes that memory missed, a page at a time. Starts over some time after the last page. */
  async #sweep(after: LaneName | null): Promise<void> {
    let next: LaneName | null = null;
    await this.#runTask("sweep", async () => {
      next = await this.#readLanes(after, () => true);
    });
    this.#setTimer("sweep", next === null ? SLEEP_MS_MAX : SWEEP_REST_MS, () => this.#work.keep(this.#sweep(next)));
  }

  /** Sweeps one account at once: memory may have dropped some of its lanes, and rows whose claim was refused. */
  #sweepAccount(accountId: string): Promise<void> {
    return this.#runTask("sweep", async () => {
      let next: LaneName | null = { accountId, host: "", keyId: "" };
      while (next?.accountId === accountId && this.#phase === "running") {
        next = await this.#readLanes(next, (head) => head.accountId === accountId);
        // A database file is read in this thread, so let other work run between two pages.
        await nextTurn();
      }
    });
  }

  /** Looks soon for due rows that other nodes have stored, perhaps more than they have slots for, if slots are free here. */
  lookElsewhere(): void {
    if (this.#isLooking || this.#phase !== "running") return;
    this.#isLooking = true;
    const delayMs = this.#lookedMs + NODE_LOOK_MS_MIN - this.#app.clock.monotonicMs();
    this.#setTimer("look", Math.max(0, delayMs), () => this.#work.keep(this.#look()));
  }

  /** Reads a bounded number of lanes and notes those that are due; the nodes that know the others wait for them. */
  async #look(): Promise<void> {
    let next = this.#looksAfter;
    this.#looksAfter = null;
    this.#lookedMs = this.#app.clock.monotonicMs();
    await this.#runTask("look", async () => {
      for (let read = 0; read < NODE_LOOK_LANES_MAX; read += LANES_PER_PAGE) {
        if (!this.#mayClaim() || !this.#lanes.hasFreeSlot) break;
        next = await this.#readLanes(next, ({ dueAt }) => dueAt.getTime() <= this.#nowMs());
        if (next === null) break;
      }
      this.#looksAfter = next;
    });
    this.#isLooking = false;
    // Go on until every lane was read once.
    if (this.#looksAfter !== null) this.lookElsewhere();
  }

  /** Notes the wanted ones of the store's next lanes. Returns the last that was read; null: there are no more. */
  async #readLanes(after: LaneName | null, isWanted: (head: LaneHead) => boolean): Promise<LaneName | null> {
    const heads = await this.#options.queue.lanes(after, LANES_PER_PAGE);
    const nowMs = this.#nowMs();
    this.#lanes.found(heads.filter(isWanted), nowMs);
    this.#tick();
    return heads.length < LANES_PER_PAGE ? null : (heads.at(-1) ?? null);
  }

  /** Runs at the start, and each time the store is available again. */
  async #begin(): Promise<void> {
    await this.#options.prepare?.();
    if (this.#phase !== "starting") await this.#returnLostClaims();
    else await this.#rescue(this.#app.store.isOnlyProcess);
    this.#enter("running");
    this.#work.keep(this.#repairDueTimes());
  }

  /** Once stopped, it stays so. */
  #enter(phase: Phase): void {
    if (this.#phase !== "stopped") this.#phase = phase;
  }

  #rescueLater(): void {
    this.#setTimer("rescue", RECOVERY_INTERVAL_MS, () => this.#work.keep(this.#rescuePass()));
  }

  /** Runs each step even if the one before failed. */
  async #rescuePass(): Promise<void> {
    this.#checkClock();
    if (this.#clockRepair.isDue()) this.#work.keep(this.#repairDueTimes());
    await this.#runTask("rescue", () => this.#returnLostClaims());
    await this.#runTask("rescue", () => this.#rescue(false));
    this.#rescueLater();
  }

  /** Gives back claims that were committed although their response was lost: none of their rows was sent. */
  #returnLostClaims(): Promise<void> {
    const { queue, recovery } = this.#options;
    return this.#leases.resolveLost(async (lost) => {
      const rows = (await queue.claimed(lost.accountIds, lost.lease)).filter(({ id }) => !this.#work.attempts.has(id));
      for (const row of rows) this.#work.keep(this.#runTask("claim", () => recovery.unclaim(row)));
    });
  }

  /** Ends what dead processes left active. `everything`: even rows whose lease has not ended. */
  #rescue(everything: boolean): Promise<void> {
    const [{ clock, log }, { name, queue, recovery }] = [this.#app, this.#options];
    // Rows that this process works on, or on which it may hold a claim.
    const isOurs = ({ id, leaseUntil }: Row) =>
      this.#work.attempts.has(id) || this.#reservations.has(id) || this.#leases.isOpen(leaseUntil);
    return rescue({ name, log, queue, clock, recovery, isOurs, lease: this.#recoveryLease }, everything);
  }

  /** Detects that the wall clock was set back. Never throws. */
  #checkClock(): void {
    try {
      const byMs = this.#clockRepair.look();
      if (byMs === 0) return;
      this.#work.keep(this.#repairDueTimes());
      this.#app.log.warn("clock.set_back", { of: this.#options.name, by_ms: byMs });
    } catch (error) {
      this.#onError("clock", error);
    }
  }

  async #repairDueTimes(): Promise<void> {
    await this.#runTask("clock", () => this.#clockRepair.moveRows(() => this.#phase === "stopped"));
    await this.#sweep(null);
  }

  /** Runs a background task; never rejects. */
  async #runTask(task: TaskName, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#onError(task, error);
    }
  }

  /** Waits for the store if it is unavailable; logs any other error. Never throws, so that the task runs again. */
  #onError(task: TaskName, error: unknown, id?: string): void {
    const { log, metrics } = this.#app;
    const { name } = this.#options;
    // The store works but is busy; the caller tries again.
    if (error instanceof StoreBusy) return;
    try {
      if (error instanceof StoreUnavailable) {
        if (this.#phase !== "stopped") this.#waitForStore("the store cannot be used");
        return;
      }
      metrics.taskFailed(`${name}.${task}`);
      log.error("dispatch.failed", { of: name, task, id, error: errorName(error) });
    } catch {
      // Even if it can't be logged, the scheduler goes on.
    }
  }

  /** Stops claiming until the store can be written, since no result could be recorded. `reason` is for the log. */
  #waitForStore(reason: string): void {
    if (this.#isStoreAway) return;
    this.#isStoreAway = true;
    this.#probeLater();
    this.#app.log.debug("dispatch.paused", { of: this.#options.name, reason });
  }

  #probeLater(): void {
    this.#setTimer("probe", STORE_RETRY_MS, () => this.#work.keep(this.#probe()));
  }

  async #probe(): Promise<void> {
    try {
      await this.#app.store.probe();
    } catch {
      return this.#probeLater();
    }
    this.#isStoreAway = false;
    try {
      this.#app.log.debug("dispatch.resumed", { of: this.#options.name });
      await this.#begin();
    } catch (error) {
      this.#onError("start", error);
      this.#waitForStore("it could not go on");
    }
  }

  /** Calls `then` once after the delay, unless the scheduler has stopped. Replaces a timer of the same name. */
  #setTimer(name: TimerName, delayMs: number, then: () => void): void {
    if (this.#phase === "stopped") return;
    this.#timers.get(name)?.();
    this.#timers.set(name, this.#app.clock.after(delayMs, then));
  }

  #nowMs(): number {
    return this.#app.clock.now().getTime();
  }
}
