import type { Server } from "bun";
import { type Caller, unauthorized } from "../accounts/roles.ts";
import type { ErrorCode } from "../api/domain-error.ts";
import type { RequestKind } from "../observability/metrics.ts";
import type { PageKind } from "./page.ts";
import type { Ids } from "../runtime/ids.ts";

/** One request on its way through the door. What is found out about it on the way is written down here, for its log line. */
export interface RequestContext {
  readonly request: Request;
  /** Null where no socket is behind the request. */
  readonly server: Server<unknown> | null;
  /** From the request line, never from the host; as sent, percent signs and all. */
  readonly path: string;
  /** Behind the question mark; empty when there is none. */
  readonly search: string;
  /** The address that it comes from; empty where no socket is behind the request. */
  readonly client: string;
  readonly name: RequestName;
  readonly startedMs: number;
  caller: Caller | null;
  /** Counts requests of the caller's account; throws `rate_limited`. For one that brings others along. */
  count: (requests: number) => void;
  /** The pattern of the route that answers. */
  route: string | null;
  actionId: string | null;
  errorCode: ErrorCode | null;
  /** What a route for people answers with, also when it fails; null: JSON. */
  page: PageKind | null;
  /** What the time to the answer is spent on. */
  kind: RequestKind;
  /** Whether body bytes may still be on their way. */
  isBodyUnread: boolean;
}

/** Whoever calls; a route that asks for it without a door before it that let somebody in fails closed. */
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

/** A fragment is never meant for a server. */
function endOf(url: string, start: number): number {
  const hash = url.indexOf("#", start);
  return hash === -1 ? url.length : hash;
}

export function hasBody({ headers }: Request): boolean {
  const length = headers.get("content-length");
  return (length !== null && length !== "0") || headers.has("transfer-encoding");
}

/** How one request is called: what its answer carries, and what an error envelope says (decisions 2). */
export interface RequestName {
  /** The client's own id where it may be echoed, else ours. */
  readonly id: string;
  /** Always `req_…`: the same id where it has that form, else one of ours. */
  envelopeId(): string;
}

/** What is not of this form is never echoed and never logged. */
const ECHOED = /^[A-Za-z0-9._:-]{1,128}$/;

const OURS = /^req_[A-Za-z0-9_-]+$/;

export function nameRequest(given: string | null, ids: Pick<Ids, "request">): RequestName {
  if (given === null || !ECHOED.test(given)) return named(ids.request());
  if (OURS.test(given)) return named(given);
  // Only an error needs the second id, and both places that ask for it must get the same.
  let second: string | null = null;
  return { id: given, envelopeId: () => (second ??= ids.request()) };
}

function named(id: string): RequestName {
  return { id, envelopeId: () => id };
}
