import { maskedAction, premaskAll } from "../receipts/masked-action.ts";
import { type Action, type ActionRequest, type Creator, firstState, largeBytesOf } from "./action.ts";
import { authorize, type Caller, seesWhole } from "../accounts/roles.ts";
import { differs, type HashOf } from "./dedupe.ts";
import { HELD_PER_KEY_MAX } from "../config/limits.ts";
import { decide, NO_FACTS } from "../approvals/policy.ts";
import type { Recipients } from "../approvals/recipients.ts";
import { entryOfRequest } from "../approvals/rejections.ts";
import type { TimelineEvent } from "./timeline.ts";
import type { Bus } from "../events/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Dispatcher } from "../delivery/attempt.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { ActionStore, OutboxRow } from "../../db/store.ts";
import { callbackJson } from "./serialize.ts";
import { hostOf, notificationsFor } from "../delivery/notification.ts";

export interface CreateDeps {
  readonly actions: Pick<ActionStore, "create">;
  readonly clock: Pick<Clock, "now">;
  readonly ids: Pick<Ids, "action">;
  readonly bus: Pick<Bus, "publish">;
  readonly metrics: Pick<Metrics, "created">;
  readonly enqueue: Enqueue;
  readonly dispatcher: Pick<Dispatcher, "reserve">;
  readonly recipients: Pick<Recipients, "factsFor">;
  readonly hashOf: HashOf;
}

interface CreateOptions {
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
 * Stores a validated request as an action that is due or awaits approval, or finds the action with the same `dedupe` or
 * idempotency key. The action is durable when this resolves. If a delivery slot is free, the same commit claims the action,
 * which saves a commit before sending; the answer still shows it as it was created. Throws
 * - `invalid_url` or `validation_error`: the creator may not name this callback or address,
 * - `invalid_request` or `forbidden`: a person rejected the same request within 24 hours, and the reason is missing or it
 *   was requested again too often,
 * - `too_many_held`: too many actions of the key await approval.
 */
export function createCreate(deps: CreateDeps) {
  const { actions, clock, ids, bus, metrics, enqueue, dispatcher, recipients, hashOf } = deps;
  return async (caller: Caller, requested: ActionRequest, options: CreateOptions = {}): Promise<CreateAnswer> => {
    authorize(caller, "create");
    const { creator = caller, reason = null } = options;
    const { callback, notifyEmail } = requested;
    // Most requests name nobody, and need not wait.
    const isPlain = callback === null && notifyEmail === null;
    const account = isPlain ? NO_FACTS : await recipients.factsFor(caller.accountId, creator, requested);
    const facts = { operation: "create", request: requested, caller, creator, account, reason } as const;
    const decision = decide({ ...facts, heldCount: null, rejections: null });
    if (decision.kind === "refuse") throw decision.error;

    const now = clock.now();
    const approve = decision.kind === "hold";
    const action = newAction(requested, { id: ids.action(now), approve, caller, creator, now });
    const reservation = action.approve ? null : dispatcher.reserve(action, largeBytesOf(action));
    const events = firstEvents(action, reason);
    const creation = {
      action,
      events,
      outbox: enqueue(action, now, events),
      claim: reservation?.claim ?? null,
      rejection: entryOfRequest(action, { caller, reason }, hashOf),
    };
    const created = await actions.create(creation).catch((error: unknown) => {
      reservation?.fail();
      throw error;
    });
    if (created.kind === "too_many_held" || created.kind === "rejected_before") {
      reservation?.release();
      const refused = decide({
        ...facts,
        heldCount: created.kind === "too_many_held" ? HELD_PER_KEY_MAX : null,
        rejections: created.kind === "rejected_before" ? created.rejections : null,
      });
      throw refused.kind === "refuse" ? refused.error : new Error(`The store refused a create: ${created.kind}.`);
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

interface NewAction {
  readonly id: string;
  readonly approve: boolean;
  readonly caller: Caller;
  readonly creator: Creator;
  readonly now: Date;
}

function newAction(request: ActionRequest, { id, approve, caller, creator, now }: NewAction): Action {
  return {
    ...request,
    ...firstState(approve, now),
    approve,
    id,
    accountId: caller.accountId,
    revision: 1,
    createdAt: now,
    createdBy: caller.actor,
    keyId: caller.keyId ?? "",
    creator: { role: creator.role, hold: creator.hold },
  };
}

/**
 * The fields in which the request differs from the older action. Where the caller sees that one masked, the masked values
 * are compared: comparing the real ones would let the caller guess secrets by trial.
 */
async function differencesFor(caller: Caller, stored: Action, requested: Action): Promise<readonly string[]> {
  if (seesWhole(caller, stored)) return differs(stored, requested);
  const [older = stored, newer = requested] = await premaskAll([stored, requested], "public");
  return differs(maskedAction(older, "public"), maskedAction(newer, "public"));
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
