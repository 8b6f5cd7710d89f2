import { type Action, lateSuccessIn } from "../core/action.ts";
import type { Stop } from "../core/action-policy.ts";
import { type Change, step } from "../core/changes.ts";
import type { KnownHostSettings } from "../core/host-settings.ts";
import { DECIDE_TRIES_MAX, LEASE_GRACE_MS } from "../core/limits.ts";
import type { Outcome } from "../core/outcome.ts";
import { toStoredCount, type RuleCount } from "../core/account-rules.ts";
import {
  type AttemptEnd,
  describeNotStarted,
  nextStep,
  type NotStartedReason,
  releaseClaim,
  settle,
  settleLate,
  withhold,
} from "../core/settle.ts";
import { type ChangeWrite, StoreBusy } from "../core/store.ts";
import { errorName } from "../observability/log.ts";
import { reportSetAside } from "../observability/metrics.ts";
import type { Enqueue } from "../receipts/enqueue.ts";
import type { LoopContext } from "./scheduler.ts";

interface SettlementNeeds {
  readonly enqueue: Enqueue;
  readonly hosts: Pick<KnownHostSettings, "retrySettings">;
}

/** How an attempt ended and how long it took; null: that was not measured. */
export interface Ended {
  readonly outcome: Outcome;
  readonly durationMs: number | null;
  /** The deadline that applied. Default: `attemptTimeoutMs`. */
  readonly timeoutMs?: number;
  /** The error that revealed an altered row, for the log. */
  readonly cause?: unknown;
}

/** Decides again for the action as stored now; null if nothing must be written. */
type Redecide = (stored: Action) => Change | null;

/**
 * Records the end of every attempt: the transition is decided by `settle`, written under the claim's revision, and
 * reported to the bus, the log and the metrics. If another process has taken the action over meanwhile, `settleLate` decides
 * what becomes of the result: it is never dropped.
 */
export class Settlement {
  readonly #app: LoopContext;
  readonly #needs: SettlementNeeds;

  constructor(app: LoopContext, needs: SettlementNeeds) {
    this.#app = app;
    this.#needs = needs;
  }

  /**
   * Records the result of an attempt of this process. Never rejects because of the store: it resolves when the result is
   * written or the process ends.
   */
  async settle(action: Action, ended: Ended): Promise<void> {
    const write = this.#resultWrite(action, ended);
    this.#logAttempt(write, ended);
    const { run, attempts: attempt } = action;
    const written = await this.#untilWritten(write, ended, (stored) => {
      return settleLate(stored, { ...this.#attemptEnd(stored, ended), run, attempt });
    });
    if (written === null) return;
    const { after, events } = written.change;
    const effect = events.find((event) => event.type === "attempt")?.late;
    if (effect === undefined) return this.#report(written.change, ended);
    // A late result is not counted again: the attempt was counted when it was closed as unknown.
    const { log, bus } = this.#app;
    log.info("action.late_result", { action_id: after.id, attempt, effect, status: after.status });
    bus.publish(after);
  }

  /**
   * Extends the lease of a claimed action for an attempt that may take longer than the claim allows. Null: the claim is lost.
   * Rejects when the store is unavailable.
   */
  async extendLease(action: Action, timeoutMs: number): Promise<Action | null> {
    const { clock } = this.#app;
    const { actions } = this.#app.store;
    const leaseUntil = new Date(clock.now().getTime() + timeoutMs + LEASE_GRACE_MS);
    if (await actions.extendLease(action, leaseUntil)) return { ...action, leaseUntil };
    const stored = await actions.findById(action.id);
    if (stored === null || !isSameClaim(stored, action)) return null;
    if (lateSuccessIn(stored.run, stored.lateResult) !== null) {
      // An earlier attempt has succeeded meanwhile: this one must not begin.
      await this.unclaim(stored, "late");
      return null;
    }
    const { revision } = stored;
    return (await actions.extendLease(stored, leaseUntil)) ? { ...action, revision, leaseUntil } : null;
  }

  /**
   * Counts a claimed action for the given rules. Null: it would exceed one of their limits by now, or another change came
   * first. Rejects when the store is unavailable.
   */
  async count(action: Action, counts: readonly RuleCount[]): Promise<Action | null> {
    const change = step(action, {}, []);
    const after = { ...change.after, counted: [...action.counted, ...counts.map(toStoredCount)] };
    const write = this.#toWrite({ ...change, after }, this.#app.clock.now());
    return (await this.#app.store.actions.apply({ ...write, counts })) ? after : null;
  }

  /** Gives back a claim whose attempt never began. Never rejects because of the store. */
  async unclaim(action: Action, why: NotStartedReason): Promise<void> {
    if (!(await this.#endClaim(action, (stored, now) => releaseClaim(stored, why, now)))) return;
    // Logged once for all calls: see `OpenFiles`.
    if (why === "no_file") return;
    const message = describeNotStarted(why);
    this.#app.log.warn("action.not_started", { action_id: action.id, host: action.host, message });
  }

  /** Ends a claim that a rule, or the end of a grant, has stopped. Never rejects because of the store. */
  async withhold(action: Action, by: Stop): Promise<void> {
    if (!(await this.#endClaim(action, (stored, now) => withhold(stored, by, now)))) return;
    this.#app.log.info("action.withheld", { action_id: action.id, rule_id: by.policy.id, effect: by.effect });
  }

  /** False: the claim was lost, or the process ends. */
  async #endClaim(action: Action, decideChange: (stored: Action, now: Date) => Change): Promise<boolean> {
    const { clock, metrics, bus } = this.#app;
    const now = clock.now();
    const written = await this.#untilWritten(this.#toWrite(decideChange(action, now), now), null, (stored) =>
      isSameClaim(stored, action) ? decideChange(stored, clock.now()) : null,
    );
    if (written === null) return false;
    metrics.unclaimed("action");
    bus.publish(written.change.after);
    return true;
  }

  /** Ends an attempt of a dead process. False: another change came first. Rejects when the store is unavailable. */
  async recover(action: Action): Promise<boolean> {
    const ended: Ended = { outcome: { kind: "unknown", fault: "interrupted" }, durationMs: null };
    const write = this.#resultWrite(action, ended);
    if (!(await this.#app.store.actions.apply(write))) return false;
    this.#logAttempt(write, ended);
    this.#report(write.change, ended);
    return true;
  }

  #resultWrite(action: Action, ended: Ended): ChangeWrite {
    const end = this.#attemptEnd(action, ended);
    return this.#toWrite(settle(action, end), end.now);
  }

  #attemptEnd(
    action: Action,
    { outcome, durationMs, timeoutMs = this.#app.config.attemptTimeoutMs }: Ended,
  ): AttemptEnd {
    const { clock, ids } = this.#app;
    const { backoff, giveUpOn } = this.#needs.hosts.retrySettings(action);
    return { outcome, now: clock.now(), durationMs, timeoutMs, backoff, giveUpOn, chance: ids.random() };
  }

  #toWrite(change: Change, at: Date): ChangeWrite {
    return { change, at, outbox: this.#needs.enqueue(change.after, at, change.events) };
  }

  /**
   * Repeats a write until the store has taken it. If another change came first, writes what `redecide` returns instead. Null:
   * there is nothing left to write, or the process ends.
   */
  async #untilWritten(first: ChangeWrite, ended: Ended | null, redecide: Redecide): Promise<ChangeWrite | null> {
    const { store, unwritten, clock, metrics, log } = this.#app;
    const { actions } = store;
    const { id, run, attempts: attempt } = first.change.before;
    const names = { action_id: id, run, attempt };
    // Writes that the store may have committed, or may still commit, although it did not confirm them.
    const tried = new Set<ChangeWrite>();
    /** Returns the write that was committed: this one or an earlier one. Null: another change came first. */
    const tryWrite = async (write: ChangeWrite): Promise<ChangeWrite | null> => {
      tried.add(write);
      if (await actions.apply(write)) return write;
      // An earlier write may have been committed while this one waited for the row: then the other change is our own.
      for (const one of tried) if (await actions.isApplied(one)) return one;
      return null;
    };
    let isFenced = false;
    const reportFenced = () => {
      if (isFenced) return;
      isFenced = true;
      metrics.fenced();
      log.warn("action.fenced", { ...names, ...outcomeNames(ended) });
    };
    const write = async (): Promise<ChangeWrite | null> => {
      let next = first;
      for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
        const done = await tryWrite(next);
        if (done !== null) return done;
        const stored = await actions.findById(id);
        const change = stored === null ? null : redecide(stored);
        reportFenced();
        if (change === null) return null;
        next = this.#toWrite(change, clock.now());
      }
      throw new StoreBusy("The action changes too fast for its result to be written.");
    };
    const onKept = (error: unknown) => log.warn("action.result_kept", { ...names, error: errorName(error) });
    const written = await unwritten.write({ bytes: writeBytes(first), write, onKept });
    if (written !== "never") return written;
    log.warn("action.unrecorded", { ...names, ...outcomeNames(ended) });
    return null;
  }

  /** Logs the attempt before the first write, so that its result is in the log even if the store never takes it. */
  #logAttempt({ change, at }: ChangeWrite, ended: Ended): void {
    const { before, after } = change;
    this.#app.log.info("action.attempted", {
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

  #report(change: Change, { outcome, durationMs, cause }: Ended): void {
    const { metrics, bus } = this.#app;
    const { before, after } = change;
    metrics.attempted(outcome.kind, nextStep(change), durationMs);
    if (outcome.kind === "not_sent" && outcome.fault === "altered") {
      const error = cause === undefined ? undefined : errorName(cause);
      reportSetAside(this.#app, "action", before.id, { account_id: before.accountId, error });
    }
    bus.publish(after);
  }
}

/** Whether the stored action is still under the claim of the given one: a later claim has another lease. */
function isSameClaim(stored: Action, { run, attempts, leaseUntil }: Action): boolean {
  // Without a claim there is no lease.
  const hasSameLease = stored.leaseUntil?.getTime() === leaseUntil?.getTime();
  return hasSameLease && stored.run === run && stored.attempts === attempts;
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

/** Roughly the memory that the texts of a write take. */
function writeBytes({ change, outbox }: ChangeWrite): number {
  const { body, headers, result } = change.after;
  let bytes = (body?.length ?? 0) + (result?.responseBody?.length ?? 0);
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  for (const { payload } of outbox) bytes += payload?.length ?? 0;
  return bytes;
}
