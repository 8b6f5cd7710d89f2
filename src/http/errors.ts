import { errorJson, HTTP_STATUS } from "../api/errors.ts";
import { DomainError, type ErrorCode, RetryLater } from "../api/domain-error.ts";
import type { Log } from "../observability/log.ts";
import { StoreBusy, StoreUnavailable } from "../../db/store.ts";
import { problemPage } from "../pages/receipt.tsx";
import { isForPrograms, namesHtml, prefersJson } from "./query.ts";
import { MethodNotAllowed } from "./allow.ts";
import { Misdirected } from "./own-origin.ts";
import { page } from "./page.ts";
import type { RequestContext } from "./context.ts";

/** What a refusal of this kind also says in its head (decisions 2). */
const HEADERS: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, string>>>>> = {
  unauthorized: { "www-authenticate": "Bearer" },
  rate_limited: { "retry-after": "1" },
  unavailable: { "retry-after": "1" },
};

/** The head of a refusal, but for what every answer has. */
export function headersOf(error: DomainError): Readonly<Record<string, string>> {
  if (error instanceof MethodNotAllowed) return { allow: error.allow };
  if (error instanceof RetryLater) return { "retry-after": String(error.retryAfterSeconds) };
  return HEADERS[error.code] ?? {};
}

const MISDIRECTED = 421;

/** The client left before it was answered. Nobody sees this status but the log (nginx has the same). */
export const CLIENT_GONE = 499;

/**
 * Whether this error says that the client has left: what waits for its body, or for anything in its name, ends as aborted
 * then. Whatever else is thrown after it has left is what it would have been: a bug stays a bug.
 */
export function hasLeft({ signal }: Request, error: unknown): boolean {
  return signal.aborted && error instanceof Error && error.name === "AbortError";
}

/** Any error as the envelope, or as a page for people. What is no broken rule is a bug: it is logged, and the caller gets no word of it. */
export function refuse(context: RequestContext, error: unknown, log: Log): Response {
  if (hasLeft(context.request, error)) return new Response(null, { status: CLIENT_GONE });
  const broken = asDomainError(error);
  const requestId = context.name.envelopeId();
  if (broken.code === "internal_error") {
    log.error("http.failed", {
      request_id: context.name.id,
      error_id: requestId,
      route: context.route,
      error: traceOf(error),
    });
  }
  context.errorCode = broken.code;
  const isMisdirected = broken instanceof Misdirected;
  const status = isMisdirected ? MISDIRECTED : HTTP_STATUS[broken.code];
  const own = headersOf(broken);
  if (isForPrograms(context.path)) return json(errorText(broken, requestId), status, own);
  // A page and an envelope are answers to the same question, and a cache has to know.
  const headers = { ...own, vary: "Accept" };
  const kind = context.page ?? (namesHtml(context.request) ? "own" : null);
  if (kind === null || prefersJson(context.request)) return json(errorText(broken, requestId), status, headers);
  // Under a foreign name nothing is served that the page could load.
  const isAlone = kind !== "own" || isMisdirected;
  const html = problemPage({ status, message: broken.message, requestId: context.name.id, isAlone });
  return page(isAlone ? "notice" : kind, html, { status, headers });
}

function errorText({ code, message, issues }: DomainError, requestId: string): string {
  return errorJson({ code, message, requestId, issues });
}

function asDomainError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof StoreBusy) {
    return new DomainError("unavailable", "Too much waits to be stored just now; try again in a second.");
  }
  if (error instanceof StoreUnavailable) {
    return new DomainError("unavailable", "The service can't store or read just now; try again.");
  }
  return new DomainError("internal_error", "Something went wrong here; the request id finds it in the log.");
}

/** Where a bug happened. The engine speaks of the code; any other message may quote what somebody sent, so it stays out. */
export function traceOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const isOfEngine = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  const frames = (error.stack ?? "").split("\n").filter((line) => line.trimStart().startsWith("at "));
  return [isOfEngine ? `${error.name}: ${error.message}` : error.name, ...frames.slice(0, FRAMES_MAX)].join("\n");
}

const FRAMES_MAX = 8;

const JSON_TYPE = { "content-type": "application/json" } as const;

/** An answer of JSON text. */
export function json(text: string, status = 200, headers?: Readonly<Record<string, string>>): Response {
  return new Response(text, { status, headers: headers === undefined ? JSON_TYPE : { ...JSON_TYPE, ...headers } });
}

/** Whatever is wrong with a token, of whichever kind: it tells nothing but that it opens nothing (hostile B19). */
export function noSuchLink(): DomainError {
  return new DomainError("not_found", "This link doesn't exist or has expired. Check that you copied all of it.");
}
