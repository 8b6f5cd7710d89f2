import type { Action } from "../actions/action.ts";
import { type Audited, auditOf, auditOfSystem } from "../audit/audit.ts";
import { authorize, type Caller } from "../accounts/roles.ts";
import {
  type Change,
  type DecisionInput,
  isRefusal,
  type OfRun,
  type Refusal,
  tooLate,
  approve,
  cancel,
  expire,
} from "../actions/changes.ts";
import { DomainError } from "../api/domain-error.ts";
import { DECIDE_TRIES_MAX, EXPIRE_AT_ONCE_MAX, EXPIRE_SCAN_ROWS_MAX } from "../config/limits.ts";
import { maskText } from "../receipts/masking.ts";
import { noteOfDecision, type RejectionStore } from "./rejections.ts";
import { type HashOf, requestDigest } from "../actions/dedupe.ts";
import { requireMayChange } from "../accounts/scope.ts";
import type { Operation } from "../actions/status.ts";
import type { Bus } from "../events/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Metrics } from "../observability/metrics.ts";
import {
  type ActionStore,
  type ChangeWrite,
  RowRefused,
  StoreUnavailable,
  type HeldAction,
  type UpkeepStore,
} from "../../db/store.ts";
import type { Enqueue } from "../actions/create.ts";
import { mayApproveIt } from "./creator.ts";
import type { Log } from "../observability/log.ts";

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
type Transition = (
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

/**
 * Releases a held action. Throws `not_approvable` unless it awaits approval, and `forbidden` where an
 * agent's key brings its client's answer to what the hold of a key holds.
 */
export function createApprove(deps: DecideDeps): Decide {
  return createDecide(deps, "approve", (action, input, caller) =>
    mayApproveIt(caller.role, action)
      ? approve(action, { ...input, digest: requestDigest(action, deps.hashOf) })
      : beyondElicitation(action),
  );
}

function beyondElicitation({ id }: Action): Refusal {
  return {
    refused: "forbidden",
    message: `Action ${id} is held by the hold of a key: no agent's key may approve it, also where its client asked a person.`,
  };
}

/** Ends an action that has not been sent. Throws `not_cancellable` once it is active or final. */
export function createCancel(deps: DecideDeps): Decide {
  return createDecide(deps, "cancel", cancel);
}

interface ExpireDeps {
  readonly actions: Pick<ActionStore, "find" | "apply">;
  readonly upkeep: Pick<UpkeepStore, "held">;
  readonly bus: Pick<Bus, "publish">;
  readonly log: Pick<Log, "info" | "error">;
  readonly metrics: Pick<Metrics, "decided">;
  readonly enqueue: Enqueue;
}

/** Walks over what waits for a person and cancels what has waited too long; ends early when it is to stop. */
type Expire = (now: Date, stop: AbortSignal) => Promise<void>;

const HOUR_MS = 3_600_000;

/**
 * `APPROVAL_TTL_HOURS`. The cancel is a change like any other: callbacks go out, streams hear of it, and whoever approves at
 * the same moment wins or is told that it is cancelled.
 */
export function createExpire(deps: ExpireDeps, hoursMax: number): Expire {
  const { upkeep, log } = deps;
  return async (now, stop) => {
    const until = new Date(now.getTime() - hoursMax * HOUR_MS);
    let expired = 0;
    for (let after = ""; !stop.aborted;) {
      const page = await upkeep.held(until, after, EXPIRE_SCAN_ROWS_MAX);
      const late = page.filter(({ heldAt }) => heldAt <= until);
      for (let at = 0; at < late.length && !stop.aborted; at += EXPIRE_AT_ONCE_MAX) {
        const some = late.slice(at, at + EXPIRE_AT_ONCE_MAX);
        const ended = await Promise.all(some.map((held) => expireOne(deps, { ...held, hoursMax }, now)));
        expired += ended.filter(Boolean).length;
      }
      if (page.length < EXPIRE_SCAN_ROWS_MAX) break;
      after = page.at(-1)?.id ?? "";
    }
    if (expired > 0) log.info("approvals.expired", { count: expired });
  };
}

/** False: somebody decided before or does in this moment, or its row was altered. What is still held then is found by the next walk. */
async function expireOne(
  { actions, bus, log, metrics, enqueue }: ExpireDeps,
  held: HeldAction & { readonly hoursMax: number },
  now: Date,
): Promise<boolean> {
  try {
    const action = await actions.find(held.accountId, held.id);
    const change = action === null ? null : expire(action, held, now);
    if (change === null) return false;
    const outbox = enqueue(change.after, now, change.events);
    const { id, accountId, method, host, run } = change.after;
    const audited = { kind: "cancelled", subject: id, detail: { method, host, run } } as const;
    const audit = auditOfSystem(accountId, audited, now);
    if (!(await actions.apply({ change, at: now, outbox, audit }))) return false;
    metrics.decided("cancel");
    bus.publish(change.after);
    return true;
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    // It holds up no other, and is tried again by the next walk.
    log.error("approval.not_expired", { action_id: held.id, error: error instanceof Error ? error.name : "unknown" });
    return false;
  }
}
