import Type from "typebox";
import { ERROR_CODES, type ErrorCode, type Issue } from "../domain/errors.ts";

export const ValidationIssue = Type.Object({
  field: Type.String(),
  message: Type.String(),
  code: Type.Literal("invalid"),
});

/** The body of every error (spec "Errors"). */
export const ErrorEnvelope = Type.Object({
  error: Type.Object({
    code: Type.Enum([...ERROR_CODES], { type: "string" }),
    message: Type.String(),
    request_id: Type.String({ pattern: "^req_[A-Za-z0-9_-]+$" }),
    details: Type.Optional(Type.Array(ValidationIssue)),
  }),
});

/** The one place that knows which status an error has (decisions 2). */
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
  email_taken: 409,
  payload_too_large: 413,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
} as const satisfies Record<ErrorCode, number>;

export interface ErrorParts {
  readonly code: ErrorCode;
  readonly message: string;
  readonly requestId: string;
  readonly issues: readonly Issue[];
}

/** The envelope as JSON text; `details` only when there are any. */
export function errorJson({ code, message, requestId, issues }: ErrorParts): string {
  const details = issues.map((issue) => ({ field: issue.field, message: issue.message, code: "invalid" }));
  const error = { code, message, request_id: requestId };
  return JSON.stringify({ error: details.length === 0 ? error : { ...error, details } });
}
