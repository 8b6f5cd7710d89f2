import { NotFoundError } from "elysia";
import { asDomainError, errorJson, errorHeaders, HTTP_STATUS } from "../api/errors.ts";
import { DomainError, LinkGone } from "../core/domain-error.ts";
import { type Log, stackTrace } from "../observability/log.ts";
import { createOwnTurns } from "../runtime/fair-share.ts";
import { problemPage } from "../ui/problem.tsx";
import { json, acceptsHtml, prefersJson, page } from "./response.ts";
import type { PageUser } from "../ui/text.ts";
import { isApiPath, isMcpPath, pathAndQuery, type RequestContext } from "./request.ts";
import { Misdirected } from "./own-origin.ts";

/** Thrown to end a request with this response, such as a login page or a form that asks for something first. */
export class EarlyAnswer extends Error {
  override readonly name = "EarlyAnswer";
  readonly answer: Response;

  constructor(answer: Response) {
    super("The request was answered early.");
    this.answer = answer;
  }
}

export function pathNotFound(): DomainError {
  return new DomainError("not_found", "This path does not exist.");
}

/**
 * What /mcp answers without a key. MCP clients that know only OAuth show its text to their user (RFC 6750, 3). If OAuth is on,
 * the answer says where to log in instead.
 */
const ASKS_FOR_KEY = 'Bearer error="invalid_token", error_description="Use an API key"';

const MISDIRECTED = 421;

/** The client left before it was answered. Only the log shows this status, like nginx's. */
export const CLIENT_GONE = 499;

export interface RefuseDeps {
  readonly log: Log;
  /** `WWW-Authenticate` of /mcp; null: clients need a key. */
  readonly mcpChallenge: string | null;
  /** Who is logged in, for the navigation of the page; null: nobody. Never rejects. */
  readonly personOnError: (context: RequestContext) => Promise<PageUser | null>;
}

const ownTurn = createOwnTurns();

/** Answers with an error, as an envelope or a page. An unexpected error is logged; the caller sees only `internal_error`. */
export async function refuse(
  context: RequestContext,
  error: unknown,
  { log, personOnError, mcpChallenge }: RefuseDeps,
): Promise<Response> {
  // Reading a body, or waiting, ends with this error. Any other error after the client has left is still reported.
  const hasLeft = context.request.signal.aborted && error instanceof Error && error.name === "AbortError";
  if (hasLeft) return new Response(null, { status: CLIENT_GONE });
  if (error instanceof EarlyAnswer) return error.answer;
  const failure = error instanceof NotFoundError ? pathNotFound() : asDomainError(error);
  const requestId = context.name.envelopeId();
  if (failure.code === "internal_error") {
    log.error("http.failed", {
      request_id: context.name.logId,
      error_id: requestId,
      route: context.route,
      error: stackTrace(error),
    });
  }
  context.errorCode = failure.code;
  const isMisdirected = failure instanceof Misdirected;
  const { method } = context.request;
  if (isMisdirected && failure.insteadAt !== null && (method === "GET" || method === "HEAD")) {
    const headers = { location: failure.insteadAt + pathAndQuery(context), "cache-control": "no-store" };
    return new Response(null, { status: 307, headers });
  }
  const status = isMisdirected ? MISDIRECTED : HTTP_STATUS[failure.code];
  const own =
    failure.code === "unauthorized" && isMcpPath(context.path)
      ? { "www-authenticate": authChallenge(context.request, mcpChallenge) }
      : errorHeaders(failure);
  const { code, message, issues } = failure;
  const envelope = () => errorJson(code, message, requestId, issues);
  if (context.path === "" || isApiPath(context.path)) return json(envelope(), status, own);
  // The same URL can answer with a page or an envelope, and caches must know.
  const headers = { ...own, vary: "Accept" };
  const kind = context.page ?? (acceptsHtml(context.request) ? "own" : null);
  if (kind === null || prefersJson(context.request)) return json(envelope(), status, headers);
  // For a foreign Host, no asset would be served to the page.
  const isStandalone = kind !== "own" || isMisdirected;
  const { caller } = context;
  const user = isStandalone ? null : await personOnError(context);
  context.caller = caller;
  // Anybody can ask for many pages that don't exist at once.
  await ownTurn();
  const html = problemPage({
    status,
    code,
    message,
    requestId: context.name.id,
    user,
    isStandalone,
    isLink: kind !== "own",
    isGone: failure instanceof LinkGone,
    canRetry: method === "GET",
  });
  return page(isStandalone ? "notice" : kind, html, { status, headers });
}

/** For a wrong token, tells the client to get another one instead of asking its user again (RFC 6750, 3.1). */
function authChallenge({ headers }: Request, mcpChallenge: string | null): string {
  if (mcpChallenge === null) return ASKS_FOR_KEY;
  return headers.has("authorization") ? `${mcpChallenge}, error="invalid_token"` : mcpChallenge;
}

/** One error for every token that is malformed, unknown, expired or used, so that it reveals nothing about what exists. */
export function linkNotFound(): DomainError {
  return new DomainError("not_found", LINK_NOT_FOUND);
}

export const LINK_NOT_FOUND = "This link doesn't exist or has expired. Check that you copied all of it.";
