import type { Action } from "../domain/action.ts";
import type { Backoff } from "../domain/backoff.ts";
import type { Outcome } from "../domain/outcome.ts";
import { nextStep, settle } from "../domain/settle.ts";
import type { Happening } from "../domain/timeline.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Log } from "../ports/log.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { ActionStore, OutboxRow } from "../ports/store.ts";
import { untilWritten } from "./until-written.ts";

export interface SettlementDeps {
  readonly actions: ActionStore;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "chance">;
  readonly bus: Bus;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly owe: (action: Action, at: Date, happenings: readonly Happening[]) => readonly OutboxRow[];
  readonly backoff: Backoff;
  readonly attemptTimeoutMs: number;
}

/** How an attempt ended, and after how long; null where nobody measured. */
export interface Ended {
  readonly outcome: Outcome;
  readonly durationMs: number | null;
}

/** Writes down how an attempt ended. Never rejects because of the store: it tries until the lease is over. */
export type Settle = (action: Action, ended: Ended) => Promise<void>;

/**
 * The end of every attempt, whoever saw it: the law decides, the store writes it under the claim's own revision, the bus,
 * the log and the metrics hear of it. A write that lost is dropped: another process had taken the action over.
 */
export function createSettle(deps: SettlementDeps): Settle {
  const { actions, clock, ids, bus, log, metrics, owe, backoff, attemptTimeoutMs } = deps;
  return async (action, { outcome, durationMs }) => {
    const now = clock.now();
    const ended = { outcome, now, durationMs, timeoutMs: attemptTimeoutMs, backoff, chance: ids.chance() };
    const change = settle(action, ended);
    const { after } = change;
    const write = { change, at: now, outbox: owe(after, now, change.happenings) };
    const written = await untilWritten(clock, action.leaseUntil, () => actions.apply(write));
    if (written !== "yes") {
      metrics.fenced();
      log.warn(written === "no" ? "action.fenced" : "action.unrecorded", {
        action_id: action.id,
        attempt: action.attempts,
      });
      return;
    }
    const next = nextStep(change);
    metrics.attempted(outcome.kind, next, durationMs);
    log.info("action.attempted", {
      action_id: action.id,
      account_id: action.accountId,
      method: action.method,
      host: action.host,
      run: action.run,
      attempt: action.attempts,
      attempts_max: action.retries,
      outcome: outcome.kind,
      code: outcome.kind === "answered" ? outcome.code : undefined,
      fault: outcome.kind === "answered" ? undefined : outcome.fault,
      duration_ms: durationMs,
      next,
      next_in_ms: after.dueAt === null ? undefined : after.dueAt.getTime() - now.getTime(),
    });
    bus.publish(after);
  };
}
