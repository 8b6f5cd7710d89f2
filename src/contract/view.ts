import { type Action, nextRetryAt } from "../domain/action.ts";
import { operationsIn } from "../domain/transition.ts";

/** What an answer says beside the action itself. */
export interface ViewOptions {
  readonly now: Date;
  /** Path of the receipt page. */
  readonly receiptUrl: string;
  /** Set on every answer of a create that found an older action: the request fields that differ from it. */
  readonly differs?: readonly string[];
  /** Header names without their values: what leaves for a callback. */
  readonly hidesHeaderValues?: boolean;
}

const HIDDEN = "••••";

/**
 * An action as JSON text (spec "Action"). Text, because `body` and `response_body` are put in as they are stored: parsed
 * and printed again, 12345678901234567890 and 1.0 would come back as other numbers.
 */
export function actionJson(action: Action, options: ViewOptions): string {
  const { now, receiptUrl, differs } = options;
  const result = action.result;
  const members = [
    ["id", action.id],
    ["status", action.status],
    ["url", action.url],
    ["method", action.method],
    ["body", raw(action.body)],
    ["headers", headersOf(action, options)],
    ["dedupe", action.dedupe],
    ["attempts", action.attempts],
    ["retries", action.retries],
    ["created_at", action.createdAt],
    ["started_at", action.startedAt],
    ["finished_at", action.finishedAt],
    ["next_retry_at", nextRetryAt(action)],
    ["last_error", result?.lastError ?? null],
    ["response_code", result?.responseCode ?? null],
    ["response_body", raw(result?.responseBody ?? null)],
    ["response_truncated", result?.responseTruncated === true ? true : undefined],
    ["duration_ms", result?.durationMs ?? null],
    ["approve", action.approve],
    ["approved_at", action.approvedAt],
    ["approved_by", action.approvedBy],
    ["callback", action.callback],
    ["idempotency_key", action.idempotencyKey],
    ["on_unknown", action.onUnknown === "stop" ? "stop" : undefined],
    ["retries_remaining", retriesRemaining(action)],
    ["next_retry_in_seconds", secondsUntil(nextRetryAt(action), now)],
    ["actions", operationsIn(action.status)],
    ["error", errorOf(action)],
    ["receipt_url", receiptUrl],
    ["deduplicated", differs === undefined ? undefined : true],
    ["differs", differs],
  ] as const;
  return objectJson(members);
}

/** JSON text that goes into an answer as it is. */
class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

function raw(text: string | null): RawJson | null {
  return text === null ? null : new RawJson(text);
}

/** Members whose value is undefined are left out, as `JSON.stringify` does it. */
function objectJson(members: readonly (readonly [name: string, value: unknown])[]): string {
  const printed = members.flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [`"${name}":${value instanceof RawJson ? value.text : JSON.stringify(value)}`];
  });
  return `{${printed.join(",")}}`;
}

function headersOf({ headers }: Action, { hidesHeaderValues }: ViewOptions): Action["headers"] {
  if (headers === null || hidesHeaderValues !== true) return headers;
  return Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN]));
}

/** Shown while an action that has been tried is not done (spec `retries_remaining`). */
function retriesRemaining(action: Action): number | undefined {
  const isUnderWay = action.status === "pending" || action.status === "active";
  return isUnderWay && action.attempts > 0 ? action.retries - action.attempts : undefined;
}

function secondsUntil(at: Date | null, now: Date): number | undefined {
  return at === null ? undefined : Math.max(0, Math.ceil((at.getTime() - now.getTime()) / 1_000));
}

/** The error object (spec "error object"): there when the action failed, and only then. */
function errorOf({ status, result }: Action): RawJson | undefined {
  if (status !== "failed" || result === null) return undefined;
  return new RawJson(
    objectJson([
      ["source", result.errorSource],
      ["message", result.lastError],
      ["response_code", result.responseCode],
      ["response_body", raw(result.responseBody)],
    ]),
  );
}
