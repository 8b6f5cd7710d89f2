import type { Action } from "../domain/action.ts";
import { type Audited, auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { type Change, type DecisionInput, isRefusal, type OfRun, type Refusal, tooLate } from "../domain/change.ts";
import { DomainError } from "../domain/errors.ts";
import { DECIDE_TRIES_MAX } from "../domain/limits.ts";
import { maskText } from "../domain/mask.ts";
import { noteOfDecision } from "../domain/rejections.ts";
import type { HashOf } from "../domain/request-digest.ts";
import { requireMayChange } from "../domain/scope.ts";
import type { Operation } from "../domain/transition.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { RejectionStore } from "../ports/rejections.ts";
import { type ActionStore, type ChangeWrite, RowRefused } from "../ports/store.ts";
import type { Enqueue } from "./owe.ts";

export interface DecideDeps {
  readonly actions: ActionStore;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly metrics: Metrics;
  readonly enqueue: Enqueue;
  readonly rejections: Pick<RejectionStore, "count">;
  readonly hashOf: HashOf;
}

/** What the law says to a decision: a change, or why not. It may look things up. */
export type Transition = (
  action: Action,
  input: DecisionInput,
  caller: Caller,
) => Change | Refusal | Promise<Change | Refusal>;

/** `ofRun`: only while the action is in this run, which is the one that was looked at. */
export type Decide = (caller: Caller, id: string, reason: string | null, ofRun?: OfRun) => Promise<Action>;

/**
 * Read, ask the law, write under the revision that was read; a miss reads and decides again. Whoever loses a race is told
 * so by the law itself, on what is true by then. Shared by approve, cancel and retry.
 */
export function createDecide(deps: DecideDeps, operation: Operation, transition: Transition): Decide {
  const { actions, clock, bus, metrics, enqueue, hashOf } = deps;
  return async (caller, id, reason, ofRun) => {
    authorize(caller, operation);
    for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
      const action = await actions.find(caller.accountId, id);
      if (action === null) throw new DomainError("not_found", "There is no such action.");
      requireMayChange(caller, action);
      const now = clock.now();
      const late = ofRun === undefined ? null : tooLate(operation, action, ofRun);
      const change = late ?? (await transition(action, inputOf(caller, reason, now), caller));
      if (isRefusal(change)) throw new DomainError(change.refused, change.message, change.issues);
      const { after } = change;
      const audit = auditOf(caller, auditedOf(operation, action, after, reason), now);
      const note = noteOfDecision(operation, action, { caller, reason }, hashOf);
      if (await isWritten(actions, { change, at: now, outbox: enqueue(after, now, change.events), audit, note })) {
        metrics.decided(operation);
        bus.publish(after);
        return after;
      }
    }
    throw new DomainError("unavailable", `Action ${id} is changing too fast to decide on it; try again.`);
  };
}

/** What the audit log tells of a decision. */
function auditedOf(operation: Operation, before: Action, after: Action, reason: string | null): Audited {
  const isRejection = operation === "cancel" && before.status === "awaiting_approval";
  const kind = isRejection ? "rejected" : AUDITED[operation];
  // What somebody wrote may hold anything.
  const why = reason === null ? {} : { reason: maskText(reason, "public") };
  return { kind, subject: after.id, detail: { method: after.method, host: after.host, run: after.run, ...why } };
}

const AUDITED = { approve: "approved", cancel: "cancelled", retry: "retried" } as const;

/** A row that was altered by hand is ended by the service within seconds: until then nobody can decide on it. */
async function isWritten(actions: Pick<ActionStore, "apply">, write: ChangeWrite): Promise<boolean> {
  try {
    return await actions.apply(write);
  } catch (error) {
    if (!(error instanceof RowRefused)) throw error;
    const { id } = write.change.before;
    throw new DomainError("unavailable", `Action ${id} was altered where it is stored and is being ended; try again.`);
  }
}

function inputOf({ actor, via }: Caller, reason: string | null, now: Date): DecisionInput {
  return via === undefined ? { actor, reason, now } : { actor, reason, now, via };
}
