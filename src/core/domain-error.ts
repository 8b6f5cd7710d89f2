/** Every error code of the API; `api/errors.ts` has their statuses and meanings. */
export const ERROR_CODES = [
  "missing_body",
  "validation_error",
  "missing_field",
  "invalid_request",
  "invalid_query",
  "invalid_content_type",
  "invalid_url",
  "invalid_sync",
  "unauthorized",
  "forbidden",
  "rate_limited",
  "payload_too_large",
  "method_not_allowed",
  "not_found",
  "not_cancellable",
  "not_approvable",
  "not_retryable",
  "too_many_held",
  "too_many_jobs",
  "email_taken",
  "too_many_keys",
  "last_owner",
  "invalid_credentials",
  "internal_error",
  "unavailable",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** One problem of a request and its field. */
export interface Issue {
  /** `url`, `notify.email`, `headers.X-Name`, `Idempotency-Key`, a query parameter, or `""` for the whole body. */
  readonly field: string;
  readonly message: string;
}

/** An expected failure. The message is shown to the caller: it says what is wrong and what to do, and holds no secret. */
export class DomainError extends Error {
  override readonly name = "DomainError";
  readonly code: ErrorCode;
  readonly issues: readonly Issue[];

  constructor(code: ErrorCode, message: string, issues: readonly Issue[] = []) {
    super(message);
    this.code = code;
    this.issues = issues;
  }
}

/** `not_found`: a link that works once was used, or has ended. The message says who makes another. */
export class LinkGone extends DomainError {
  constructor(message: string) {
    super("not_found", message);
  }
}

/** `validation_error`: the request has these issues. */
export function invalidFields(issues: readonly Issue[]): DomainError {
  return new DomainError("validation_error", "The request has fields that are not valid.", issues);
}

/** `validation_error` for one field, with the issue's message. */
export function invalidField(field: string, message: string): DomainError {
  return new DomainError("validation_error", message, [{ field, message }]);
}

/** `not_found`, as in "There is no such channel." */
export function notFound(what: string): DomainError {
  return new DomainError("not_found", `There is no such ${what}.`);
}

/** `validation_error`: the account has as many as it can have. */
export function accountFull(max: number, what: string, advice = "Remove one first."): DomainError {
  return new DomainError("validation_error", `An account has at most ${max} ${what}. ${advice}`);
}

/** `rate_limited`, with the time from which the same request would be accepted. */
export class RetryLater extends DomainError {
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number) {
    super("rate_limited", message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Refused now, and allowed from a known time on. */
export class TooEarly extends DomainError {
  readonly allowedFrom: Date;

  constructor(code: ErrorCode, message: string, allowedFrom: Date) {
    super(code, message);
    this.allowedFrom = allowedFrom;
  }
}
