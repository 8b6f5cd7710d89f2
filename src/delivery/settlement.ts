import { type Action, lateSuccessIn } from "../core/action.ts";
import type { EffectiveRetrySettings } from "../core/retry-settings.ts";
import type { Ruling } from "../core/action-policy.ts";
import type { Change } from "../core/changes.ts";
import {
  type AttemptEnd,
  describeNotStarted,
  type NotStartedReason,
  releaseClaim,
  nextStep,
  settle,
  settleLate,
  withhold,
} from "../core/settle.ts";
import type { Outcome } from "../core/outcome.ts";
import type { TimelineEvent } from "../core/timeline.ts";
import type { Bus } from "../core/bus.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type ActionStore, type ChangeWrite, type OutboxRow, StoreBusy } from "../core/store.ts";
import { errorName } from "./recovery.ts";
import {
  DECIDE_TRIES_MAX,
  LEASE_GRACE_MS,
  UNWRITTEN_RESULT_BYTES,
  UNWRITTEN_RESULTS_BYTES_MAX,
  RESULT_RETRY_MS,
  RESULT_RETRY_MS_MAX,
} from "../core/limits.ts";

export interface SettlementDeps {
  readonly actions: Pick<ActionStore, "apply" | "isApplied" | "extendLease" | "findById">;
  readonly kept: UnwrittenResults;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "random">;
  readonly bus: Bus;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly enqueue: (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];
  /** How attempts of an action are repeated, as it is now. */
  readonly retrySettingsOf: (action: Action) => EffectiveRetrySettings;
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

/** The change for an action as it is stored by now; null: none. */
type Redecide = (stored: Action) => Change | null;

/**
 * Records the end of every attempt: the transition is decided by `settle`, written under the claim's revision, and
 * reported to the bus, the log and the metrics. If another process has taken the action over meanwhile, `settleLate` decides
 * what becomes of the result: it is never dropped.
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
    this.#logAttempt(write, ended);
    const { run, attempts: attempt } = action;
    const written = await this.#untilWritten(write, ended, (stored) => {
      return settleLate(stored, { ...this.#endOf(stored, ended), run, attempt });
    });
    if (written === null) return;
    const late = lateOf(written.change);
    if (late === undefined) this.#report(written.change, ended);
    else this.#reportLate(written.change, late, attempt);
  }

  /**
   * Lengthens the lease of a claimed action, for an attempt that may take longer than the claim allows. Null: the claim is
   * lost. Rejects when the store is away.
   */
  async extendLease(action: Action, timeoutMs: number): Promise<Action | null> {
    const { actions, clock } = this.#deps;
    const leaseUntil = new Date(clock.now().getTime() + timeoutMs + LEASE_GRACE_MS);
    if (await actions.extendLease(action, leaseUntil)) return { ...action, leaseUntil };
    const stored = await actions.findById(action.id);
    if (stored === null || !isSameClaim(stored, action)) return null;
    if (lateSuccessIn(stored.run, stored.lateResult) !== null) {
      // An earlier attempt has been answered meanwhile: this one must not begin.
      await this.unclaim(stored, "late");
      return null;
    }
    const { revision } = stored;
    return (await actions.extendLease(stored, leaseUntil)) ? { ...action, revision, leaseUntil } : null;
  }

  /** For a claim whose attempt never began; the same. */
  async unclaim(action: Action, why: NotStartedReason): Promise<void> {
    const { clock, metrics, log, bus } = this.#deps;
    const now = clock.now();
    const write = this.#writeOf(releaseClaim(action, why, now), now);
    const written = await this.#untilWritten(write, null, (stored) =>
      isSameClaim(stored, action) ? releaseClaim(stored, why, clock.now()) : null,
    );
    if (written === null) return;
    metrics.unclaimed("action");
    // Nothing that an operator could mend: it waits its turn now.
    const level = why === "busy" ? "info" : "warn";
    log[level]("action.not_started", { action_id: action.id, host: action.host, message: describeNotStarted(why) });
    bus.publish(written.change.after);
  }

  /** For a claim that a rule has stopped; the same. */
  async withhold(action: Action, ruling: Ruling): Promise<void> {
    const { clock, metrics, log, bus } = this.#deps;
    const now = clock.now();
    const written = await this.#untilWritten(this.#writeOf(withhold(action, ruling, now), now), null, (stored) =>
      isSameClaim(stored, action) ? withhold(stored, ruling, clock.now()) : null,
    );
    if (written === null) return;
    metrics.unclaimed("action");
    log.info("action.withheld", { action_id: action.id, rule_id: ruling.rule.id, effect: ruling.effect });
    bus.publish(written.change.after);
  }

  /** For an attempt of a dead process. False: another change came first. Rejects when the store is away. */
  async recover(action: Action): Promise<boolean> {
    const ended: Ended = { outcome: { kind: "unknown", fault: "interrupted" }, durationMs: null };
    const write = this.#resultWrite(action, ended);
    if (!(await this.#deps.actions.apply(write))) return false;
    this.#logAttempt(write, ended);
    this.#report(write.change, ended);
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

  #resultWrite(action: Action, ended: Ended): ChangeWrite {
    const end = this.#endOf(action, ended);
    return this.#writeOf(settle(action, end), end.now);
  }

  #endOf(action: Action, { outcome, durationMs, timeoutMs = this.#deps.attemptTimeoutMs }: Ended): AttemptEnd {
    const { clock, ids, retrySettingsOf } = this.#deps;
    const { backoff, giveUpOn } = retrySettingsOf(action);
    return { outcome, now: clock.now(), durationMs, timeoutMs, backoff, giveUpOn, chance: ids.random() };
  }

  #writeOf(change: Change, at: Date): ChangeWrite {
    return { change, at, outbox: this.#deps.enqueue(change.after, at, change.events) };
  }

  /**
   * Writes it, or what `redecide` makes of it where another change came first, until the store has taken it. Null: it is
   * needless, or the process ended before.
   */
  async #untilWritten(first: ChangeWrite, ended: Ended | null, redecide: Redecide): Promise<ChangeWrite | null> {
    const { actions, kept, clock, metrics, log } = this.#deps;
    const { id, run, attempts: attempt } = first.change.before;
    const names = { action_id: id, run, attempt };
    // Writes that the store may have done although it did not say so, or may still do.
    const inDoubt = new Set<ChangeWrite>();
    let isFenced = false;
    let done: ChangeWrite | null = null;
    const isDoneAlready = async () => {
      for (const write of inDoubt) if (await actions.isApplied(write)) done = write;
      return done !== null;
    };
    const isWritten = async (write: ChangeWrite) => {
      const wasInDoubt = inDoubt.has(write);
      inDoubt.add(write);
      if (await actions.apply(write)) done = write;
      if (!wasInDoubt) inDoubt.delete(write);
      // One in doubt may have been committed while this one waited for its row: what is stored is our own change then.
      return done !== null || (await isDoneAlready());
    };
    const written = await kept.write({
      bytes: bytesOf(first),
      write: async () => {
        if (await isDoneAlready()) return true;
        let write = first;
        for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
          if (await isWritten(write)) return true;
          const stored = await actions.findById(id);
          const change = stored === null ? null : redecide(stored);
          if (!isFenced) {
            isFenced = true;
            metrics.fenced();
            log.warn("action.fenced", { ...names, ...outcomeNames(ended) });
          }
          if (change === null) return false;
          write = this.#writeOf(change, clock.now());
        }
        throw new StoreBusy("The action changes too fast for its result to be written.");
      },
      onKept: (error) => log.warn("action.result_kept", { ...names, error: errorName(error) }),
    });
    if (written === "never") log.warn("action.unrecorded", { ...names, ...outcomeNames(ended) });
    return done;
  }

  /** Before the first write, so that a result is in the log even where the store never takes it. */
  #logAttempt({ change, at }: ChangeWrite, ended: Ended): void {
    const { before, after } = change;
    this.#deps.log.info("action.attempted", {
      action_id: before.id,
      account_id: before.accountId,
      method: before.method,
      host: before.host,
      run: before.run,
      attempt: before.attempts,
      attempts_max: before.retries,
      ...outcomeNames(ended),
      duration_ms: ended.durationMs,
      next: nextStep(change),
      next_in_ms: after.dueAt === null ? undefined : after.dueAt.getTime() - at.getTime(),
    });
  }

  #report(change: Change, { outcome, durationMs, cause = null }: Ended): void {
    const { metrics, bus } = this.#deps;
    const { before, after } = change;
    metrics.attempted(outcome.kind, nextStep(change), durationMs);
    const isAltered = before.isAltered === true || (outcome.kind === "not_sent" && outcome.fault === "altered");
    if (isAltered) this.#reportSetAside(before, cause);
    bus.publish(after);
  }

  /** The attempt itself was counted when it was closed as unknown. */
  #reportLate({ before, after }: Change, late: LateEffect, attempt: number): void {
    const { log, bus } = this.#deps;
    log.info("action.late_result", { action_id: after.id, attempt, effect: late, status: after.status });
    if (after !== before) bus.publish(after);
  }
}

/** Whether the stored action is under the claim that this one was read with: a later claim has another lease. */
function isSameClaim(stored: Action, { run, attempts, leaseUntil }: Action): boolean {
  const isSame = stored.status === "active" && stored.run === run && stored.attempts === attempts;
  return isSame && stored.leaseUntil?.getTime() === leaseUntil?.getTime();
}

type LateEffect = "settled" | "result" | "noted";

/** What a late result did; undefined: it was in time. */
function lateOf({ events }: Change): LateEffect | undefined {
  return events.find((event) => event.type === "attempt")?.late;
}

function outcomeNames(ended: Ended | null) {
  if (ended === null) return {};
  const { outcome } = ended;
  return {
    outcome: outcome.kind,
    code: outcome.kind === "answered" ? outcome.code : undefined,
    fault: outcome.kind === "answered" ? undefined : outcome.fault,
  };
}

/** Memory that the texts of a write take. */
function bytesOf({ change, outbox }: ChangeWrite): number {
  const { body, headers, result } = change.after;
  let bytes = (body?.length ?? 0) + (result?.responseBody?.length ?? 0);
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  for (const { payload } of outbox) bytes += payload?.length ?? 0;
  return bytes;
}

/** The write of a known result. If `write` rejects, it is open whether it was done. */
interface KnownResult {
  /** Memory held until it is written. */
  readonly bytes: number;
  /**
   * False: another write came first. `isRepeat`: a call before this one failed, but may have been committed all the same.
   */
  readonly write: (isRepeat: boolean) => Promise<boolean>;
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

async function tryWrite({ write, onKept }: KnownResult, isFirst: boolean): Promise<Written | "kept"> {
  try {
    return (await write(!isFirst)) ? "yes" : "no";
  } catch (error) {
    if (isFirst) onKept(error);
    return "kept";
  }
}
