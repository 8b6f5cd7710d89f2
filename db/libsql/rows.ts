import {
  type Action,
  ACTION_STATUSES,
  type Creator,
  type ErrorSource,
  HTTP_METHODS,
  type OnUnknown,
  type Result,
} from "../../src/actions/action.ts";
import { type Actor, HOLDS, ROLES } from "../../src/accounts/roles.ts";
import { TIMELINE_EVENT_TYPES, type TimelineEvent, type TimelineEntry } from "../../src/actions/timeline.ts";
import type { Secrets } from "../../src/crypto/secrets.ts";
import type { Row, SqlValue } from "./sql.ts";

/** Header values carry credentials: they are stored encrypted only. */
export type HeaderSeal = Pick<Secrets, "seal" | "open">;

/** Columns that never change. */
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
  "key_id",
  "key_role",
  "key_hold",
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
    action.keyId,
    action.creator.role,
    action.creator.hold,
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

/**
 * The values of `RESULT_COLUMNS`, in their order. Every result has a code or a source, which distinguishes it from
 * none.
 */
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

/**
 * An action from a row with at least the columns of request and state; without result columns the result is null. Never
 * throws: a row that was altered in the database becomes an action with `isAltered`.
 */
export function actionOf(row: Row, seal: HeaderSeal): Action {
  const columns = new Columns(row);
  const action: Action = {
    id: columns.text("id"),
    accountId: columns.text("account_id"),
    retries: columns.count("retries", 1),
    url: columns.text("url"),
    hostname: columns.text("hostname"),
    host: columns.text("host"),
    method: columns.oneOf("method", HTTP_METHODS, "POST"),
    body: columns.textOrNull("body"),
    ...headersOf(row, seal),
    dedupe: columns.textOrNull("dedupe"),
    idempotencyKey: columns.textOrNull("idempotency_key"),
    onUnknown: columns.oneOf("on_unknown", ON_UNKNOWN, "stop"),
    // When in doubt held, not sent.
    approve: columns.flag("approve", true),
    callback: columns.textOrNull("callback"),
    notifyEmail: columns.textOrNull("notify_email"),
    createdAt: columns.time("created_at"),
    // Safe: the actor is only shown.
    createdBy: columns.text("created_by") as Actor,
    keyId: columns.text("key_id"),
    creator: creatorIn(columns),
    revision: columns.count("revision", 1),
    status: columns.oneOf("status", ACTION_STATUSES, "failed"),
    run: columns.count("run", 1),
    attempts: columns.count("attempts", 0),
    dueAt: columns.timeOrNull("due_at"),
    leaseUntil: columns.timeOrNull("lease_until"),
    startedAt: columns.timeOrNull("started_at"),
    finishedAt: columns.timeOrNull("finished_at"),
    approvedAt: columns.timeOrNull("approved_at"),
    approvedBy: columns.textOrNull("approved_by"),
    approvedDigest: columns.textOrNull("approved_digest"),
    result: resultOf(row),
  };
  return columns.isBroken ? { ...action, isAltered: true } : action;
}

/** The strictest rules if the values were altered. */
export function creatorIn(columns: Columns): Creator {
  return { role: columns.oneOf("key_role", ROLES, "agent"), hold: columns.oneOf("key_hold", HOLDS, "all") };
}

/** The same to show it: bodies are put into responses as JSON, so one that is not JSON any more becomes a string. */
export function shownActionOf(row: Row, seal: HeaderSeal): Action {
  const action = actionOf(row, seal);
  const { body, result } = action;
  const responseBody = result?.responseBody ?? null;
  if (isJson(body) && isJson(responseBody)) return action;
  const shown = result === null ? null : { ...result, responseBody: asJson(responseBody) };
  return { ...action, body: asJson(body), result: shown, isAltered: true };
}

function asJson(text: string | null): string | null {
  return isJson(text) ? text : JSON.stringify(text);
}

function isJson(text: string | null): boolean {
  if (text === null) return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Null: it was altered and can't be read. */
export function timelineEntryOf(row: Row): TimelineEntry | null {
  const columns = new Columns(row);
  const [seq, at, run] = [columns.count("seq", 0), columns.time("at"), columns.count("run", 1)];
  const status = columns.oneOf("status", ACTION_STATUSES, "failed");
  const type = columns.oneOf("type", TIMELINE_EVENT_TYPES, "failed");
  const detail = detailOf(columns.text("detail"));
  if (columns.isBroken || detail === null) return null;
  // Safe: `create.ts` writes a type with its own fields.
  return { seq, at, run, status, event: { type, ...detail } as TimelineEvent };
}

function detailOf(text: string): object | null {
  try {
    const detail: unknown = JSON.parse(text);
    return typeof detail === "object" && !Array.isArray(detail) ? detail : null;
  } catch {
    return null;
  }
}

const ON_UNKNOWN = ["retry", "stop"] as const satisfies readonly OnUnknown[];

const SOURCES = ["target", "dispatch"] as const satisfies readonly ErrorSource[];

export function millis(at: Date | null): number | null {
  return at === null ? null : at.getTime();
}

/** Responses are never sent, so an altered one is shown as far as it can be read. */
function resultOf(row: Row): Result | null {
  if (typeof row["response_code"] !== "number" && typeof row["error_source"] !== "string") return null;
  const columns = new Columns(row);
  const code = row["response_code"] ?? null;
  const source = row["error_source"] ?? null;
  const durationMs = row["duration_ms"] ?? null;
  return {
    lastError: columns.textOrNull("last_error"),
    errorSource: source === null ? null : columns.oneOf("error_source", SOURCES, "dispatch"),
    responseCode: code === null ? null : columns.count("response_code", 0),
    responseBody: columns.textOrNull("response_body"),
    responseTruncated: row["response_truncated"] === 1,
    durationMs: durationMs === null ? null : columns.count("duration_ms", 0),
  };
}

/**
 * Headers that can't be decrypted set `isAltered`. An exception would keep every action of the same read from being
 * listed, claimed and rescued.
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

/** The last millisecond of `Date` (ECMA-262, 21.4.1.1). */
const DATE_MS_MAX = 8_640_000_000_000_000;

/**
 * Reads columns of a row that may have been altered in the database. A value that the service never writes is replaced
 * by a legal one, and `isBroken` is set. An exception would keep every row of the same read from being listed, claimed
 * and rescued.
 */
export class Columns {
  readonly #row: Row;
  #isBroken = false;

  constructor(row: Row) {
    this.#row = row;
  }

  /** Whether a value that was read so far was replaced. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  text(name: string): string {
    return this.textOrNull(name) ?? this.#broken("");
  }

  textOrNull(name: string): string | null {
    const value: unknown = this.#row[name];
    if (value === null || typeof value === "string") return value;
    // Drivers return blobs as ArrayBuffer.
    const bytes = value instanceof ArrayBuffer ? Buffer.from(value).toString("utf8") : null;
    return this.#broken(bytes ?? (typeof value === "number" ? String(value) : null));
  }

  oneOf<Value extends string>(name: string, values: readonly Value[], otherwise: Value): Value {
    const value = this.#row[name];
    return values.find((one) => one === value) ?? this.#broken(otherwise);
  }

  /** A safe integer that is at least `least`. */
  count(name: string, least: number): number {
    const value = this.#row[name];
    return typeof value === "number" && Number.isSafeInteger(value) && value >= least ? value : this.#broken(least);
  }

  /** 0 or 1. */
  flag(name: string, otherwise: boolean): boolean {
    const value = this.#row[name];
    return value === 0 || value === 1 ? value === 1 : this.#broken(otherwise);
  }

  time(name: string): Date {
    return this.timeOrNull(name) ?? this.#broken(new Date(0));
  }

  timeOrNull(name: string): Date | null {
    const value = this.#row[name] ?? null;
    if (value === null) return null;
    const isTime = typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= DATE_MS_MAX;
    return isTime ? new Date(value) : this.#broken(null);
  }

  #broken<Value>(otherwise: Value): Value {
    this.#isBroken = true;
    return otherwise;
  }
}
