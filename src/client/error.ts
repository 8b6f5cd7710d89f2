import type { ErrorEnvelope } from "../contract/error.ts";

type Told = ErrorEnvelope["error"];

/**
 * What the service said, or why nothing was heard of it: `unreachable`, `tls_failed`, `timed_out`, or `not_outgate` where
 * something else answers at its address.
 */
export type OutgateErrorCode = Told["code"] | "unreachable" | "tls_failed" | "timed_out" | "not_outgate";

interface Parts {
  readonly retryAfterMs?: number | null;
  readonly status?: number;
  readonly requestId?: string | null;
  readonly details?: Told["details"];
  readonly cause?: unknown;
}

/** Every way in which a call can fail, but for the caller's own abort. The message is for people. */
export class OutgateError extends Error {
  override readonly name = "OutgateError";
  readonly code: OutgateErrorCode;
  /** HTTP status; null: no answer came. */
  readonly status: number | null;
  /** Finds the request in the service's log. */
  readonly requestId: string | null;
  /** Everything that was wrong with the request, field by field. */
  readonly details: NonNullable<Told["details"]>;

  /** When the service said to come back. */
  readonly retryAfterMs: number | null;

  constructor(code: OutgateErrorCode, message: string, parts: Parts = {}) {
    const { status, requestId, details, retryAfterMs, cause } = parts;
    super(message, { cause });
    this.retryAfterMs = retryAfterMs ?? null;
    this.code = code;
    this.status = status ?? null;
    this.requestId = requestId ?? null;
    this.details = details ?? [];
  }
}

/** The error that an answer tells of; `value` is its parsed body. */
export function errorOf(response: Response, value: unknown): OutgateError {
  const { status, headers } = response;
  const parts = { status, requestId: headers.get("x-request-id"), retryAfterMs: secondsOf(headers.get("retry-after")) };
  const told = envelopeOf(value);
  if (told !== null) {
    return new OutgateError(told.code, told.message, { ...parts, requestId: told.request_id, details: told.details });
  }
  const type = headers.get("content-type") ?? "no content type";
  return new OutgateError("not_outgate", `The answer is not one of Outgate: status ${status}, ${type}.`, parts);
}

/** In milliseconds; a date, which Outgate never sends, is none. */
function secondsOf(text: string | null): number | null {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : null;
}

function envelopeOf(value: unknown): Told | null {
  const error = typeof value === "object" && value !== null && "error" in value ? value.error : null;
  if (typeof error !== "object" || error === null || !("code" in error) || !("message" in error)) return null;
  // Safe: a body of this form is the service's envelope, which its contract fixes.
  return error as Told;
}
