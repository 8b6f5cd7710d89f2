import Type, { type TSchema } from "typebox";
import type { ErrorCode, Issue } from "./domain-error.ts";
import { key } from "./schema-helpers.ts";
import { HEADER_NAME_CHARS_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX } from "../config/limits.ts";

const requestId = (description: string) =>
  Type.String({ pattern: "^[A-Za-z0-9._:-]{1,128}$", description, examples: ["my-id.7"] });

/** Headers of requests that say more than HTTP itself does. */
export const REQUEST_HEADERS = {
  "Idempotency-Key": key(
    "Creates of one account with the same value within 24 hours are the same create, whether the first was answered 201 or 200; a refused create is not remembered. Asked before `dedupe`. Quotes around it, as the draft RFC has them, do not count: neither as part of the key nor for its length.",
  ),
  "Last-Event-ID": Type.String({
    pattern: "^[A-Za-z0-9_-]+$",
    description:
      "Id of the last event that was seen: the stream goes on behind it. Without it the stream begins now. An id that " +
      "is none of this stream is refused with 400.",
    examples: ["NDcxMQ"],
  }),
  "X-Request-Id": requestId(
    "Echoed back in the answer's X-Request-Id. No request is refused for it: what is not of this form is replaced by an " +
      "id of ours. An error's request_id is this id where it begins with req_, else one of ours.",
  ),
} as const satisfies Readonly<Record<string, TSchema>>;

export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** Headers of answers. */
export const ANSWER_HEADERS = {
  "X-Request-Id": requestId("Finds this request in the service's log: the request's own id, or one of ours."),
  Location: Type.String({
    format: "uri-reference",
    description: "Where the new action is.",
    examples: ["/v1/actions/act_01kjwa5v00e7v8c9x2m4n6p8qr"],
  }),
  "Retry-After": Type.Integer({ minimum: 1, description: "Seconds to wait before the next request.", examples: [1] }),
  Allow: Type.String({
    pattern: "^[A-Z]+(, [A-Z]+)*$",
    description: "Methods that the path takes.",
    examples: ["GET, HEAD, POST"],
  }),
  "WWW-Authenticate": Type.Literal("Bearer", { description: "How to authenticate.", examples: ["Bearer"] }),
  "Set-Cookie": Type.String({
    description: "The session of the pages for people: where it begins, or its end. Under /v1 it is worth nothing.",
    examples: ["outgate_session=0123456789abcdef; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800"],
  }),
  "Cache-Control": Type.String({
    pattern: "^(private, )?no-store$",
    description: "The answer is for who asked: nobody on its way may keep it.",
    examples: ["no-store"],
  }),
  Vary: Type.Literal("Accept", { description: "The same path answers in several forms.", examples: ["Accept"] }),
  "Referrer-Policy": Type.Literal("no-referrer", {
    description: "The path is a secret: no other site is told of it.",
    examples: ["no-referrer"],
  }),
  "X-Robots-Tag": Type.Literal("noindex, nofollow, noarchive", {
    description: "No search engine may keep it.",
    examples: ["noindex, nofollow, noarchive"],
  }),
  "X-Content-Type-Options": Type.Literal("nosniff", {
    description: "It is what its type says, whatever it looks like.",
    examples: ["nosniff"],
  }),
  "X-Frame-Options": Type.Literal("DENY", { description: "No page may frame it.", examples: ["DENY"] }),
  "Cross-Origin-Resource-Policy": Type.Literal("same-origin", {
    description: "No page of another origin may load it.",
    examples: ["same-origin"],
  }),
  "X-Accel-Buffering": Type.Literal("no", { description: "Proxies pass each event on at once.", examples: ["no"] }),
} as const satisfies Readonly<Record<string, TSchema>>;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** What an answer at a path that is a secret carries, page or not (hostile 7). */
export const SECRET_PATH_HEADERS = [
  "Cache-Control",
  "Vary",
  "Referrer-Policy",
  "X-Robots-Tag",
  "X-Content-Type-Options",
  "X-Frame-Options",
  "Cross-Origin-Resource-Policy",
] as const satisfies readonly AnswerHeader[];

/** What an error of this kind says in its head beside its id (decisions 2). */
export const ERROR_HEADERS: Readonly<Partial<Record<ErrorCode, AnswerHeader>>> = {
  unauthorized: "WWW-Authenticate",
  rate_limited: "Retry-After",
  unavailable: "Retry-After",
  method_not_allowed: "Allow",
};

/** A name has `HEADER_NAME_CHARS_MAX` characters at most; the linter reads patterns, and follows no import. */
export const HEADER_NAME_PATTERN = "^[A-Za-z0-9][!#$%&'*+.^_`|~0-9A-Za-z-]{0,127}$";

/** Printable ASCII, space and tab (RFC 9110, 5.5, without obs-text). */
export const HEADER_VALUE_PATTERN = String.raw`^[\t\x20-\x7e]*$`;

const NAME = new RegExp(HEADER_NAME_PATTERN);

const VALUE = new RegExp(HEADER_VALUE_PATTERN);

const JSON_TYPE = /^application\/(json|[a-z0-9!#$&^_.+-]+\+json)\s*(;.*)?$/i;

/** What frames the message or belongs to the way there. */
const FRAMING = `
  host content-length content-encoding transfer-encoding connection keep-alive te trailer upgrade expect
  http2-settings accept-encoding via cdn-loop date`;

/** What makes a target do something else than was approved: another method, another path, another host. */
const OVERRIDES = `
  x-http-method x-http-method-override x-method-override x-original-method x-override-method x-original-url
  x-original-uri x-rewrite-url x-override-url x-request-uri x-original-path x-host x-original-host
  x-http-host-override x-backend-host x-proxy-host http-method-override method-override x-method http-method
  x-tunneled-method x-tunnelled-method x-restli-method x-http-verb x-verb-override x-http-verb-override`;

/** What a proxy tells its backend of a caller: by these an agent would pass for somebody else, or for the inside. */
const CALLERS = `
  forwarded forwarded-for forwarded-for-ip x-forwarded x-real-ip true-client-ip client-ip x-client-ip
  x-cluster-client-ip cluster-client-ip x-custom-ip-authorization x-remote-ip x-remote-addr x-originating-ip x-source-ip x-original-forwarded-for
  x-original-remote-addr x-proxyuser-ip wl-proxy-client-ip fastly-client-ip cf-connecting-ip
  cf-connecting-ipv6 cf-ipcountry fly-client-ip x-appengine-user-ip x-azure-clientip x-azure-socketip
  x-envoy-external-address x-envoy-internal x-nf-client-connection-ip x-vercel-forwarded-for x-remote-user
  remote-user x-ssl-client-cert x-client-cert`;

const DENIED = new Set([FRAMING, OVERRIDES, CALLERS].flatMap((names) => names.trim().split(/\s+/)));

const DENIED_PREFIXES = [
  "proxy-",
  "x-forwarded-",
  "sec-",
  "webhook-",
  "x-outgate-",
  // Who has signed in at the proxy of a cloud: Azure, Google, Amazon, oauth2-proxy.
  "x-ms-client-principal",
  "x-goog-authenticated-user-",
  "x-goog-iap-",
  "x-amzn-oidc-",
  "x-auth-request-",
];

/** Everything that is wrong with the headers that a caller wants sent (hostile 2); empty when they may go. */
export function headerIssues(headers: Readonly<Record<string, string>>, hasBody: boolean): readonly Issue[] {
  const names = Object.keys(headers);
  const issues = names.flatMap((name) => {
    const message = problemOf(name, headers[name] ?? "", hasBody);
    return message === null ? [] : [{ field: `headers.${name}`, message }];
  });
  return [...issues, ...repeated(names), ...oversize(headers, names)];
}

function problemOf(name: string, value: string, hasBody: boolean): string | null {
  if (name.length > HEADER_NAME_CHARS_MAX || !NAME.test(name))
    return "Is not a header name: use letters, digits and hyphens.";
  const plain = plainHeaderName(name);
  if (DENIED.has(plain) || DENIED_PREFIXES.some((prefix) => plain.startsWith(prefix))) {
    return "May not be set by a caller: Outgate, the connection or a proxy sets it.";
  }
  if (!VALUE.test(value)) return "May hold only printable ASCII, spaces and tabs.";
  if (value.length > HEADER_VALUE_BYTES_MAX) return `Is longer than ${HEADER_VALUE_BYTES_MAX} bytes.`;
  if (plain === "content-type" && hasBody && !JSON_TYPE.test(value)) {
    return "The body is sent as JSON: use application/json or application/*+json.";
  }
  if (plain === "content-type" && /charset/i.test(value.replaceAll(UTF_8, ""))) {
    return "The body is sent in UTF-8: a target that believes another charset reads another body than was approved.";
  }
  return null;
}

const UTF_8 = /;[ \t]*charset=(?:utf-8|"utf-8")(?=[ \t]*(?:;|$))/gi;

/** A header's name as a server may read it: some take `X_Real_IP` and `X.Real.IP` for `X-Real-IP`. */
export function plainHeaderName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

function repeated(names: readonly string[]): readonly Issue[] {
  const seen = new Set<string>();
  return names
    .filter((name) => seen.size === seen.add(name.toLowerCase()).size)
    .map((name) => ({ field: `headers.${name}`, message: "Is there twice: header names are equal without case." }));
}

function oversize(headers: Readonly<Record<string, string>>, names: readonly string[]): readonly Issue[] {
  const issues: Issue[] = [];
  if (names.length > HEADERS_MAX) issues.push({ field: "headers", message: `Has more than ${HEADERS_MAX} headers.` });
  const bytes = names.reduce((sum, name) => sum + name.length + (headers[name]?.length ?? 0), 0);
  if (bytes > HEADERS_BYTES_MAX) {
    issues.push({ field: "headers", message: `Is larger than ${HEADERS_BYTES_MAX} bytes in all.` });
  }
  return issues;
}
