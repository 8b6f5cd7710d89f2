import type { Action } from "../domain/action.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { OutboundRequest } from "../ports/sender.ts";

export interface RequestDeps {
  readonly secrets: Pick<Secrets, "sign">;
  readonly signingSecretOf: (accountId: string, origin: string) => Promise<string>;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
}

/**
 * The exact bytes and headers of one attempt: what was approved, and ours over it. Signed by Standard Webhooks with the
 * secret of the account and the target's origin; `webhook-id` and `Idempotency-Key` stay the same over all attempts, so
 * that the target can tell a repeat (decisions 4 and 6).
 */
export function createRequestOf({ secrets, signingSecretOf, userAgent }: RequestDeps) {
  return async (action: Action, now: Date): Promise<OutboundRequest> => {
    const body = action.body ?? "";
    const timestampSeconds = Math.floor(now.getTime() / 1_000);
    const secret = await signingSecretOf(action.accountId, new URL(action.url).origin);
    const ours: readonly Header[] = [
      ["webhook-id", action.id],
      ["webhook-timestamp", String(timestampSeconds)],
      ["webhook-signature", secrets.sign(secret, { id: action.id, timestampSeconds, body })],
      ["X-Outgate-Attempt", String(action.attempts)],
    ];
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

type Header = readonly [name: string, value: string];
