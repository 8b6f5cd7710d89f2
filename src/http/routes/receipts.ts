import type { ReadReceipt } from "../../actions/receipt.ts";
import { API } from "../../contract/operations.ts";
import { receiptJson } from "../../contract/receipt.ts";
import { maskOneAhead } from "../../masking/ahead.ts";
import type { Clock } from "../../ports/clock.ts";
import { receiptPage } from "../../web/receipt.tsx";
import { prefersJson } from "../accept.ts";
import { json } from "../answer.ts";
import { page, pageHeaders } from "../page.ts";
import { noSuchLink } from "../no-such-link.ts";
import { pageRoute, type Route } from "../route.ts";

export interface ReceiptRouteDeps {
  readonly readReceipt: ReadReceipt;
  readonly clock: Clock;
}

const VARY = { vary: "Accept" } as const;

/** The receipt of an action, for people and for programs; whoever has the link may see it (decisions 1). */
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
