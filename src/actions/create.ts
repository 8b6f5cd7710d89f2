import { maskedAction, maskAhead } from "../receipts/masked-action.ts";
import { type Action, type ActionRequest, firstState, largeBytesOf } from "./action.ts";
import { authorize, type Caller } from "../accounts/roles.ts";
import type { Creator } from "../approvals/creator.ts";
import { differs, type HashOf } from "./dedupe.ts";
import { DomainError, type Issue } from "../api/domain-error.ts";
import { HELD_PER_KEY_MAX } from "../config/limits.ts";
import { noteOfCreate } from "../approvals/rejections.ts";
import { seesWhole } from "../accounts/scope.ts";
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

/** What somebody says with a create beside the request. */
export interface CreateOptions {
  /** Why it is asked for: told in the timeline, and to whoever decides. */
  readonly reason?: string | null;
  /** Under whose rules, where somebody else has written the request. */
  readonly creator?: Creator;
}

/** The action that a create made or found. `differs` is there only when it was found (decisions 3). */
export interface CreateAnswer {
  readonly action: Action;
  readonly differs?: readonly string[];
}

/**
 * Stores an action that has passed every check of its own, or finds the one that its key means. Throws `invalid_url` or
 * `validation_error` where it names a callback or an address that its creator may not name; `invalid_request` or `forbidden`
 * where a person has rejected the same within 24 hours, and no reason is given or it was asked for again too often. It is
 * durable when this resolves, and the answer shows it as it was created, whatever has happened by then: where a slot is
 * free the commit that creates it claims it too, so that it is sent one commit sooner.
 */
export function createCreate(deps: CreateDeps) {
  const { actions, clock, ids, bus, metrics, enqueue, dispatcher, recipients, hashOf } = deps;
  return async (caller: Caller, request: ActionRequest, options: CreateOptions = {}): Promise<CreateAnswer> => {
    authorize(caller, "create");
    const { creator = caller, reason = null } = options;
    refuseAny(await recipients.issues(caller.accountId, creator, request));
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
 * In what the request differs from the older action. Of one that the caller sees masked no more is compared than is shown of
 * it: whoever tries values would learn which of them is the right one.
 */
async function differencesFor(caller: Caller, stored: Action, asked: Action): Promise<readonly string[]> {
  if (seesWhole(caller, stored)) return differs(stored, asked);
  const [one = stored, other = asked] = await maskAhead([stored, asked], "public");
  return differs(maskedAction(one, "public"), maskedAction(other, "public"));
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

function refuseAny(issues: readonly Issue[]): void {
  if (issues.length === 0) return;
  if (issues.some(({ field }) => field === "callback")) {
    throw new DomainError("invalid_url", "No callback may go to this URL.", issues);
  }
  throw new DomainError("validation_error", "The request has fields that are not valid.", issues);
}

function firstEvents(action: Action, reason: string | null): readonly TimelineEvent[] {
  const why = reason === null ? {} : { reason };
  const created: TimelineEvent = { type: "created", actor: action.createdBy, ...why };
  return action.approve ? [created, { type: "held" }] : [created];
}

/** The outbox rows that an action owes because it has come into its present state, in this way. */
export type Enqueue = (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];

export interface EnqueueDeps {
  readonly ids: Pick<Ids, "row">;
  readonly receiptUrl: (actionId: string) => string;
}

/** Fixes the body of a callback at the moment of the change; a mail is written when it is sent. */
export function createEnqueue({ ids, receiptUrl }: EnqueueDeps): Enqueue {
  return (action, at, events) =>
    notificationsFor(action, events).map((message) => ({
      id: ids.row(at),
      message,
      host: hostOf(message),
      payload: message.kind === "callback" ? callbackJson(message.event, action, at, receiptUrl(action.id)) : null,
    }));
}
