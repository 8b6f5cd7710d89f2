import { USER_AGENT } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { MESSAGE_TIMEOUT_MS, NOTIFY_DELAYS_MS } from "../core/limits.ts";
import type { DeliveryResult, Notification } from "../core/notification.ts";
import {
  attemptMs,
  describeOutcome,
  type Fault,
  isPolicyRefusal,
  isSuccess,
  isWithoutFile,
  type Outcome,
} from "../core/outcome.ts";
import { retryAfterMs } from "../core/retry.ts";
import { StoreUnavailable } from "../core/store.ts";
import { UnreadableSecret, type Header, type SignedHeaders } from "../crypto/secrets.ts";
import type { OutboundRequest, Sender } from "../outbound/sender.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Recipients } from "../approvals/recipients.ts";
import type { CallRates } from "./call-rates.ts";
import type { Deliver } from "./notifications.ts";

interface CallbackNeeds extends PostDeps {
  readonly rates: Pick<CallRates, "turnFor">;
  readonly recipients: Pick<Recipients, "mayCallBack">;
}

/** Posts the body that was stored with the change, signed with the account's secret for callbacks. */
export function createCallback({ clock, config, store }: AppContext, needs: CallbackNeeds): Deliver {
  const { outbox } = store;
  const timeoutMsMax = config.attemptTimeoutMs;
  const altered = () => toDelivery({ kind: "not_sent", fault: "altered" }, clock.now(), timeoutMsMax);
  return async (notification, stop) => {
    const { id, accountId, attempts } = notification;
    const { target: url } = notification.message;
    // Read only now, so that rows that wait for a slot don't hold a megabyte each.
    const body = await outbox.payload(id);
    // The row was altered: a retry would not help.
    if (body === null || !URL.canParse(url)) return altered();
    const creator = await outbox.findCreator(id);
    if (creator === null) return altered();
    // Checked at every attempt, since hosts can be removed from the list.
    if (!(await needs.recipients.mayCallBack(accountId, creator, url))) return NOT_LISTED;
    // As for actions, not at the last attempt. The receiver detects a repeat by its `webhook-id`.
    const keepFor = attempts <= NOTIFY_DELAYS_MS.length ? accountId : null;
    const mayBegin = needs.rates.turnFor(notification, "callbacks");
    return post(
      clock,
      needs,
      notification,
      { accountId, url, body, isSigned: true },
      { timeoutMsMax, stop, keepFor, mayBegin },
    );
  };
}

const NOT_LISTED: DeliveryResult = {
  kind: "withheld",
  error:
    "No callback was sent: its host is not listed for this account, and callbacks of a key with a hold or a limit, and of agents where the account has rules, go only to listed hosts.",
};

/** What is needed to post a text to a callback or channel. */
export interface PostDeps {
  readonly sender: Sender;
  readonly signedHeaders: SignedHeaders;
}

/** A text to post. */
interface Post {
  readonly accountId: string;
  readonly url: string;
  /** `webhook-id`: the same for all attempts. */
  readonly id: string;
  readonly body: string;
  /** With the account's secret for callbacks. */
  readonly isSigned: boolean;
}

/** The request that posts a text. */
async function postRequest(
  { signedHeaders }: Pick<PostDeps, "signedHeaders">,
  { isSigned, ...text }: Post,
  now: Date,
): Promise<OutboundRequest> {
  const signed = isSigned ? await signedHeaders(text, now) : [];
  const { url, body } = text;
  return {
    url,
    method: "POST",
    headers: [["User-Agent", USER_AGENT], ["Content-Type", "application/json"], ...signed],
    body,
  };
}

export type AlterHeaders = (headers: readonly Header[]) => readonly Header[];

/** Posts a text at once, for somebody who waits for the result. */
export async function postNow(
  { clock, ids }: Pick<AppContext, "clock" | "ids">,
  needs: PostDeps,
  text: Omit<Post, "id">,
  alter: AlterHeaders = (headers) => headers,
): Promise<Outcome> {
  const now = clock.now();
  const request = await postRequest(needs, { ...text, id: `test_${ids.row(now)}` }, now).catch(deliveryFault);
  if (typeof request === "string") return { kind: "not_sent", fault: request };
  const sent = { ...request, headers: alter(request.headers) };
  const outcome = await needs.sender.send(sent, { timeoutMs: MESSAGE_TIMEOUT_MS });
  return outcome.kind === "stopped" ? { kind: "unknown", fault: "interrupted" } : outcome;
}

interface PostLimits {
  readonly timeoutMsMax: number;
  readonly stop: AbortSignal;
  /** See `SendLimits`. */
  readonly keepFor: string | null;
  /** Whether the rate of its host lets it leave; resolves when it may. */
  readonly mayBegin?: () => boolean | Promise<boolean>;
}

/** Posts a text within what is left of the claim's time. */
export async function post(
  clock: Clock,
  needs: PostDeps,
  notification: Notification,
  text: Omit<Post, "id">,
  { timeoutMsMax, stop, keepFor, mayBegin = () => true }: PostLimits,
): Promise<DeliveryResult> {
  const now = clock.now();
  const request = await postRequest(needs, { ...text, id: notification.id }, now).catch(deliveryFault);
  if (typeof request === "string") return toDelivery({ kind: "not_sent", fault: request }, now, timeoutMsMax);
  const timeoutMs = attemptMs(notification, clock.now(), timeoutMsMax);
  if (timeoutMs === 0) return { kind: "not_started", why: "late" };
  let why: "stopping" | "rated" = "stopping";
  const outcome = await needs.sender.send(request, {
    timeoutMs,
    stop,
    keepFor,
    async mayBegin() {
      const isInTurn = await mayBegin();
      if (!isInTurn) why = "rated";
      return isInTurn;
    },
  });
  if (outcome.kind === "stopped") return { kind: "not_started", why };
  return toDelivery(outcome, clock.now(), timeoutMs);
}

/** Why nothing is sent. Rethrows the error if the store is unavailable. */
function deliveryFault(error: unknown): Fault {
  if (error instanceof StoreUnavailable) throw error;
  // An unreadable secret is retried, because a rotation can replace it. Any other error means that the row was altered.
  return error instanceof UnreadableSecret ? "unsignable" : "altered";
}

/** What the outcome of a POST means for a callback or message. */
export function toDelivery(outcome: Outcome, now: Date, timeoutMs: number): DeliveryResult {
  if (isSuccess(outcome, "POST")) return { kind: "delivered" };
  if (isWithoutFile(outcome)) return { kind: "not_started", why: "no_file" };
  const error = describeOutcome(outcome, timeoutMs);
  if (isPolicyRefusal(outcome)) return { kind: "refused", error };
  if (outcome.kind !== "answered" && outcome.fault === "interrupted") return { kind: "interrupted", error };
  const notBeforeMs = outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null;
  return { kind: "failed", error, notBeforeMs };
}
