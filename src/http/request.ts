import type { Server } from "bun";
import { type Caller, unauthorized } from "../core/roles.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import type { RequestKind } from "../observability/metrics.ts";
import { maskText } from "../receipts/masking.ts";
import type { Ids } from "../core/ids.ts";
import type { BodyContext } from "./body.ts";
import type { PageKind } from "./response.ts";
import { isIPv4 } from "node:net";
import { canonicalAddress } from "../core/addresses.ts";
import { FORWARDED_ADDRESSES_MAX, FORWARDED_CHARS_MAX } from "../core/limits.ts";

/** A request while it is handled. Handlers add what they learn, for the log line. */
export interface RequestContext extends BodyContext {
  /** Null: the request came over no socket. */
  readonly server: Server<unknown> | null;
  /** From the request line, not percent-decoded; empty if it has none. */
  readonly path: string;
  /** The query without its question mark; empty when there is none. */
  readonly search: string;
  /** The client's IP address; empty if the request came over no socket. Count requests by its `clientNetwork`. */
  readonly client: string;
  readonly name: RequestName;
  readonly startedMs: number;
  /** Counts further requests against the rate limit, for a batch; throws `rate_limited`. */
  count: (requests: number) => void;
  /** The pattern of the route that answers; null before it is found. */
  route: string | null;
  actionId: string | null;
  errorCode: ErrorCode | null;
  /** The kind of page that a route for people answers with, also on errors; null: JSON. */
  page: PageKind | null;
  /** What the duration is spent on; metrics keep waiting and streaming apart from work. */
  kind: RequestKind;
}

/** The contexts of the requests that are being handled. */
const contexts = new WeakMap<Request, RequestContext>();

/** Makes `contextFor` return this context for the request. */
export function bindContext(request: Request, context: RequestContext): void {
  contexts.set(request, context);
}

/** The context of a request. Throws for a request that the handler has not begun. */
export function contextFor(request: Request): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new TypeError("This request did not come through the handler.");
  return context;
}

/** The authenticated caller. Throws `unauthorized` if there is none, so that a route that skipped authentication fails closed. */
export function contextCaller(context: RequestContext): Caller {
  if (context.caller !== null) return context.caller;
  throw unauthorized();
}

/** Path and query of a request, as a link within the service. */
export function pathAndQuery({ path, search }: RequestTarget): string {
  return search === "" ? path : `${path}?${search}`;
}

/** What a request line names: path and query. */
interface RequestTarget {
  readonly path: string;
  readonly search: string;
}

/**
 * The target of a request. Null: CONNECT, which has no path, or a text that is no URL. If the `Host` header is unusable, Bun
 * leaves out scheme and host and keeps dot segments and backslashes as sent; they are resolved here, so that the path that is
 * authenticated is the one that is routed.
 */
export function requestTarget({ method, url }: Pick<Request, "method" | "url">): RequestTarget | null {
  if (method === "CONNECT") return null;
  if (url.startsWith("http://") || url.startsWith("https://")) return split(url);
  const resolved = url.startsWith("/") ? URL.parse(`http://localhost${url}`) : null;
  return resolved === null ? null : split(resolved.href);
}

/** The error for a request without a target. */
export function noTarget(): DomainError {
  return new DomainError(
    "invalid_request",
    "The request line has no path of this service. Send one that begins with a slash, by another method than CONNECT.",
  );
}

/** Whether a path always answers JSON, whatever the request accepts. */
export function isApiPath(path: string): boolean {
  return /^\/(v1|mcp)(\/|$)/.test(path);
}

/** Whether the path is /mcp, with or without a slash at its end. */
export function isMcpPath(path: string): boolean {
  return path === "/mcp" || path === "/mcp/";
}

/** Splits path and query, without the fragment, which is part of neither. */
function split(url: string): RequestTarget {
  const [whole = ""] = url.split("#", 1);
  const start = Math.max(0, whole.indexOf("/", whole.indexOf("://") + 3));
  const question = whole.indexOf("?", start);
  if (question === -1) return { path: whole.slice(start), search: "" };
  return { path: whole.slice(start, question), search: whole.slice(question + 1) };
}

/** The ids of one request. */
export interface RequestName {
  /** For `X-Request-Id`: the client's own id if its form is accepted, else a new one. */
  readonly id: string;
  /** The same id for the log, masked, since a client may have put a key into the wrong header. */
  readonly logId: string;
  /** For error envelopes and the log, always `req_…`: the same id if it has that form and no secret, else a new one. */
  envelopeId(): string;
}

/** A client's id of any other form is neither echoed nor logged. */
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

const ENVELOPE_ID = /^req_[A-Za-z0-9_-]+$/;

export function nameRequest(given: string | null, ids: Pick<Ids, "request">): RequestName {
  const isAccepted = given !== null && ACCEPTED_ID.test(given);
  const id = isAccepted ? given : ids.request();
  const logId = isAccepted ? maskText(id, "public") : id;
  // Made on demand, since only errors need a new one, and only once, since envelope and log line must show the same id.
  let envelopeId = logId === id && ENVELOPE_ID.test(id) ? id : null;
  return { id, logId, envelopeId: () => (envelopeId ??= ids.request()) };
}

/** Whether an address is listed in `TRUSTED_PROXIES`. */
export type IsTrustedProxy = (address: string) => boolean;

/**
 * The client's IP address; empty without a socket. Behind a trusted proxy, it is the last address in `X-Forwarded-For` that is
 * not a trusted proxy, since anything before it can be forged. If the header can't be parsed, it is the proxy itself.
 */
export function clientAddress(socket: string, forwardedFor: string | null, isTrusted: IsTrustedProxy): string {
  const peer = addressIn(socket) ?? "";
  if (forwardedFor === null || peer === "" || !isTrusted(peer)) return peer;
  let client = peer;
  for (const entry of lastAddresses(forwardedFor)) {
    const address = addressIn(entry);
    if (address === null) return peer;
    client = address;
    if (!isTrusted(address)) break;
  }
  return client;
}

/** The last entries of the header, in reverse order. */
function lastAddresses(forwardedFor: string): readonly string[] {
  const entries = forwardedFor.slice(-FORWARDED_CHARS_MAX).split(",");
  // The first one may be cut in the middle.
  if (forwardedFor.length > FORWARDED_CHARS_MAX) entries.shift();
  return entries.slice(-FORWARDED_ADDRESSES_MAX).toReversed();
}

/** An IP address in canonical form, without port, brackets or zone; null for anything else. */
function addressIn(text: string): string | null {
  // The usual case, for sockets and for what proxies write.
  if (isIPv4(text)) return text;
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed;
  return canonicalAddress(bare.split("%", 1)[0] ?? "");
}
