import type { RecoveryLease } from "../runtime/job-leases.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action } from "../core/action.ts";
import type { Claimed } from "../core/settle.ts";
import {
  CLAIM_RETRY_MS,
  CLAIM_BYTES_MAX,
  CLAIM_ROWS_MAX,
  CLAIMS_AT_ONCE_MAX,
  LARGE_GARBAGE_BYTES_MAX,
  NODE_LOOK_LANES_MAX,
  NODE_LOOK_MS_MIN,
  RECOVERY_INTERVAL_MS,
  SLEEP_MS_MAX,
} from "../core/limits.ts";
import type { Bus } from "../core/bus.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import {
  type ClaimedRows,
  type LaneHead,
  type LaneName,
  type Queue,
  type Store,
  StoreBusy,
  StoreUnavailable,
} from "../core/store.ts";
import type { HostLimits } from "../core/host-settings.ts";
import { type LaneClaim, type Lane, Lanes, nameOf, type SlotLimits } from "./lanes.ts";
import { ClockWatch, Leases, StorePause, Recovery, reschedule, type RowEnds } from "./recovery.ts";
import { type Attempt, RunsInFlight } from "./runs.ts";
import type { UnwrittenResults } from "./settlement.ts";
import { type NodeShare, WHOLE_SHARE } from "../runtime/shares.ts";
import { Timers } from "./timers.ts";

/** What every scheduler needs of a row. */
export interface QueueRow extends LaneName {
  readonly id: string;
  readonly leaseUntil: Date | null;
}

/** A row that was just stored. */
export interface Due {
  readonly lane: LaneName;
  readonly dueAt: Date;
  /** It has more than `SMALL_ROW_BYTES_MAX`. False where that is not known. */
  readonly isLarge: boolean;
}

export interface SchedulerDeps<Row extends QueueRow> {
  /** What is delivered, for the log. */
  readonly name: "actions" | "callbacks" | "mails" | "messages";
  readonly store: Pick<Store, "probe" | "isOnlyProcess">;
  readonly queue: Queue<Row>;
  readonly bus: Pick<Bus, "subscribe">;
  /** The rows of this queue that a change of an action has stored, at most one for each lane. */
  readonly dueOf: (action: Action) => readonly Due[];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "taskFailed">;
  readonly attempt: Attempt<Row>;
  readonly ends: RowEnds<Row>;
  readonly kept: UnwrittenResults;
  readonly limits: SlotLimits;
  /** Whether nothing of the lane may be sent now. Call `pauseChanged` when that changes. */
  readonly isPaused?: (lane: LaneName) => boolean;
  /** What the account of a lane sets for its host. Call `limitsChanged` when that changes. */
  readonly limitsOf?: (lane: LaneName) => HostLimits;
  /** How long attempts of a lane may take, as far as their rows don't say. By default as long as `attemptTimeoutMs`. */
  readonly timeoutOf?: (lane: LaneName) => number;
  /** Reads what must be known before anything is claimed. Rejects when the store is away. */
  readonly prepare?: () => Promise<void>;
  /** Called when enough bytes of large rows were released to be worth a garbage collection. */
  readonly collectGarbage?: () => void;
  readonly attemptTimeoutMs: number;
  /** The name of this process among several nodes. */
  readonly nodeId?: string;
  /** What this process may do beside other nodes. Call `sharesChanged` when that changes. */
  readonly share?: NodeShare;
  /** Takes the right to end rows of dead processes: null for the only process of a store. */
  readonly recoveryLease?: RecoveryLease | null;
}

/** A slot for a row that is about to be stored: the commit that creates it claims it too. */
export interface Reservation<Row> {
  readonly claim: Claimed;
  /** The row was stored and claimed: sends it, or gives the claim back where no slot is free. */
  commit(claimed: Row): void;
  /** Nothing was claimed: releases the slot. */
  release(): void;
  /** The response of the store was lost: releases the slot, and taken the store later whether the row is claimed. */
  fail(): void;
}

type TimerName = "alarm" | "tokens" | "look" | "sweep" | "rescue" | "probe";

/** Background tasks, for the log and the metrics. */
type TaskName = TimerName | "attempt" | "claim" | "clock" | "start";

/** Which lanes of the store to look for. */
interface LaneSearch {
  readonly accountId?: string;
  readonly most?: number;
  readonly isWanted?: (head: LaneHead) => boolean;
  /** Asked before each page. */
  readonly goesOn?: () => boolean;
}

/** Lanes per step of the sweep, and the pause between two steps. */
const [SWEEP_LANES, SWEEP_REST_MS] = [128, 5];

/**
 * The scheduler of one kind of row: it learns which lanes have due rows, claims as many as its slots allow and starts an
 * attempt for each. One timer waits for the earliest row that is not yet due; a sweep over the store finds what memory
 * missed.
 *
 * new -> `start` -> running <-> paused (the store is away: nothing is claimed that could not be recorded) -> `drain`.
 */
export class Scheduler<Row extends QueueRow> {
  readonly #deps: SchedulerDeps<Row>;
  readonly #share: NodeShare;
  readonly #lanes: Lanes;
  readonly #runs: RunsInFlight<Row>;
  readonly #recovery: Recovery<Row>;
  readonly #leases: Leases;
  readonly #timers: Timers<TimerName>;
  readonly #watch: ClockWatch;
  readonly #pause: StorePause;
  #unsubscribe: () => void = () => {};
  #alarmAtMs = Number.POSITIVE_INFINITY;
  #tokenAlarmAtMs = Number.POSITIVE_INFINITY;
  /** How far the wall clock was set back, as far as rows are not rescheduled for it yet. */
  #setBackMs = 0;
  /** The last attempt to reschedule failed. */
  #isRescheduleDue = false;
  /** Rows that are being created with a slot: they are not queued besides. */
  readonly #reserved = new Set<string>();
  /** Claims that are being written. */
  #claims = 0;
  #isClaimingLarge = false;
  #isTickDue = false;
  #garbageBytes = 0;
  #isRunning = false;
  /** Whether the rescue at the start is done. */
  #hasBegun = false;
  /** A look for rows of other nodes runs or is set; where the next one begins. */
  #isLooking = false;
  #looksAfter: LaneName | null = null;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: SchedulerDeps<Row>) {
    this.#deps = deps;
    this.#share = deps.share ?? WHOLE_SHARE;
    const { limits, isPaused, limitsOf, clock } = deps;
    this.#lanes = new Lanes(limits, { isPaused, limitsOf, share: this.#share, monotonicMs: () => clock.monotonicMs() });
    this.#runs = new RunsInFlight(deps.clock, deps.attempt);
    this.#recovery = new Recovery(deps);
    this.#leases = new Leases(deps);
    this.#timers = new Timers(deps.clock);
    this.#watch = new ClockWatch(deps);
    this.#pause = new StorePause({
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
    this.#unsubscribe = this.#deps.bus.subscribe((action) => {
      if (this.#reserved.has(action.id)) return;
      for (const due of this.#deps.dueOf(action)) this.add(due);
    });
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
    this.#unsubscribe();
    this.#isRunning = false;
    this.#timers.clear();
    await this.#runs.drain(limitMs);
  }

  /** Notes a row that was just stored. */
  add({ lane, dueAt, isLarge }: Due): void {
    this.#lanes.add(lane, dueAt, isLarge, this.#nowMs());
    this.#tick();
  }

  /** Re-evaluates the account's lanes after a pause began or ended, and looks for its rows in the store. */
  pauseChanged(accountId: string): void {
    this.#lanes.pauseChanged(accountId);
    this.#tick();
    if (this.#isRunning && this.#hasBegun) this.#runs.keep(this.#sweepAccount(accountId));
  }

  /** Applies the limits that an account has set for its hosts, and looks for its rows in the store. */
  limitsChanged(accountId: string): void {
    this.#lanes.limitsChanged(accountId);
    this.#tick();
    if (this.#isRunning && this.#hasBegun) this.#runs.keep(this.#sweepAccount(accountId));
  }

  /** Divides the slots anew after nodes came or went, and looks in the store for what is this one's now. */
  sharesChanged(): void {
    this.#lanes.sharesChanged();
    this.#tick();
    if (this.#isRunning && this.#hasBegun) this.#runs.keep(this.#sweep(null));
  }

  /**
   * Takes a slot for a row that is not stored yet, whose attempt may take so long if that is longer than `attemptTimeoutMs`;
   * null when other rows of its lane come first.
   */
  reserve(row: LaneName & { readonly id: string }, timeoutMs = 0): Reservation<Row> | null {
    // Not before the rescue is done: it would take the new row for one of a dead process.
    const lane = this.#mayClaim() ? this.#lanes.reserve(row) : null;
    if (lane === null) return null;
    const at = this.#leases.begin(timeoutMs);
    // `drain` must wait for the create and for the attempt that follows it.
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#runs.keep(promise);
    this.#reserved.add(row.id);
    const end = () => {
      this.#reserved.delete(row.id);
      resolve();
    };
    return {
      claim: at,
      commit: (claimed) => {
        this.#lanes.committed(lane);
        this.#start(claimed, lane, 0);
        this.#leases.end(at);
        end();
      },
      release: () => {
        this.#leases.end(at);
        this.#unreserve(lane);
        end();
      },
      fail: () => {
        this.#leases.lose({ accountIds: [row.accountId], at });
        this.#unreserve(lane);
        end();
      },
    };
  }

  #unreserve(lane: Lane): void {
    this.#lanes.unreserve(lane);
    this.#tick();
  }

  #release(lane: Lane): void {
    this.#lanes.release(lane);
    this.#tick();
  }

  /**
   * Starts the attempt of a claimed row, or gives its claim back where no slot is free: nothing claimed waits in memory. The slot is free as soon as the target has answered; a large row stays in memory
   * until its result is committed.
   */
  #start(row: Row, lane: Lane, largeBytes: number): void {
    if (!this.#lanes.begin(lane)) {
      const giveBack = this.#runTask("claim", () => this.#deps.ends.unclaim(row, "busy"));
      this.#runs.keep(giveBack.then(() => this.#lanes.returned(lane)));
      return;
    }
    if (largeBytes > 0) this.#lanes.holdLarge(lane, largeBytes);
    const onError = (error: unknown, id: string) => this.#onError("attempt", error, id);
    const onEnd = () => {
      if (largeBytes > 0) this.#releaseLarge(lane, largeBytes);
    };
    this.#runs.start(row, { releaseSlot: () => this.#release(lane), onError, onEnd });
  }

  #releaseLarge(lane: Lane, bytes: number): void {
    this.#lanes.holdLarge(lane, -bytes);
    this.#garbageBytes += bytes;
    if (this.#garbageBytes >= LARGE_GARBAGE_BYTES_MAX) {
      this.#garbageBytes = 0;
      this.#deps.collectGarbage?.();
    }
    this.#tick();
  }

  #mayClaim(): boolean {
    const isReady = this.#isRunning && this.#hasBegun && !this.#pause.isOn && !this.#deps.kept.isFull;
    return isReady && this.#share.mayClaim();
  }

  /**
   * Claims what is due when the callers of this turn have gone on: a commit answers many creates, and one claim of all of
   * them costs little more than one of the first. Never throws.
   */
  #tick(): void {
    if (this.#isTickDue || !this.#mayClaim()) return;
    this.#isTickDue = true;
    queueMicrotask(() => {
      this.#isTickDue = false;
      this.#claimDue();
    });
  }

  /** Claims what is due and sets the timer for the next row. Never throws. */
  #claimDue(): void {
    if (!this.#mayClaim()) return;
    try {
      this.#checkClock();
      this.#lanes.wake(this.#nowMs());
      this.#lanes.wakeHosts();
      // Slots that become free meanwhile share the next claim: a claim of many rows costs little more than one of one.
      const taken = this.#claims < CLAIMS_AT_ONCE_MAX ? this.#lanes.take(CLAIM_ROWS_MAX) : [];
      if (taken.length > 0) this.#runs.keep(this.#claim(taken, false));
      this.#claimLarge();
      this.#setAlarm();
    } catch (error) {
      this.#onError("claim", error);
    }
  }

  /** One claim at a time takes large rows: reading a megabyte blocks the event loop for milliseconds. */
  #claimLarge(): void {
    if (this.#isClaimingLarge) return;
    const taken = this.#lanes.takeLarge(CLAIM_ROWS_MAX);
    if (taken.length === 0) return;
    this.#isClaimingLarge = true;
    this.#runs.keep(this.#claim(taken, true));
  }

  async #claim(taken: readonly LaneClaim[], takesLarge: boolean): Promise<void> {
    this.#claims += 1;
    const { timeoutOf } = this.#deps;
    const at = this.#leases.begin(timeoutOf === undefined ? 0 : Math.max(...taken.map(({ lane }) => timeoutOf(lane))));
    const lanes = taken.map(({ lane: { accountId, host, keyId }, limit }) => ({ accountId, host, keyId, limit }));
    try {
      const claimed = await this.#deps.queue.claimDue({ lanes, bytesMax: CLAIM_BYTES_MAX, takesLarge, at });
      this.#claimed(taken, claimed, at);
      this.#leases.end(at);
    } catch (error) {
      const isBusy = error instanceof StoreBusy;
      if (isBusy) this.#leases.end(at);
      else this.#leases.lose({ accountIds: [...new Set(lanes.map(({ accountId }) => accountId))], at });
      // Otherwise left to the sweep.
      for (const claim of taken) this.#lanes.failed(claim, isBusy ? this.#nowMs() + CLAIM_RETRY_MS : null);
      this.#setAlarm();
      return this.#onError("claim", error);
    } finally {
      this.#claims -= 1;
      if (takesLarge) this.#isClaimingLarge = false;
    }
    // Released slots make room for others, and more may be due than one claim takes.
    this.#tick();
  }

  /** Starts the rows of a claim. Never throws. */
  #claimed(taken: readonly LaneClaim[], { rows, next }: ClaimedRows<Row>, { now }: Claimed): void {
    const nextOf = new Map(next.map((head) => [nameOf(head), head]));
    const times = { claimMs: now.getTime(), nowMs: this.#nowMs() };
    const rowsOf = Map.groupBy(rows, ({ row }) => nameOf(row));
    for (const claim of taken) {
      this.#lanes.committed(claim.lane);
      const won = rowsOf.get(claim.lane.name) ?? [];
      for (const { row, largeBytes } of won) this.#start(row, claim.lane, largeBytes);
      this.#lanes.answered(claim, won.length, nextOf.get(claim.lane.name), times);
    }
  }

  /** Returns the claims that were committed although their response was lost: nothing of them was sent. */
  #returnLostClaims(): Promise<void> {
    const { queue, ends } = this.#deps;
    return this.#leases.resolveLost(async (lost) => {
      const rows = (await queue.claimed(lost.accountIds, lost.at)).filter(({ id }) => !this.#runs.has(id));
      for (const row of rows) this.#runs.keep(this.#runTask("claim", () => ends.unclaim(row, "in_doubt")));
    });
  }

  /**
   * Reads lanes of the store behind one, page by page, and notes those in memory that are wanted. Ends behind the account, if it
   * asks for one, when so many were read, or when it is not to go on. Returns the last that was read; null: there are no more.
   */
  async #search(after: LaneName | null, asked: LaneSearch): Promise<LaneName | null> {
    const { accountId, most = Number.POSITIVE_INFINITY, isWanted = () => true, goesOn = () => true } = asked;
    let last = after;
    for (let seen = 0; seen < most && goesOn(); seen += SWEEP_LANES) {
      // A file is read in this thread: others get their turn between two pages.
      if (seen > 0) await nextTurn();
      const heads = await this.#deps.queue.lanes(last, SWEEP_LANES);
      const ofAccount = accountId === undefined ? heads : heads.filter((head) => head.accountId === accountId);
      const nowMs = this.#nowMs();
      for (const head of ofAccount) if (isWanted(head)) this.#lanes.found(head, nowMs);
      this.#tick();
      last = ofAccount.at(-1) ?? null;
      if (ofAccount.length < SWEEP_LANES) return null;
    }
    return last;
  }

  /** Looks for what memory missed, a page at a time. Runs again after the last page. */
  async #sweep(after: LaneName | null): Promise<void> {
    let next: LaneName | null = null;
    await this.#runTask("sweep", async () => {
      next = await this.#search(after, { most: SWEEP_LANES });
    });
    this.#run("sweep", next === null ? SLEEP_MS_MAX : SWEEP_REST_MS, () => this.#runs.keep(this.#sweep(next)));
  }

  /** The same for one account at once: memory may have dropped some of its lanes, and rows whose claim was refused. */
  #sweepAccount(accountId: string): Promise<void> {
    const first = { accountId, host: "", keyId: "" };
    const all = { accountId, goesOn: () => this.#isRunning };
    return this.#runTask("sweep", () => this.#search(first, all));
  }

  /** Other nodes may have stored rows that are due, perhaps more than they have slots for: looks soon, if slots are free. */
  lookElsewhere(): void {
    if (this.#isLooking || !this.#isRunning) return;
    this.#isLooking = true;
    const delayMs = this.#lookedMs + NODE_LOOK_MS_MIN - this.#deps.clock.monotonicMs();
    this.#run("look", Math.max(0, delayMs), () => this.#runs.keep(this.#look()));
  }

  /** Reads a bounded number of lanes; only those that are due, since the others are left to the nodes that know them. */
  async #look(): Promise<void> {
    let next: LaneName | null = null;
    this.#lookedMs = this.#deps.clock.monotonicMs();
    await this.#runTask("look", async () => {
      const isWanted = ({ dueAt }: LaneHead) => dueAt.getTime() <= this.#nowMs();
      const goesOn = () => this.#mayClaim() && this.#lanes.hasFreeSlot;
      next = await this.#search(this.#looksAfter, { most: NODE_LOOK_LANES_MAX, isWanted, goesOn });
    });
    this.#looksAfter = next;
    this.#isLooking = false;
    // Until all lanes were seen once.
    if (next !== null) this.lookElsewhere();
  }

  /** Runs at the start, and whenever the store is back. */
  async #begin(): Promise<void> {
    await this.#deps.prepare?.();
    if (this.#hasBegun) await this.#returnLostClaims();
    else await this.#recovery.rescue({ everything: this.#deps.store.isOnlyProcess, isOurs: () => false });
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
    this.#run("rescue", RECOVERY_INTERVAL_MS, () =>
      this.#runs.keep(this.#rescuePass().finally(() => this.#rescueLater())),
    );
  }

  /** Each step runs even if the one before failed. */
  async #rescuePass(): Promise<void> {
    this.#checkClock();
    if (this.#isRescheduleDue) this.#runs.keep(this.#reschedule());
    await this.#runTask("rescue", () => this.#returnLostClaims());
    await this.#runTask("rescue", () =>
      this.#recovery.rescue({ everything: false, isOurs: (row) => this.#isOurs(row) }),
    );
  }

  /** Whether this process works on the row, or may hold a claim on it. */
  #isOurs({ id, leaseUntil }: Row): boolean {
    return this.#runs.has(id) || this.#reserved.has(id) || this.#leases.isOpen(leaseUntil);
  }

  /** Runs a background task; never rejects. */
  async #runTask(task: TaskName, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#onError(task, error);
    }
  }

  /** Pauses the scheduler if the store is away; logs any other error. Never throws, so that the task runs again. */
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
      // Even if it can't be logged, the scheduler goes on.
    }
  }

  #setAlarm(): void {
    this.#setTokenAlarm();
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

  /** For the next call to a host with a rate, by the monotonic clock. */
  #setTokenAlarm(): void {
    const atMs = this.#lanes.nextTokenMs;
    if (atMs === null || atMs === this.#tokenAlarmAtMs) return;
    this.#tokenAlarmAtMs = atMs;
    const delayMs = Math.ceil(atMs - this.#deps.clock.monotonicMs());
    this.#run("tokens", Math.min(SLEEP_MS_MAX, Math.max(1, delayMs)), () => {
      this.#tokenAlarmAtMs = Number.POSITIVE_INFINITY;
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
