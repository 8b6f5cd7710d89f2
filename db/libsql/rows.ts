import type { Action, ActionStatus, ErrorSource, HttpMethod, OnUnknown, Result } from "../../src/domain/action.ts";
import type { Actor } from "../../src/domain/actor.ts";
import type { Happening, HappeningType, TimelineEntry } from "../../src/domain/timeline.ts";
import type { Secrets } from "../../src/ports/secrets.ts";
import type { Row, SqlValue } from "./sql.ts";

/** Header values carry credentials: they are never in the file in clear (hostile 6, "At rest"). */
export type HeaderSeal = Pick<Secrets, "seal" | "open">;

/** What the state machine never changes. */
export const REQUEST_COLUMNS = [
  "id",
  "account_id",
  "retries",
  "url",
  "hostname",
  "host",
  "method",
  "body",
  "sealed_headers",
  "dedupe",
  "idempotency_key",
  "on_unknown",
  "approve",
  "callback",
  "notify_email",
  "created_at",
  "created_by",
] as const;

export const STATE_COLUMNS = [
  "revision",
  "status",
  "run",
  "attempts",
  "due_at",
  "lease_until",
  "started_at",
  "finished_at",
  "approved_at",
  "approved_by",
  "approved_digest",
] as const;

export const RESULT_COLUMNS = [
  "last_error",
  "error_source",
  "response_code",
  "response_body",
  "response_truncated",
  "duration_ms",
] as const;

/** The values of `REQUEST_COLUMNS`, in their order. */
export function requestValues(action: Action, seal: HeaderSeal): readonly SqlValue[] {
  return [
    action.id,
    action.accountId,
    action.retries,
    action.url,
    action.hostname,
    action.host,
    action.method,
    action.body,
    action.headers === null ? null : seal.seal(JSON.stringify(action.headers), headersPlace(action.id)),
    action.dedupe,
    action.idempotencyKey,
    action.onUnknown,
    Number(action.approve),
    action.callback,
    action.notifyEmail,
    action.createdAt.getTime(),
    action.createdBy,
  ];
}

/** The values of `STATE_COLUMNS`, in their order. */
export function stateValues(action: Action): readonly SqlValue[] {
  return [
    action.revision,
    action.status,
    action.run,
    action.attempts,
    millis(action.dueAt),
    millis(action.leaseUntil),
    millis(action.startedAt),
    millis(action.finishedAt),
    millis(action.approvedAt),
    action.approvedBy,
    action.approvedDigest,
  ];
}

/** The values of `RESULT_COLUMNS`, in their order. A result has a code or a source, and so is told from none. */
export function resultValues(result: Result | null): readonly SqlValue[] {
  if (result === null) return [null, null, null, null, null, null];
  return [
    result.lastError,
    result.errorSource,
    result.responseCode,
    result.responseBody,
    Number(result.responseTruncated),
    result.durationMs,
  ];
}

/** A row with at least the columns of request and state; the result is null where its columns were not asked for. */
export function actionOf(row: Row, seal: HeaderSeal): Action {
  // Safe, here and below: the columns hold what the functions above wrote, and nothing else writes them.
  return {
    id: row["id"] as string,
    accountId: row["account_id"] as string,
    retries: row["retries"] as number,
    url: row["url"] as string,
    hostname: row["hostname"] as string,
    host: row["host"] as string,
    method: row["method"] as HttpMethod,
    body: row["body"] as string | null,
    ...headersOf(row, seal),
    dedupe: row["dedupe"] as string | null,
    idempotencyKey: row["idempotency_key"] as string | null,
    onUnknown: row["on_unknown"] as OnUnknown,
    approve: row["approve"] === 1,
    callback: row["callback"] as string | null,
    notifyEmail: row["notify_email"] as string | null,
    createdAt: new Date(row["created_at"] as number),
    createdBy: row["created_by"] as Actor,
    revision: row["revision"] as number,
    status: row["status"] as ActionStatus,
    run: row["run"] as number,
    attempts: row["attempts"] as number,
    dueAt: date(row["due_at"]),
    leaseUntil: date(row["lease_until"]),
    startedAt: date(row["started_at"]),
    finishedAt: date(row["finished_at"]),
    approvedAt: date(row["approved_at"]),
    approvedBy: row["approved_by"] as string | null,
    approvedDigest: row["approved_digest"] as string | null,
    result: resultOf(row),
  };
}

export function timelineEntryOf(row: Row): TimelineEntry {
  const happening = { type: row["type"] as HappeningType, ...(JSON.parse(row["detail"] as string) as object) };
  return {
    seq: row["seq"] as number,
    at: new Date(row["at"] as number),
    run: row["run"] as number,
    status: row["status"] as ActionStatus,
    happening: happening as Happening,
  };
}

export function millis(at: Date | null): number | null {
  return at === null ? null : at.getTime();
}

export function date(value: SqlValue | undefined): Date | null {
  return typeof value === "number" ? new Date(value) : null;
}

function resultOf(row: Row): Result | null {
  if (typeof row["response_code"] !== "number" && typeof row["error_source"] !== "string") return null;
  return {
    lastError: row["last_error"] as string | null,
    errorSource: row["error_source"] as ErrorSource | null,
    responseCode: row["response_code"] as number | null,
    responseBody: row["response_body"] as string | null,
    responseTruncated: row["response_truncated"] === 1,
    durationMs: row["duration_ms"] as number | null,
  };
}

/**
 * Headers that don't open are said to be altered and left as they are: thrown, one such row would keep every action that
 * is read with it from being listed, claimed and rescued.
 */
function headersOf(row: Row, seal: HeaderSeal): Pick<Action, "headers" | "isAltered"> {
  const sealed = row["sealed_headers"];
  if (typeof sealed !== "string") return { headers: null };
  try {
    const text = seal.open(sealed, headersPlace(row["id"] as string)).toString("utf8");
    return { headers: JSON.parse(text) as Record<string, string> };
  } catch {
    return { headers: null, isAltered: true };
  }
}

function headersPlace(actionId: string) {
  return { table: "actions", row: actionId, column: "sealed_headers" };
}
