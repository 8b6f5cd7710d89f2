import type { Recipients } from "../approvals/recipients.ts";
import { NOTIFY_DELAYS_MS } from "../core/limits.ts";
import type { DeliveryResult } from "../core/notification.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { CallRates } from "./call-rates.ts";
import type { Deliver } from "./notifications.ts";
import { deliveryOf, post, type PostDeps } from "./post.ts";

interface CallbackNeeds extends PostDeps {
  readonly rates: Pick<CallRates, "turnOf">;
  readonly recipients: Pick<Recipients, "mayCallBack">;
}

/** Posts the body that was stored with the change, signed with the account's secret for callbacks. */
export function createCallback({ clock, config, store }: AppContext, needs: CallbackNeeds): Deliver {
  const { outbox } = store;
  const timeoutMsMax = config.attemptTimeoutMs;
  const altered = () => deliveryOf({ kind: "not_sent", fault: "altered" }, clock.now(), timeoutMsMax);
  return async (notification, stop) => {
    const { id, accountId, attempts } = notification;
    const { target: url } = notification.message;
    // Read only now, so that rows that wait for a slot don't hold a megabyte each.
    const body = await outbox.payload(id);
    // The row was altered: a retry would not help.
    if (body === null || !URL.canParse(url)) return altered();
    const creator = await outbox.creatorOf(id);
    if (creator === null) return altered();
    // Checked at every attempt, since hosts can be removed from the list.
    if (!(await needs.recipients.mayCallBack(accountId, creator, url))) return NOT_LISTED;
    // As for actions, not at the last attempt. The receiver detects a repeat by its `webhook-id`.
    const keepFor = attempts <= NOTIFY_DELAYS_MS.length ? accountId : null;
    const mayBegin = needs.rates.turnOf(notification, "callbacks");
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
