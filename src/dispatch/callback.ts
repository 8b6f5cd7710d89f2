import type { Delivery, Notification } from "../domain/notification.ts";
import { attemptMs } from "../domain/lease.ts";
import { retryAfterMs } from "../domain/backoff.ts";
import { describe, type Fault, isPolicyRefusal, isSuccess, type Outcome } from "../domain/outcome.ts";
import type { Clock } from "../ports/clock.ts";
import type { Recipients } from "../ports/recipients.ts";
import { UnreadableSecret } from "../ports/secrets.ts";
import type { OutboundRequest, Sender } from "../ports/sender.ts";
import { type OutboxStore, StoreUnavailable } from "../ports/store.ts";
import type { SignedHeaders } from "./signed-headers.ts";

export interface CallbackDeps {
  readonly outbox: Pick<OutboxStore, "payload" | "creatorOf">;
  readonly recipients: Pick<Recipients, "mayCallBack">;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly signedHeaders: SignedHeaders;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
  readonly attemptTimeoutMs: number;
}

/** Makes one attempt to deliver a notification. It rejects only where the store is away, and then nothing has left. */
export type Deliver = (notification: Notification, stop: AbortSignal) => Promise<Delivery>;

/**
 * Posts the body that was fixed with the change, signed as actions are (decisions 8). The target is judged at every
 * attempt, and whatever it does is an outcome, as for an action (hostile 4).
 */
export function createCallback(deps: CallbackDeps): Deliver {
  const { outbox, recipients, sender, clock, signedHeaders, userAgent, attemptTimeoutMs } = deps;
  const unsent = (fault: Fault) => deliveryOf({ kind: "not_sent", fault }, clock.now(), attemptTimeoutMs);
  return async (notification, stop) => {
    const { id, accountId } = notification;
    const { target } = notification.message;
    // Read only now: rows that wait for a slot must not hold a megabyte each.
    const body = await outbox.payload(id);
    // A row by hand. It would be no better at the next attempt, and nothing has left.
    if (body === null || !URL.canParse(target)) return unsent("altered");
    const creator = await outbox.creatorOf(id);
    if (creator === null) return unsent("altered");
    // At every attempt, since the list may have become shorter.
    if (!(await recipients.mayCallBack(accountId, creator, target))) return NOT_LISTED;
    const signed = await signedHeaders({ accountId, url: target, id, body }, clock.now()).catch(faultOf);
    if (typeof signed === "string") return unsent(signed);
    const request: OutboundRequest = {
      url: target,
      method: "POST",
      headers: [["User-Agent", userAgent], ["Content-Type", "application/json"], ...signed],
      body,
    };
    const timeoutMs = attemptMs(notification, clock.now(), attemptTimeoutMs);
    if (timeoutMs === 0) return { kind: "not_started", why: "late" };
    const outcome = await sender.send(request, { timeoutMs, stop });
    if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
    return deliveryOf(outcome, clock.now(), timeoutMs);
  };
}

const NOT_LISTED: Delivery = {
  kind: "withheld",
  error:
    "No callback was sent: its host is not listed for this account, and callbacks of a key with a hold go only to listed hosts.",
};

/** Why nothing is sent; throws where the store is away. */
function faultOf(error: unknown): Fault {
  if (error instanceof StoreUnavailable) throw error;
  // The one can be mended before it is given up, by a rotation; else the account is gone, from a row by hand.
  return error instanceof UnreadableSecret ? "unsignable" : "altered";
}

function deliveryOf(outcome: Outcome, now: Date, timeoutMs: number): Delivery {
  if (isSuccess(outcome, "POST")) return { kind: "delivered" };
  const error = describe(outcome, timeoutMs);
  if (isPolicyRefusal(outcome)) return { kind: "refused", error };
  if (outcome.kind !== "answered" && outcome.fault === "interrupted") return { kind: "interrupted", error };
  return {
    kind: "failed",
    error,
    notBeforeMs: outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null,
  };
}
