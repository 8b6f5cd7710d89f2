import type { Server } from "bun";
import { type Caller, unauthorized } from "../accounts/roles.ts";
import type { ErrorCode } from "../api/domain-error.ts";
import type { RequestKind } from "../observability/metrics.ts";
import type { PageKind } from "./page.ts";
import type { Ids } from "../runtime/ids.ts";

/** One request while it is handled. Handlers add what they find out, for the log line. */
export interface RequestContext {
  readonly request: Request;
  /** Null where no socket is behind the request. */
  readonly server: Server<unknown> | null;
  /** From the request line, not percent-decoded. */
  readonly path: string;
  /** The query without its question mark; empty when there is none. */
  readonly search: string;
  /** The client's IP address; empty where no socket is behind the request. */
  readonly client: string;
  readonly name: RequestName;
  readonly startedMs: number;
  caller: Caller | null;
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
  /** Whether body bytes may still arrive. */
  isBodyUnread: boolean;
}

/** The contexts of the requests that are being handled. */
const contexts = new WeakMap<Request, RequestContext>();

/** Makes `contextOf` return this context for the request. */
export function bindContext(request: Request, context: RequestContext): void {
  contexts.set(request, context);
}

/** What belongs to a request. Throws for a request that the handler has not begun. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new TypeError("This request did not come through the handler.");
  return context;
}

/** The authenticated caller. Throws `unauthorized` where there is none: a route that skipped authentication fails closed. */
export function callerOf(context: RequestContext): Caller {
  if (context.caller !== null) return context.caller;
  throw unauthorized();
}

/**
 * Path and query of a request. Bun leaves out scheme and host where the `Host` header is unusable, so a fixed offset into
 * the URL would read another path than was sent, and an unguarded one.
 */
export function targetOf(url: string): { readonly path: string; readonly search: string } {
  const start = url.startsWith("/") ? 0 : Math.max(0, url.indexOf("/", url.indexOf("://") + 3));
  const end = endOf(url, start);
  const question = url.indexOf("?", start);
  if (question === -1 || question > end) return { path: url.slice(start, end), search: "" };
  return { path: url.slice(start, question), search: url.slice(question + 1, end) };
}

/** Where path and query end: a fragment isn't part of them. */
function endOf(url: string, start: number): number {
  const hash = url.indexOf("#", start);
  return hash === -1 ? url.length : hash;
}

export function hasBody({ headers }: Request): boolean {
  const length = headers.get("content-length");
  return (length !== null && length !== "0") || headers.has("transfer-encoding");
}

/** The ids of one request. */
export interface RequestName {
  /** For `X-Request-Id`: the client's own id where its form is accepted, else a new one. */
  readonly id: string;
  /** For error envelopes, always `req_…`: the same id where it has that form, else a new one. */
  envelopeId(): string;
}

/** A client's id of any other form is neither echoed nor logged. */
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

const ENVELOPE_ID = /^req_[A-Za-z0-9_-]+$/;

export function nameRequest(given: string | null, ids: Pick<Ids, "request">): RequestName {
  if (given === null || !ACCEPTED_ID.test(given)) return named(ids.request());
  if (ENVELOPE_ID.test(given)) return named(given);
  // Made on demand, since only errors need it, and once: envelope and log line must show the same id.
  let second: string | null = null;
  return { id: given, envelopeId: () => (second ??= ids.request()) };
}

function named(id: string): RequestName {
  return { id, envelopeId: () => id };
}
