import type { TSchema } from "typebox";
import type { ErrorCode } from "../core/domain-error.ts";
import { constant, key, plainText, positive } from "./schema-helpers.ts";

/** Has no pattern, because generated clients would refuse ids that the service replaces. */
const requestId = (description: string) => plainText(description, "my-id.7");

/** The request headers in the API description. */
export const REQUEST_HEADERS = {
  "Idempotency-Key": key(
    "Creates of one account with the same value within 24 hours return the same action, whether the first was answered 201 or 200; a refused create is not remembered. Checked before `dedupe`. Surrounding quotes, as in the draft RFC, are not part of the key. A key with a comma and a space must be in quotes: without them it is refused, as is a header given twice.",
  ),
  "Last-Event-ID": plainText(
    "Id of the last event received: the stream continues after it. Without it the stream starts with new events. An " +
      "id that is not of this stream is refused with 400.",
    "NDcxMQ",
    { pattern: "^[A-Za-z0-9_-]+$" },
  ),
  "X-Request-Id": requestId(
    "Returned in the response's X-Request-Id: 1 to 128 letters, digits and . _ : or -. A value of another form is replaced by a new id, not refused. An error's " +
      "request_id is this id where it begins with req_, else a new one.",
  ),
} as const satisfies Readonly<Record<string, TSchema>>;

export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** The response headers in the API description. */
export const ANSWER_HEADERS = {
  "X-Request-Id": requestId(
    "Identifies this request in the service's log: the id that the request sent, or a new one.",
  ),
  Location: plainText("Path of the new action.", "/v1/actions/act_01kjwa5v00e7v8c9x2m4n6p8qr", {
    format: "uri-reference",
  }),
  "Retry-After": positive("Seconds to wait before the next request.", 1),
  Allow: plainText("Methods that the path supports.", "GET, HEAD, POST", { pattern: "^[A-Z]+(, [A-Z]+)*$" }),
  "WWW-Authenticate": constant("Bearer", "How to authenticate."),
  "Set-Cookie": plainText(
    "Sets or clears the session cookie of the pages for people. It does not authenticate under /v1.",
    "outgate_session=0123456789abcdef; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800",
  ),
  "Cache-Control": plainText("No one may cache the response.", "no-store", { pattern: "^(private, )?no-store$" }),
  "Content-Disposition": plainText(
    "Browsers save the response as a file of this name.",
    'attachment; filename="actions.csv"',
  ),
  Vary: constant("Accept", "The response depends on the Accept header."),
  "Referrer-Policy": constant("no-referrer", "The path is a secret: browsers must not send it to other sites."),
  "X-Robots-Tag": constant("noindex, nofollow, noarchive", "Search engines must not index it."),
  "X-Content-Type-Options": constant("nosniff", "Browsers must not guess another content type."),
  "X-Frame-Options": constant("DENY", "No page may embed it in a frame."),
  "Cross-Origin-Resource-Policy": constant("same-origin", "No page of another origin may load it."),
  "X-Accel-Buffering": constant("no", "Proxies must not buffer events."),
} as const satisfies Readonly<Record<string, TSchema>>;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** Headers of every response at a secret path, HTML or JSON. */
export const SECRET_PATH_HEADERS = [
  "Cache-Control",
  "Vary",
  "Referrer-Policy",
  "X-Robots-Tag",
  "X-Content-Type-Options",
  "X-Frame-Options",
  "Cross-Origin-Resource-Policy",
] as const satisfies readonly AnswerHeader[];

export const ERROR_HEADERS: Readonly<Partial<Record<ErrorCode, AnswerHeader>>> = {
  unauthorized: "WWW-Authenticate",
  rate_limited: "Retry-After",
  unavailable: "Retry-After",
  method_not_allowed: "Allow",
};
