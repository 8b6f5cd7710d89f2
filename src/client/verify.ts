import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { OutgateError } from "./transport.ts";
import type { SignedRequest, Verified } from "./types.ts";

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const NAMES = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;

/**
 * Checks that Outgate signed a call or callback with this secret (`whsec_…`) within the last five minutes. On the day after a
 * rotation, pass both secrets: either may have signed. Throws an `OutgateError` with the code `invalid_signature`. The
 * signature covers neither method nor URL, so each origin has its own secret.
 */
export function verify(secret: string | readonly string[], { headers, body }: SignedRequest): Verified {
  const given = Object.fromEntries(NAMES.map((name) => [name, readHeader(headers, name)]));
  const text = bodyText(body);
  let cause: unknown = null;
  for (const one of [secret].flat()) {
    try {
      new Webhook(one).verify(text, given, { jsonParse: false });
      return { id: given["webhook-id"] ?? "", timestamp: new Date(Number(given["webhook-timestamp"]) * 1_000) };
    } catch (error) {
      cause = error;
    }
  }
  const why = cause instanceof WebhookVerificationError ? cause.message : "The secret can't be read";
  throw new OutgateError("invalid_signature", `This is not a request that Outgate signed: ${why}.`, { cause });
}

function readHeader(headers: SignedRequest["headers"], name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const [, value = ""] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? [];
  return typeof value === "string" ? value : value.join(" ");
}

/** The body as text, which the library signs. Refuses bytes that are not UTF-8, which it would change. */
function bodyText(body: SignedRequest["body"]): string {
  if (typeof body === "string") return body;
  try {
    return UTF_8.decode(body);
  } catch (cause) {
    throw new OutgateError(
      "invalid_signature",
      "The body is not UTF-8. Verify it by the steps at /docs/verify, which work for any bytes.",
      { cause },
    );
  }
}
