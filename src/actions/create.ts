import { maskedAction, maskAhead } from "../receipts/masked-action.ts";
import { type Action, type ActionRequest, firstState, largeBytesOf } from "./action.ts";
import { authorize, type Caller, seesWhole } from "../accounts/roles.ts";
import type { Creator } from "../approvals/creator.ts";
import { differs, type HashOf } from "./dedupe.ts";
import { DomainError, type Issue } from "../api/domain-error.ts";
import { HELD_PER_KEY_MAX } from "../config/limits.ts";
import { noteOfCreate } from "../approvals/rejections.ts";
import type { TimelineEvent } from "./timeline.ts";
import type { Bus } from "../events/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Dispatcher } from "../delivery/slots.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { ActionStore, Created, OutboxRow } from "../../db/store.ts";
import type { RecipientCheck } from "../approvals/recipients.ts";
import { callbackJson } from "./serialize.ts";
import { hostOf, notificationsFor } from "../delivery/notification.ts";

export interface CreateDeps {
  readonly actions: ActionStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly bus: Bus;
  readonly metrics: Metrics;
  readonly enqueue: Enqueue;
  readonly dispatcher: Dispatcher;
  readonly recipients: Pick<RecipientCheck, "issues">;
  readonly hashOf: HashOf;
}

export interface CreateOptions {
  /** Why the call is requested; shown in the timeline and to approvers. */
  readonly reason?: string | null;
  /** Whose role and hold limit the action; the caller's unless a person repeats the request of another key. */
  readonly creator?: Creator;
}

/** The new action, or with `differs` the older one that its key means. */
interface CreateAnswer {
  readonly action: Action;
  readonly differs?: readonly string[];
}

/**
 * Stores a validated action, or finds the one with the same `dedupe` or idempotency key. The action is durable when this
 * resolves. If a delivery slot is free, the same commit claims the action, which saves a commit before sending; the answer
 * still shows it as it was created. Throws
 * - `invalid_url` or `validation_error`: the creator may not name this callback or address,
 * - `invalid_request` or `forbidden`: a person rejected the same request within 24 hours, and the reason is missing or it
 *   was requested again too often,
 * - `too_many_held`: too many actions of the key await approval.
 */
export function createCreate(deps: CreateDeps) {
  const { actions, clock, ids, bus, metrics, enqueue, dispatcher, recipients, hashOf } = deps;
  return async (caller: Caller, request: ActionRequest, options: CreateOptions = {}): Promise<CreateAnswer> => {
    authorize(caller, "create");
    const { creator = caller, reason = null } = options;
    throwAny(await recipients.issues(caller.accountId, creator, request));
    const now = clock.now();
    const action: Action = {
      ...request,
      ...firstState(request.approve, now),
      id: ids.action(now),
      accountId: caller.accountId,
      revision: 1,
      createdAt: now,
      createdBy: caller.actor,
      keyId: caller.keyId ?? "",
      creator: { role: creator.role, hold: creator.hold },
    };
    const reservation = action.approve ? null : dispatcher.reserve(action, largeBytesOf(action));
    const events = firstEvents(action, reason);
    const creation = {
      action,
      events,
      outbox: enqueue(action, now, events),
      claim: reservation?.claim ?? null,
      note: noteOfCreate(request, { caller, reason }, hashOf),
    };
    const created = await actions.create(creation).catch((error: unknown) => {
      reservation?.fail(action);
      throw error;
    });
    if (created.kind === "too_many_held" || created.kind === "rejected_before") {
      reservation?.release();
      throw refusalOf(created);
    }
    metrics.created(created.kind);
    if (created.kind === "matched") {
      reservation?.release();
      return { action: created.action, differs: await differencesFor(caller, created.action, action) };
    }
    if (reservation !== null && created.claimed !== null) {
      reservation.commit(action, created.claimed);
      return { action };
    }
    reservation?.release();
    bus.publish(action);
    return { action };
  };
}

/**
 * The fields in which the request differs from the older action. Where the caller sees that one masked, the masked values
 * are compared: comparing the real ones would let the caller guess secrets by trial.
 */
async function differencesFor(caller: Caller, stored: Action, requested: Action): Promise<readonly string[]> {
  if (seesWhole(caller, stored)) return differs(stored, requested);
  const [older = stored, newer = requested] = await maskAhead([stored, requested], "public");
  return differs(maskedAction(older, "public"), maskedAction(newer, "public"));
}

type NotCreated = Extract<Created, { readonly kind: "too_many_held" | "rejected_before" }>;

function refusalOf(created: NotCreated): DomainError {
  if (created.kind === "rejected_before") {
    const { refused, message, issues } = created.refusal;
    return new DomainError(refused, message, issues);
  }
  return new DomainError(
    "too_many_held",
    `This key has ${HELD_PER_KEY_MAX} actions that await approval. Wait until some are approved or rejected, or cancel those that are not needed any more.`,
  );
}

function throwAny(issues: readonly Issue[]): void {
  if (issues.length === 0) return;
  if (issues.some(({ field }) => field === "callback")) {
    throw new DomainError("invalid_url", "No callback may go to this URL.", issues);
  }
  throw new DomainError("validation_error", "The request has fields that are not valid.", issues);
}

function firstEvents(action: Action, reason: string | null): readonly TimelineEvent[] {
  const created: TimelineEvent = { type: "created", actor: action.createdBy, ...(reason === null ? {} : { reason }) };
  return action.approve ? [created, { type: "held" }] : [created];
}

/** The outbox rows (callbacks and mails) for a change of an action with these events. */
export type Enqueue = (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];

interface EnqueueDeps {
  readonly ids: Pick<Ids, "row">;
  readonly receiptUrl: (actionId: string) => string;
}

/** Renders the body of a callback at the time of the change; a mail is rendered when it is sent. */
export function createEnqueue({ ids, receiptUrl }: EnqueueDeps): Enqueue {
  return (action, at, events) =>
    notificationsFor(action, events).map((message) => ({
      id: ids.row(at),
      message,
      host: hostOf(message),
      payload: message.kind === "callback" ? callbackJson(message.event, action, at, receiptUrl(action.id)) : null,
    }));
}
