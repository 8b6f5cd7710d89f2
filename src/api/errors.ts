import Type, { type Static } from "typebox";
import { ERROR_CODES, type ErrorCode, type Issue } from "./domain-error.ts";
import { plainText } from "./schema-helpers.ts";

const ValidationIssue = Type.Object(
  {
    field: plainText("The member, header or query parameter; empty: the whole body.", "retries"),
    message: plainText("What is wrong with it.", "Must be an integer."),
    code: Type.Literal("invalid", { description: "Always invalid.", examples: ["invalid"] }),
  },
  { title: "ValidationIssue", description: "One thing that is wrong with a request." },
);

const Code = Type.Enum([...ERROR_CODES], {
  title: "ErrorCode",
  type: "string",
  description: "What went wrong, for programs.",
  examples: ["validation_error"],
});

/** The body of every error (spec "Errors"). */
export const ErrorEnvelope = Type.Object(
  {
    error: Type.Object(
      {
        code: Code,
        message: plainText("What went wrong, for people.", "The request has fields that are not valid."),
        request_id: Type.String({
          pattern: "^req_[A-Za-z0-9_-]+$",
          description: "Finds this request in the service's log.",
          examples: ["req_01kjwa5v00e7v8c9x2m4n6p8qr"],
        }),
        details: Type.Optional(
          Type.Array(ValidationIssue, { description: "Everything that is wrong with the request at once." }),
        ),
      },
      { description: "The error." },
    ),
  },
  { title: "ErrorEnvelope", description: "The body of every error." },
);

export type ErrorEnvelope = Static<typeof ErrorEnvelope>;

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
  too_many_held: 409,
  email_taken: 409,
  too_many_keys: 409,
  payload_too_large: 413,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
} as const satisfies Record<ErrorCode, number>;

/** When each is given; for the API description. */
export const ERROR_MEANING = {
  missing_body: "Nothing was sent where a body is needed.",
  validation_error: "Fields are not valid; details names them all.",
  missing_field: "The field url is missing.",
  invalid_request:
    "The body is not JSON, not UTF-8, nested too deep, or has too many members; reason is missing where a person has rejected the request; or (421) a page was asked for under a Host that is not ours.",
  invalid_query: "Query parameters are unknown, repeated or not valid.",
  invalid_content_type: "The body is not application/json in UTF-8.",
  invalid_url: "No call may go to this url or callback.",
  invalid_sync: "The action would wait for a person, so it can't be answered in sync.",
  unauthorized: "No valid API key was sent.",
  invalid_credentials: "E-mail and password do not belong together.",
  forbidden:
    "The role or the hold of the key does not allow it, a person rejected the request and it was asked for again too often, sign-ups are closed, or a foreign page sent it.",
  not_found: "The account has no such thing, or nothing is at this path.",
  method_not_allowed: "The path does not take this method.",
  not_cancellable: "The action can't be cancelled in its state, or is not in the run that was named.",
  not_approvable: "The action does not wait for approval, or not in the run that was named.",
  not_retryable:
    "The action can't be sent again in its state, or a person rejected it and it was asked for again too often.",
  too_many_held: "As many actions of the key as may await approval at a time do so already.",
  email_taken: "Somebody has signed up with this address.",
  too_many_keys: "The account has as many live keys as it may have.",
  payload_too_large: "The body is over 1 MB.",
  rate_limited: "The account makes too many requests, or a client too many failed log-ins or sign-ups.",
  internal_error: "Something went wrong in the service.",
  unavailable: "The service can't store or read just now.",
} as const satisfies Record<ErrorCode, string>;

interface ErrorParts {
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
