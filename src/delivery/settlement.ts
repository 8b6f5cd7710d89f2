import type { Action } from "../actions/action.ts";
import type { EffectiveRules } from "../actions/rules.ts";
import type { Change } from "../actions/changes.ts";
import {
  describeNotStarted,
  type NotStartedReason,
  releaseClaim,
  nextStep,
  endAltered,
  settle,
} from "../actions/settle.ts";
import type { Outcome } from "../actions/outcome.ts";
import type { TimelineEvent } from "../actions/timeline.ts";
import type { Bus } from "../events/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type ActionStore, type ChangeWrite, type OutboxRow, RowRefused } from "../../db/store.ts";
import { errorName } from "./recovery.ts";
import {
  LEASE_GRACE_MS,
  UNWRITTEN_RESULT_BYTES,
  UNWRITTEN_RESULTS_BYTES_MAX,
  RESULT_RETRY_MS,
  RESULT_RETRY_MS_MAX,
} from "../config/limits.ts";

export interface SettlementDeps {
  readonly actions: Pick<ActionStore, "apply" | "isApplied" | "force" | "extendLease">;
  readonly kept: UnwrittenResults;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "random">;
  readonly bus: Bus;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly enqueue: (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];
  /** How attempts of an action are repeated, as it is now. */
  readonly rulesOf: (action: Action) => EffectiveRules;
  readonly attemptTimeoutMs: number;
}

/** How an attempt ended and how long it took; null where that was not measured. */
export interface Ended {
  readonly outcome: Outcome;
  readonly durationMs: number | null;
  /** The deadline that applied; by default the setting's. */
  readonly timeoutMs?: number;
  /** The error that showed that the row was altered, for the log. */
  readonly cause?: unknown;
}

/**
 * Records the end of every attempt: the transition is decided by `settle`, written under the claim's revision, and
 * reported to the bus, the log and the metrics. A write that lost is dropped: another process has taken the action
 * over.
 */
export class Settlement {
  readonly #deps: SettlementDeps;

  constructor(deps: SettlementDeps) {
    this.#deps = deps;
  }

  /**
   * For an attempt of this process. Never rejects because of the store: it resolves when the result is written or the
   * process ends.
   */
  async settle(action: Action, ended: Ended): Promise<void> {
    const write = this.#resultWrite(action, ended);
    if (await this.#untilWritten(write)) this.#report(write, ended);
  }

  /**
   * Lengthens the lease of a claimed action, for an attempt that may take longer than the claim allows. Null: the claim is
   * lost. Rejects when the store is away.
   */
  async extendLease(action: Action, timeoutMs: number): Promise<Action | null> {
    const { actions, clock } = this.#deps;
    const leaseUntil = new Date(clock.now().getTime() + timeoutMs + LEASE_GRACE_MS);
    return (await actions.extendLease(action, leaseUntil)) ? { ...action, leaseUntil } : null;
  }

  /** For a claim whose attempt never began; the same. */
  async unclaim(action: Action, why: NotStartedReason): Promise<void> {
    const { clock, metrics, log, bus } = this.#deps;
    const now = clock.now();
    const write = this.#writeOf(releaseClaim(action, why, now), now);
    if (!(await this.#untilWritten(write))) return;
    metrics.unclaimed("action");
    log.warn("action.not_started", { action_id: action.id, host: action.host, message: describeNotStarted(why) });
    bus.publish(write.change.after);
  }

  /** For an attempt of a dead process. False: another change came first. Rejects when the store is away. */
  async recover(action: Action): Promise<boolean> {
    const ended: Ended = { outcome: { kind: "unknown", fault: "interrupted" }, durationMs: null };
    const write = this.#resultWrite(action, ended);
    if (!(await this.#writeOnce(write))) return false;
    this.#report(write, ended);
    return true;
  }

  /** For an action whose row was altered in the database; the same. */
  async setAside(action: Action): Promise<boolean> {
    const { actions, clock, bus } = this.#deps;
    const now = clock.now();
    const write = this.#writeOf(endAltered(action, now), now);
    if (!(await actions.force(write))) return false;
    this.#reportSetAside(action, null);
    bus.publish(write.change.after);
    return true;
  }

  /** Logged once per row with its id: the operator has to look at the database. */
  #reportSetAside({ id, accountId }: Action, cause: unknown): void {
    const { metrics, log } = this.#deps;
    metrics.setAside("action");
    log.error("action.set_aside", {
      action_id: id,
      account_id: accountId,
      error: cause === null ? undefined : errorName(cause),
      message: "Its row was altered where it is stored. It has failed, and nothing of it is sent any more.",
    });
  }

  #resultWrite(action: Action, { outcome, durationMs, timeoutMs = this.#deps.attemptTimeoutMs }: Ended): ChangeWrite {
    const { clock, ids, rulesOf } = this.#deps;
    const now = clock.now();
    const { backoff, giveUpOn } = rulesOf(action);
    const end = { outcome, now, durationMs, timeoutMs, backoff, giveUpOn, chance: ids.random() };
    return this.#writeOf(settle(action, end), now);
  }

  #writeOf(change: Change, at: Date): ChangeWrite {
    return { change, at, outbox: this.#deps.enqueue(change.after, at, change.events) };
  }

  /** A known result is written even over a row that was altered meanwhile. */
  async #writeOnce(write: ChangeWrite): Promise<boolean> {
    const { actions, log } = this.#deps;
    try {
      return await actions.apply(write);
    } catch (error) {
      if (!(error instanceof RowRefused)) throw error;
      log.error("action.refused", { action_id: error.id, message: "Its row was altered; it is written all the same." });
      return actions.force(write);
    }
  }

  async #untilWritten(write: ChangeWrite): Promise<boolean> {
    const { actions, kept, metrics, log } = this.#deps;
    const { before } = write.change;
    const names = { action_id: before.id, attempt: before.attempts };
    const written = await kept.write({
      bytes: bytesOf(write),
      write: () => this.#writeOnce(write),
      isWritten: () => actions.isApplied(write),
      onKept: (error) => log.warn("action.result_kept", { ...names, error: errorName(error) }),
    });
    if (written === "no") metrics.fenced();
    if (written !== "yes") log.warn(written === "no" ? "action.fenced" : "action.unrecorded", names);
    return written === "yes";
  }

  #report({ change, at }: ChangeWrite, { outcome, durationMs, cause = null }: Ended): void {
    const { metrics, log, bus } = this.#deps;
    const { before, after } = change;
    const next = nextStep(change);
    metrics.attempted(outcome.kind, next, durationMs);
    if (outcome.kind === "not_sent" && outcome.fault === "altered") this.#reportSetAside(before, cause);
    log.info("action.attempted", {
      action_id: before.id,
      account_id: before.accountId,
      method: before.method,
      host: before.host,
      run: before.run,
      attempt: before.attempts,
      attempts_max: before.retries,
      outcome: outcome.kind,
      code: outcome.kind === "answered" ? outcome.code : undefined,
      fault: outcome.kind === "answered" ? undefined : outcome.fault,
      duration_ms: durationMs,
      next,
      next_in_ms: after.dueAt === null ? undefined : after.dueAt.getTime() - at.getTime(),
    });
    bus.publish(after);
  }
}

/** Memory that the texts of a write take. */
function bytesOf({ change, outbox }: ChangeWrite): number {
  const { body, headers, result } = change.after;
  let bytes = (body?.length ?? 0) + (result?.responseBody?.length ?? 0);
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  for (const { payload } of outbox) bytes += payload?.length ?? 0;
  return bytes;
}

/** The write of a known result. If one of these functions rejects, it is open whether the write was done. */
interface KnownResult {
  /** Memory held until it is written. */
  readonly bytes: number;
  /** False: another write came first. */
  readonly write: () => Promise<boolean>;
  /**
   * Whether the store has this result. Asked after a write that failed, since it may have been committed all the same.
   */
  readonly isWritten: () => Promise<boolean>;
  /** Called when the first write failed. */
  readonly onKept: (error: unknown) => void;
}

/** `no`: another write came first. `never`: the process ended before it was written. */
export type Written = "yes" | "no" | "never";

/**
 * Results that are known and not written yet. An unrecorded result would make the action be sent again, so each write
 * is repeated until it succeeds or the process ends, even after its lease. All schedulers share one instance, so that memory
 * has one bound.
 */
export class UnwrittenResults {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  readonly #onRoom = new Set<() => void>();
  #count = 0;
  #bytes = 0;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nothing more may be claimed, since its results could not be kept. */
  get isFull(): boolean {
    return this.#bytes >= UNWRITTEN_RESULTS_BYTES_MAX;
  }

  /** `run` is called whenever this stops being full. */
  onRoom(run: () => void): void {
    this.#onRoom.add(run);
  }

  /** Resolves when the result is written, when another write came first, or when the process ends. Never rejects. */
  async write(result: KnownResult): Promise<Written> {
    const heldBytes = result.bytes + UNWRITTEN_RESULT_BYTES;
    this.#add(heldBytes);
    let written = await tryWrite(result, true);
    for (let pauseMs = RESULT_RETRY_MS; written === "kept"; pauseMs = Math.min(RESULT_RETRY_MS_MAX, 2 * pauseMs)) {
      written = (await this.#pause(pauseMs)) ? await tryWrite(result, false) : "never";
    }
    this.#remove(heldBytes);
    return written;
  }

  /** Gives up all pending writes, because the process ends. */
  close(): void {
    this.#isClosed = true;
    for (const giveUp of this.#waiting) giveUp();
  }

  /** False: the process ends. */
  async #pause(pauseMs: number): Promise<boolean> {
    if (this.#isClosed) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(pauseMs, resolve);
    this.#waiting.add(resolve);
    await promise;
    cancel();
    this.#waiting.delete(resolve);
    return !this.#isClosed;
  }

  #add(bytes: number): void {
    this.#count += 1;
    this.#bytes += bytes;
  }

  #remove(bytes: number): void {
    const wasFull = this.isFull;
    this.#count -= 1;
    this.#bytes -= bytes;
    if (wasFull && !this.isFull) for (const run of this.#onRoom) run();
  }
}

async function tryWrite({ write, isWritten, onKept }: KnownResult, isFirst: boolean): Promise<Written | "kept"> {
  try {
    if (await write()) return "yes";
    // It lost, unless an earlier try was committed and only its response was lost.
    return !isFirst && (await isWritten()) ? "yes" : "no";
  } catch (error) {
    if (isFirst) onKept(error);
    return "kept";
  }
}
