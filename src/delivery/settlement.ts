import type { Action } from "../actions/action.ts";
import type { Backoff } from "../actions/backoff.ts";
import type { Change } from "../actions/changes.ts";
import { describeNotStarted, type NotStarted, unclaimed, nextStep, setAside, settle } from "../actions/settle.ts";
import type { Outcome } from "../actions/outcome.ts";
import type { TimelineEvent } from "../actions/timeline.ts";
import type { Bus } from "../events/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type ActionStore, type ChangeWrite, type OutboxRow, RowRefused } from "../../db/store.ts";
import { KEPT_RESULT_BYTES, KEPT_RESULTS_BYTES_MAX, WRITE_AGAIN_MS, WRITE_AGAIN_MS_MAX } from "../config/limits.ts";

export interface SettlementDeps {
  readonly actions: Pick<ActionStore, "apply" | "isApplied" | "force">;
  readonly kept: KeptResults;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "chance">;
  readonly bus: Bus;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly enqueue: (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];
  readonly backoff: Backoff;
  readonly attemptTimeoutMs: number;
}

/** How an attempt ended, and after how long; null where nobody measured. */
export interface Ended {
  readonly outcome: Outcome;
  readonly durationMs: number | null;
  /** The deadline that was in force; the setting's unless it was shorter. */
  readonly timeoutMs?: number;
  /** What showed that the row was altered, for the log. */
  readonly cause?: unknown;
}

/**
 * The end of every attempt, whoever saw it: the law decides, the store writes it under the claim's own revision, the bus,
 * the log and the metrics hear of it. A write that lost is dropped: another process had taken the action over.
 */
export class Settlement {
  readonly #deps: SettlementDeps;

  constructor(deps: SettlementDeps) {
    this.#deps = deps;
  }

  /** Of an attempt of this process. Never rejects because of the store: resolves when it is written or the process ends. */
  async settle(action: Action, ended: Ended): Promise<void> {
    const write = this.#endOf(action, ended);
    if (await this.#untilWritten(write)) this.#tell(write, ended);
  }

  /** Of an attempt of this process that never began; the same. */
  async unclaim(action: Action, why: NotStarted): Promise<void> {
    const { clock, metrics, log, bus } = this.#deps;
    const now = clock.now();
    const write = this.#writeOf(unclaimed(action, why, now), now);
    if (!(await this.#untilWritten(write))) return;
    metrics.unclaimed("action");
    log.warn("action.not_started", { action_id: action.id, host: action.host, message: describeNotStarted(why) });
    bus.publish(write.change.after);
  }

  /** Of an attempt that nobody works on any more. Tells whether it was written; rejects where the store is away. */
  async recover(action: Action): Promise<boolean> {
    const ended: Ended = { outcome: { kind: "unknown", fault: "interrupted" }, durationMs: null };
    const write = this.#endOf(action, ended);
    if (!(await this.#writeOnce(write))) return false;
    this.#tell(write, ended);
    return true;
  }

  /** Of an action whose row was altered by hand; the same. */
  async setAside(action: Action): Promise<boolean> {
    const { actions, clock, bus } = this.#deps;
    const now = clock.now();
    const write = this.#writeOf(setAside(action, now), now);
    if (!(await actions.force(write))) return false;
    this.#tellSetAside(action, null);
    bus.publish(write.change.after);
    return true;
  }

  /** Once for each row, with its id: whoever keeps the database has to look at it. */
  #tellSetAside({ id, accountId }: Action, cause: unknown): void {
    const { metrics, log } = this.#deps;
    metrics.setAside("action");
    log.error("action.set_aside", {
      action_id: id,
      account_id: accountId,
      error: cause === null ? undefined : nameOf(cause),
      message: "Its row was altered where it is stored. It has failed, and nothing of it is sent any more.",
    });
  }

  #endOf(action: Action, { outcome, durationMs, timeoutMs = this.#deps.attemptTimeoutMs }: Ended): ChangeWrite {
    const { clock, ids, backoff } = this.#deps;
    const now = clock.now();
    return this.#writeOf(settle(action, { outcome, now, durationMs, timeoutMs, backoff, chance: ids.chance() }), now);
  }

  #writeOf(change: Change, at: Date): ChangeWrite {
    return { change, at, outbox: this.#deps.enqueue(change.after, at, change.events) };
  }

  /** What is known of an action counts for more than a row that somebody altered meanwhile. */
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
      onKept: (error) => log.warn("action.result_kept", { ...names, error: nameOf(error) }),
    });
    if (written === "no") metrics.fenced();
    if (written !== "yes") log.warn(written === "no" ? "action.fenced" : "action.unrecorded", names);
    return written === "yes";
  }

  #tell({ change, at }: ChangeWrite, { outcome, durationMs, cause = null }: Ended): void {
    const { metrics, log, bus } = this.#deps;
    const { before, after } = change;
    const next = nextStep(change);
    metrics.attempted(outcome.kind, next, durationMs);
    if (outcome.kind === "not_sent" && outcome.fault === "altered") this.#tellSetAside(before, cause);
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

/** Of the texts that a write holds in memory. */
function bytesOf({ change, outbox }: ChangeWrite): number {
  const { body, headers, result } = change.after;
  let bytes = (body?.length ?? 0) + (result?.responseBody?.length ?? 0);
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  for (const { payload } of outbox) bytes += payload?.length ?? 0;
  return bytes;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}

/** The write of a result that is known. Each of the functions may reject; then nobody knows whether it was done. */
export interface KnownResult {
  /** Of the texts that are held until it is written. */
  readonly bytes: number;
  /** False: another write came first. */
  readonly write: () => Promise<boolean>;
  /** Whether the store has this very result: asked where a write that failed may have been done all the same. */
  readonly isWritten: () => Promise<boolean>;
  /** Hears of the first write that failed. */
  readonly onKept: (error: unknown) => void;
}

/** `no`: another write came first; `never`: the process ended before it could be written. */
export type Written = "yes" | "no" | "never";

/**
 * Results that are known and not written yet. What can't be recorded would be sent again, so each is offered to the store
 * until it has it or the process ends, whatever its lease says. All loops share one of these: memory has one bound.
 */
export class KeptResults {
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

  /** Nothing more may be claimed: what comes back could not be kept. */
  get isFull(): boolean {
    return this.#bytes >= KEPT_RESULTS_BYTES_MAX;
  }

  /** `ring` is called each time when it has been full and is no longer. */
  onRoom(run: () => void): void {
    this.#onRoom.add(run);
  }

  /** Resolves when the result is written, or lost, or the process ends. Never rejects. */
  async write(result: KnownResult): Promise<Written> {
    const heldBytes = result.bytes + KEPT_RESULT_BYTES;
    this.#add(heldBytes);
    let written = await offer(result, true);
    for (let pauseMs = WRITE_AGAIN_MS; written === "kept"; pauseMs = Math.min(WRITE_AGAIN_MS_MAX, 2 * pauseMs)) {
      written = (await this.#pause(pauseMs)) ? await offer(result, false) : "never";
    }
    this.#remove(heldBytes);
    return written;
  }

  /** The process ends: whatever waits to be offered again is given up. */
  close(): void {
    this.#isClosed = true;
    for (const giveUp of this.#waiting) giveUp();
  }

  /** False: there is no again. */
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

async function offer({ write, isWritten, onKept }: KnownResult, isFirst: boolean): Promise<Written | "kept"> {
  try {
    if (await write()) return "yes";
    // It lost, unless an earlier write of it was done and only the store's word was lost.
    return !isFirst && (await isWritten()) ? "yes" : "no";
  } catch (error) {
    if (isFirst) onKept(error);
    return "kept";
  }
}
