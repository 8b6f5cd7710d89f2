import { DomainError, type ErrorCode, type Issue, RetryLater } from "../core/domain-error.ts";
import { beginning } from "../core/json.ts";
import { ERROR_DETAILS_BYTES_MAX, ERROR_TEXT_BYTES_MAX } from "../core/limits.ts";
import { StoreBusy, StoreUnavailable } from "../core/store.ts";

export const HTTP_STATUS = {
  missing_body: 400,
  validation_error: 400,
  missing_field: 400,
  invalid_request: 400,
  invalid_query: 400,
  invalid_content_type: 400,
  invalid_url: 400,
  invalid_sync: 400,
  unauthorized: 401,
  invalid_credentials: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_cancellable: 409,
  not_approvable: 409,
  not_retryable: 409,
  too_many_held: 409,
  too_many_jobs: 409,
  email_taken: 409,
  too_many_keys: 409,
  last_owner: 409,
  payload_too_large: 413,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
} as const satisfies Record<ErrorCode, number>;

/** A 405, with the path's methods for `Allow`. */
export class MethodNotAllowed extends DomainError {
  readonly allow: string;

  constructor(allow: string) {
    super("method_not_allowed", `This path supports only ${allow.replace(/, (\w+)$/, " or $1")}.`);
    this.allow = allow;
  }
}

const HEADERS: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, string>>>>> = {
  unauthorized: { "www-authenticate": "Bearer" },
  rate_limited: { "retry-after": "1" },
  unavailable: { "retry-after": "1" },
};

/** The response headers that only this error has. */
export function errorHeaders(error: DomainError): Readonly<Record<string, string>> {
  if (error instanceof MethodNotAllowed) return { allow: error.allow };
  if (error instanceof RetryLater) return { "retry-after": String(error.retryAfterSeconds) };
  return HEADERS[error.code] ?? {};
}

/** When each error is returned, for the API description. */
export const ERROR_MEANING = {
  missing_body: "The request needs a body.",
  validation_error: "Fields are not valid; details lists them.",
  missing_field: "The field url is missing.",
  invalid_request:
    "The body is not JSON, not UTF-8, nested too deep, or has too many members; reason is missing where a person has rejected the request; or (421) a page was requested with another Host than the service's own.",
  invalid_query: "Query parameters are unknown, repeated or not valid.",
  invalid_content_type: "The body is not application/json in UTF-8.",
  invalid_url: "Calls to this url or callback are not allowed.",
  invalid_sync: "The action waits for approval or for its time, so the response can't wait for its end.",
  unauthorized: "The API key is missing or not valid.",
  invalid_credentials: "Incorrect email or password.",
  forbidden:
    "The role, the hold or a limit of the key, a rule or a credential's bounds do not allow it, a person rejected the request and it was repeated too often, sign-ups are closed, or a page of another site sent it.",
  not_found: "The account has no such object, or the path does not exist.",
  method_not_allowed: "The path does not support this method.",
  not_cancellable: "The action can't be cancelled in its status, or it is in another run than the given one.",
  not_approvable:
    "The action is not awaiting approval, or it is in another run than the given one. Or a request for a credential is over.",
  not_retryable: "The action can't be retried in its status, or a person rejected it and it was repeated too often.",
  too_many_held: "The key has reached its limit of actions that await approval, or of requests for credentials.",
  too_many_jobs: "Too many bulk jobs of the account are running, or are kept.",
  email_taken: "An account with this email address already exists.",
  too_many_keys: "The account has reached its limit of live keys.",
  last_owner: "The account would have no person who owns it.",
  payload_too_large: "The body is too large, or came in too many chunks.",
  rate_limited: "The account makes too many requests, or a client too many failed logins or sign-ups.",
  internal_error: "The service failed unexpectedly.",
  unavailable: "The service is starting, stopping or too busy, or can't reach its database at the moment.",
} as const satisfies Record<ErrorCode, string>;

/** Turns any error into one that callers may see. An unexpected one says nothing about its cause, so log it. */
export function asDomainError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof StoreBusy) {
    return new DomainError(
      "unavailable",
      "The service has too many writes to store at the moment. Try again in a second.",
    );
  }
  if (error instanceof StoreUnavailable) {
    return new DomainError("unavailable", "The service can't reach its database at the moment. Try again.");
  }
  return new DomainError(
    "internal_error",
    "Something went wrong in the service. Its log has the details under the request id.",
  );
}

/** The error envelope as JSON text. */
export function errorJson(code: ErrorCode, message: string, requestId: string, issues: readonly Issue[] = []): string {
  return JSON.stringify({
    error: { code, message: cutToBytes(message), request_id: requestId, ...errorDetails(issues) },
  });
}

/** The issues of an error as far as they fit, and how many don't: a small body can have ten thousand. */
export function errorDetails(issues: readonly Issue[]) {
  const details = [];
  let bytes = 0;
  for (const { field, message } of issues) {
    const detail = { field: cutToBytes(field), message: cutToBytes(message), code: "invalid" };
    bytes += Buffer.byteLength(JSON.stringify(detail));
    if (bytes > ERROR_DETAILS_BYTES_MAX) break;
    details.push(detail);
  }
  const leftOut = issues.length - details.length;
  return {
    ...(details.length > 0 && { details }),
    ...(leftOut > 0 && { details_left_out: leftOut }),
  };
}

/** The issues of an error in one text, with the same bound. `issueWords` says how one is put; default: its message. */
export function issuesText(issues: readonly Issue[], issueWords = ({ message }: Issue): string => message): string {
  const { details = [], details_left_out: leftOut = 0 } = errorDetails(issues);
  return [...details.map(issueWords), ...(leftOut > 0 ? [`And ${leftOut} more.`] : [])].join(" ");
}

/** How an issue is put where its field is not shown beside it. */
export function withField({ field, message }: Issue): string {
  return `${field}: ${message}`;
}

/** A text, or its beginning: those of errors may quote what was sent. */
export function cutToBytes(text: string, bytesMax = ERROR_TEXT_BYTES_MAX): string {
  return Buffer.byteLength(JSON.stringify(text)) <= bytesMax ? text : beginning(text, bytesMax, "…");
}
