import type { Action } from "../actions/action.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import type { Secrets } from "../crypto/types.ts";
import type { ActionStore } from "../../db/store.ts";
import { API } from "../api/operations.ts";
import { receiptJson } from "./schema.ts";
import { maskOneAhead } from "./masked-action.ts";
import type { Clock } from "../runtime/clock.ts";
import { receiptPage } from "../pages/receipt.tsx";
import { prefersJson } from "../http/query.ts";
import { json, noSuchLink } from "../http/errors.ts";
import { page, pageHeaders } from "../http/page.ts";
import { pageRoute, type Route } from "../http/router.ts";

/** The content of a receipt, not yet masked. */
interface Receipt {
  readonly action: Action;
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
}

/** The receipt of a token; null: invalid token, or the action was deleted. */
type ReadReceipt = (token: string) => Promise<Receipt | null>;

interface ReceiptDeps {
  readonly actions: Pick<ActionStore, "findById" | "timeline">;
  readonly secrets: Pick<Secrets, "readReceiptToken">;
}

/** Without a caller: the token is the only credential. */
export function createReadReceipt({ actions, secrets }: ReceiptDeps): ReadReceipt {
  return async (token) => {
    const id = secrets.readReceiptToken(token);
    const action = id === null ? null : await actions.findById(id);
    if (action === null) return null;
    return { action, timeline: await actions.timeline(action.accountId, action.id) };
  };
}

export interface ReceiptRouteDeps {
  readonly readReceipt: ReadReceipt;
  readonly clock: Clock;
}

const VARY = { vary: "Accept" } as const;

/** The receipt of an action as a page or as JSON, for everyone who has the link. */
export function receiptRoutes({ readReceipt, clock }: ReceiptRouteDeps): readonly Route[] {
  const { method, path, id } = API.getReceipt;
  return [
    {
      ...pageRoute("receipt", method, path, async (context, params) => {
        const isJson = prefersJson(context.request);
        const receipt = await readReceipt(params["token"] ?? "");
        if (receipt === null) throw noSuchLink();
        const { timeline } = receipt;
        const action = await maskOneAhead(receipt.action, "public");
        context.actionId = action.id;
        if (!isJson) return page("receipt", receiptPage({ action, timeline }), { headers: VARY });
        return json(receiptJson(action, timeline, clock.now()), 200, { ...pageHeaders("receipt"), ...VARY });
      }),
      operationId: id,
    },
  ];
}
