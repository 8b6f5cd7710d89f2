import type { Server } from "bun";
import { type Caller, unauthorized } from "../domain/caller.ts";
import type { ErrorCode } from "../domain/errors.ts";
import type { RequestKind } from "../ports/metrics.ts";
import type { PageKind } from "./page.ts";
import type { RequestName } from "./request-id.ts";

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
