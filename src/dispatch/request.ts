import type { Action } from "../domain/action.ts";
import type { OutboundRequest } from "../ports/sender.ts";
import type { Header, SignedHeaders } from "./signed-headers.ts";

export interface RequestDeps {
  readonly signedHeaders: SignedHeaders;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
}

/**
 * The exact bytes and headers of one attempt: what was approved, and ours over it. Signed by Standard Webhooks with the
 * secret of the account and the target's origin; `webhook-id` and `Idempotency-Key` stay the same over all attempts, so
 * that the target can tell a repeat (decisions 4 and 6).
 */
export function createRequestOf({ signedHeaders, userAgent }: RequestDeps) {
  return async (action: Action, now: Date): Promise<OutboundRequest> => {
    const { id, accountId, url } = action;
    const signed = await signedHeaders({ accountId, url, id, body: action.body ?? "" }, now);
    const ours: readonly Header[] = [...signed, ["X-Outgate-Attempt", String(action.attempts)]];
    const isOurs = (name: string) => ours.some(([our]) => our.toLowerCase() === name.toLowerCase());
    // Refused at the door already; a name that slipped through would make the target read two values of it.
    const theirs = Object.entries(action.headers ?? {})
      .filter(([name]) => !isOurs(name))
      .map(([name, value]): Header => [name, name.toLowerCase() === "user-agent" ? `${value} ${userAgent}` : value]);
    const has = (name: string) => theirs.some(([their]) => their.toLowerCase() === name);
    const defaults: readonly Header[] = [
      ["User-Agent", userAgent],
      ["Accept", "*/*"],
      ["Idempotency-Key", action.id],
      ...(action.body === null ? [] : [["Content-Type", "application/json"] as const]),
    ];
    const headers = [...defaults.filter(([name]) => !has(name.toLowerCase())), ...theirs, ...ours];
    return { url: action.url, method: action.method, headers, body: action.body };
  };
}
