import type { Delivery, Notification } from "../domain/notification.ts";
import { retryAfterMs } from "../domain/backoff.ts";
import { describe, type Fault, isPolicyRefusal, isSuccess, type Outcome } from "../domain/outcome.ts";
import type { Clock } from "../ports/clock.ts";
import { UnreadableSecret } from "../ports/secrets.ts";
import type { OutboundRequest, Sender } from "../ports/sender.ts";
import type { OutboxStore } from "../ports/store.ts";
import type { SignedHeaders } from "./signed-headers.ts";

export interface CallbackDeps {
  readonly outbox: Pick<OutboxStore, "payload">;
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
  const { outbox, sender, clock, signedHeaders, userAgent, attemptTimeoutMs } = deps;
  const unsent = (fault: Fault) => deliveryOf({ kind: "not_sent", fault }, clock.now(), attemptTimeoutMs);
  return async ({ id, accountId, owed: { target } }, stop) => {
    // Read only now: rows that wait for a slot must not hold a megabyte each.
    const body = await outbox.payload(id);
    // A row by hand. It would be no better at the next attempt, and nothing has left.
    if (body === null || !URL.canParse(target)) return unsent("altered");
    const signed = await signedHeaders({ accountId, url: target, id, body }, clock.now()).catch(unlessUnreadable);
    if (signed === null) return unsent("unsignable");
    const request: OutboundRequest = {
      url: target,
      method: "POST",
      headers: [["User-Agent", userAgent], ["Content-Type", "application/json"], ...signed],
      body,
    };
    const outcome = await sender.send(request, { timeoutMs: attemptTimeoutMs, stop });
    return deliveryOf(outcome, clock.now(), attemptTimeoutMs);
  };
}

/** Somebody can mend it before it is given up, by a rotation. */
function unlessUnreadable(error: unknown): null {
  if (error instanceof UnreadableSecret) return null;
  throw error;
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
