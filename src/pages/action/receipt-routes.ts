import Type from "typebox";
import { SECRET_PATH_HEADERS } from "../../api/headers.ts";
import {
  ReceiptJson,
  receiptJson,
  ReceiptToken,
  LATE_PARAMETER,
  partIn,
  receiptReload,
} from "../../receipts/receipt.ts";
import { see } from "../../receipts/see.ts";
import type { Clock } from "../../core/clock.ts";
import { receiptPage } from "./receipt.tsx";
import { RECEIPT_WAIT_MS_MAX, RECEIPTS_AT_ONCE_MAX, RECEIPTS_WAITING_MAX } from "../../core/limits.ts";
import { DomainError } from "../../core/domain-error.ts";
import type { RequestContext } from "../../http/request.ts";
import { prefersJson, json, page, pageHeaders } from "../../http/response.ts";
import { LINK_NOT_FOUND, linkNotFound } from "../../http/errors.ts";
import { createPageRoutes, operation, pathParams } from "../../http/operation.ts";
import type { PageDeps } from "../frame/page-deps.ts";

/**
 * Runs at most `RECEIPTS_AT_ONCE_MAX` at a time, in order, because whoever has a link may ask for any number, and each may take
 * a megabyte and the masking thread. Throws `unavailable` after a wait of `RECEIPT_WAIT_MS_MAX`.
 */
function createTurns(clock: Pick<Clock, "after">): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting = new Set<() => void>();
  let running = 0;
  const turn = async (): Promise<void> => {
    if (running < RECEIPTS_AT_ONCE_MAX) {
      running += 1;
      return;
    }
    if (waiting.size >= RECEIPTS_WAITING_MAX) throw tooMany();
    const mine = Promise.withResolvers<void>();
    waiting.add(mine.resolve);
    const cancelTimer = clock.after(RECEIPT_WAIT_MS_MAX, () => {
      if (waiting.delete(mine.resolve)) mine.reject(tooMany());
    });
    await mine.promise.finally(cancelTimer);
  };
  return async (work) => {
    await turn();
    try {
      return await work();
    } finally {
      // Hands the place to the next one, so that no newcomer overtakes it.
      const [next] = waiting;
      if (next === undefined) running -= 1;
      else {
        waiting.delete(next);
        next();
      }
    }
  };
}

function tooMany(): DomainError {
  return new DomainError("unavailable", "Too many receipts are being opened. Try again in a few seconds.");
}

const VARY = { vary: "Accept" } as const;

/** A malformed token gets the same answer as an unknown one. */
const TokenParams = pathParams(Type.Object({ token: ReceiptToken }), LINK_NOT_FOUND);

/** The receipt of an action as a page or as JSON, for whoever has the link. */
export function receiptRoutes({ readReceipt, clock }: PageDeps) {
  const inTurn = createTurns(clock);
  const show = async (context: RequestContext, token: string): Promise<Response> => {
    const isJson = prefersJson(context.request);
    const receipt = await readReceipt(token);
    if (receipt === null) throw linkNotFound();
    const { timeline } = receipt;
    const action = await see(receipt.action, "public");
    context.actionId = action.id;
    const now = clock.now();
    if (isJson) return json(receiptJson(action, timeline, now), 200, { ...pageHeaders("receipt"), ...VARY });
    const part = partIn(context.search);
    const times = { since: timeline.at(-1)?.at ?? action.createdAt, now };
    // Parts before the newest don't change.
    const reload = part > 0 ? null : receiptReload(action, times, context.search);
    const isLate = new URLSearchParams(context.search).has(LATE_PARAMETER);
    const html = receiptPage({ action, timeline, part, now, reload, isLate });
    if (reload === null) return page("receipt", html, { headers: VARY });
    // A header and not an element, so that a saved copy does not reload.
    const refresh = reload.isOn ? { refresh: String(reload.seconds) } : {};
    return page("live", html, { headers: { ...VARY, ...refresh } });
  };
  return createPageRoutes("receipt").get(
    "/r/:token",
    ({ context, params }) => inTurn(() => show(context, params.token)),
    operation({
      operationId: "getReceipt",
      permission: null,
      tag: "Actions",
      summary: "Get the receipt of an action by its link, as JSON or as a page",
      description: "Returns the receipt of an action. Needs no key: anyone with the link can read it.",
      notes: [
        "JSON with `Accept: application/json`, else a page for people; errors have the same form.",
        "The page reloads itself until the action has ended, unless `?reload=off` is added.",
        "It has at most 64 kB of a body and the 50 newest attempts; the page links to earlier ones.",
      ],
      params: TokenParams,
      answers: {
        200: {
          description: "The receipt: JSON with `Accept: application/json`, else a page.",
          schema: ReceiptJson,
          alsoAs: {
            mediaType: "text/html",
            schema: Type.String({
              description: "A page for people, with a Content-Security-Policy.",
              examples: ["<!doctype html>"],
            }),
          },
          headers: SECRET_PATH_HEADERS,
        },
      },
      errors: ["not_found", "internal_error", "unavailable"],
    }),
  );
}
