import { type Column, getTableColumns } from "drizzle-orm";
import {
  type Action,
  ACTION_STATUSES,
  awaitsRunAt,
  type Creator,
  type ErrorSource,
  HTTP_METHODS,
  type OnUnknown,
  parseLateResult,
  type Result,
} from "../../src/core/action.ts";
import { parseActionPolicy, actionPolicyText } from "../../src/core/action-policy.ts";
import { type Counted, countedText, parseCounted } from "../../src/core/rule-count.ts";
import { type Actor, HOLDS, ROLES } from "../../src/core/roles.ts";
import {
  isTooLate,
  TIMELINE_EVENT_TYPES,
  type TimelineEntry,
  type TimelineEvent,
  type TimelineEventType,
} from "../../src/core/timeline.ts";
import { extrasText, NO_EXTRAS } from "../../src/core/extras.ts";
import { parseExtras } from "../../src/core/extras-schema.ts";
import type { Secrets } from "../../src/crypto/secrets.ts";
import type { NewNotification, Notification, NotificationKind } from "../../src/core/notification.ts";
import type { OutboxEntry } from "../../src/core/store.ts";
import { RESULT } from "../commands/actions.ts";
import type { Tables } from "../commands/command.ts";
import { tables } from "../libsql/schema.ts";
import type { Row } from "./sql.ts";

const { actions, outbox, timeline } = tables;

/** Header values carry credentials: they are stored encrypted only. */
export type HeaderSeal = Pick<Secrets, "seal" | "open">;

/** All columns that an action is read from. */
export const actionColumns = (table: Tables["actions"]) =>
  without(getTableColumns(table), ["scheduledAt", "claimedBy"]);

/** The columns of an action without its last result, which may be large. */
export const columnsButResult = (table: Tables["actions"]) => without(actionColumns(table), RESULT);

export function resultValues(result: Result | null): Readonly<Record<keyof Result, unknown>> {
  // Safe: it has a member for each column.
  return result ?? (Object.fromEntries(RESULT.map((name) => [name, null])) as Record<keyof Result, null>);
}

export function without<Columns extends object, Name extends keyof Columns & string>(
  columns: Columns,
  names: readonly Name[],
) {
  const others = Object.entries(columns).filter(([name]) => !names.some((one) => one === name));
  // Safe: those are the others.
  return Object.fromEntries(others) as Omit<Columns, Name>;
}

/** A time of the wall clock stays right when the clock is set back. */
const NEVER_MOVED = new Date(0);

/** `scheduled_at` of an action whose state was written at this time. */
export function scheduledAtOf(action: Action, at: Date): Date {
  return awaitsRunAt(action) ? NEVER_MOVED : at;
}

/** The columns that have another form in an action. */
export function storedValues({ id, headers, creator, extras, policy, counted }: Action, seal: HeaderSeal) {
  const sealedHeaders = headers === null ? null : seal.seal(JSON.stringify(headers), headersPlace(id));
  const [keyRole, keyHold] = [creator.role, creator.hold];
  const texts = { extras: extrasText(extras), policy: actionPolicyText(policy), counted: countedText(counted) };
  return { sealedHeaders, keyRole, keyHold, ...texts };
}

/**
 * An action from a row; without the columns of its result that is null. Never throws: a row that was altered in the database becomes an action with `isAltered`.
 */
export function actionOf(row: Row, seal: HeaderSeal): Action {
  const columns = new Columns(row);
  const action: Action = {
    id: columns.text(actions.id),
    accountId: columns.text(actions.accountId),
    retries: columns.count(actions.retries, 1),
    url: columns.text(actions.url),
    hostname: columns.text(actions.hostname),
    host: columns.text(actions.host),
    method: columns.oneOf(actions.method, HTTP_METHODS, "POST"),
    body: columns.textOrNull(actions.body),
    ...headersOf(row, seal),
    dedupe: columns.textOrNull(actions.dedupe),
    idempotencyKey: columns.textOrNull(actions.idempotencyKey),
    onUnknown: columns.oneOf(actions.onUnknown, ON_UNKNOWN, "stop"),
    // When in doubt held, not sent.
    approve: columns.flag(actions.approve, true),
    callback: columns.textOrNull(actions.callback),
    notifyEmail: columns.textOrNull(actions.notifyEmail),
    title: columns.textOrNull(actions.title),
    extras: columns.parsed(actions.extras, parseExtras, NO_EXTRAS),
    expiresAt: columns.timeOrNull(actions.expiresAt),
    createdAt: columns.time(actions.createdAt),
    // Safe: the actor is only shown.
    createdBy: columns.text(actions.createdBy) as Actor,
    keyId: columns.text(actions.keyId),
    creator: creatorIn(columns),
    revision: columns.count(actions.revision, 1),
    status: columns.oneOf(actions.status, ACTION_STATUSES, "failed"),
    run: columns.count(actions.run, 1),
    attempts: columns.count(actions.attempts, 0),
    dueAt: columns.timeOrNull(actions.dueAt),
    leaseUntil: columns.timeOrNull(actions.leaseUntil),
    startedAt: columns.timeOrNull(actions.startedAt),
    finishedAt: columns.timeOrNull(actions.finishedAt),
    approvedAt: columns.timeOrNull(actions.approvedAt),
    approvedBy: columns.textOrNull(actions.approvedBy),
    approvedDigest: columns.textOrNull(actions.approvedDigest),
    result: resultOf(row),
    lateResult: parseLateResult(columns.textOrNull(actions.lateResult)),
    policy: columns.parsed(actions.policy, parseActionPolicy, null),
    counted: columns.parsed(actions.counted, parseCounted, NOTHING_COUNTED),
  };
  const hasNoBody = action.body === null && action.extras.bodyKind !== undefined;
  return columns.isAltered || hasNoBody ? { ...action, isAltered: true } : action;
}

/** The strictest rules if the values were altered. */
export function creatorIn(columns: Columns): Creator {
  return { role: columns.oneOf(actions.keyRole, ROLES, "agent"), hold: columns.oneOf(actions.keyHold, HOLDS, "all") };
}

/** The same to show it: JSON bodies are put into responses as they are, so one that is not JSON any more becomes a string. */
export function shownActionOf(row: Row, seal: HeaderSeal): Action {
  const action = actionOf(row, seal);
  const { body, result, extras } = action;
  const responseBody = result?.responseBody ?? null;
  const isText = extras.bodyKind !== undefined && extras.bodyKind !== "json";
  if ((isText || isJson(body)) && isJson(responseBody)) return action;
  const shown = result === null ? null : { ...result, responseBody: asJson(responseBody) };
  return { ...action, body: isText ? body : asJson(body), result: shown, isAltered: true };
}

function asJson(text: string | null): string | null {
  return isJson(text) ? text : JSON.stringify(text);
}

export function isJson(text: string | null): boolean {
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
  const [seq, at, run] = [columns.count(timeline.seq, 0), columns.time(timeline.at), columns.count(timeline.run, 1)];
  const status = columns.oneOf(timeline.status, ACTION_STATUSES, "failed");
  const type = columns.oneOf(timeline.type, ROW_TYPES, "failed");
  const detail = detailOf(columns.text(timeline.detail));
  if (columns.isAltered || detail === null) return null;
  // Safe: `actions.ts` writes a type with its own fields.
  return { seq, at, run, status, event: { ...detail, type: isLateRow(type) ? "attempt" : type } as TimelineEvent };
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

/**
 * What came of an attempt too late to settle the action, which is no change of its status: under other names than the end of
 * an attempt, so that the event stream and the overview find rows by their type alone.
 */
const LATE_ROWS = ["late_result", "late"] as const;

type RowType = TimelineEventType | (typeof LATE_ROWS)[number];

const ROW_TYPES: readonly RowType[] = [...TIMELINE_EVENT_TYPES, ...LATE_ROWS];

function isLateRow(type: RowType): type is (typeof LATE_ROWS)[number] {
  return type === "late_result" || type === "late";
}

/** The type of an event's row. */
export function rowTypeOf(event: TimelineEvent): RowType {
  if (!isTooLate(event)) return event.type;
  return "late" in event && event.late === "result" ? "late_result" : "late";
}

/** Responses are never sent, so an altered one is shown as far as it can be read. */
function resultOf(row: Row): Result | null {
  if (typeof row[actions.responseCode.name] !== "number" && typeof row[actions.errorSource.name] !== "string")
    return null;
  const columns = new Columns(row);
  const code = row[actions.responseCode.name] ?? null;
  const source = row[actions.errorSource.name] ?? null;
  const durationMs = row[actions.durationMs.name] ?? null;
  return {
    lastError: columns.textOrNull(actions.lastError),
    errorSource: source === null ? null : columns.oneOf(actions.errorSource, SOURCES, "dispatch"),
    responseCode: code === null ? null : columns.count(actions.responseCode, 0),
    responseBody: columns.textOrNull(actions.responseBody),
    responseTruncated: row[actions.responseTruncated.name] === 1,
    durationMs: durationMs === null ? null : columns.count(actions.durationMs, 0),
    responseHeaders: columns.textOrNull(actions.responseHeaders),
  };
}

/**
 * Headers that can't be decrypted set `isAltered`. An exception would keep every action of the same read from being
 * listed, claimed and rescued.
 */
function headersOf(row: Row, seal: HeaderSeal): Pick<Action, "headers" | "isAltered"> {
  const sealed = row[actions.sealedHeaders.name];
  if (typeof sealed !== "string") return { headers: null };
  try {
    const text = seal.open(sealed, headersPlace(row[actions.id.name] as string)).toString("utf8");
    return { headers: JSON.parse(text) as Record<string, string> };
  } catch {
    return { headers: null, isAltered: true };
  }
}

function headersPlace(actionId: string) {
  return { table: "actions", row: actionId, column: "sealed_headers" };
}

/** One list, so that actions of which nothing counts share it. */
const NOTHING_COUNTED: readonly Counted[] = [];

/** A column, or what a query names like one. */
type Named = Pick<Column, "name">;

/** The last millisecond of `Date` (ECMA-262, 21.4.1.1). */
const DATE_MS_MAX = 8_640_000_000_000_000;

/**
 * Reads columns of a row that may have been altered in the database. A value that the service never writes is replaced
 * by a legal one, and `isAltered` is set. An exception would keep every row of the same read from being listed, claimed
 * and rescued.
 */
export class Columns {
  readonly #row: Row;
  #isAltered = false;

  constructor(row: Row) {
    this.#row = row;
  }

  /** Whether a value that was read so far was replaced. */
  get isAltered(): boolean {
    return this.#isAltered;
  }

  text(column: Named): string {
    return this.textOrNull(column) ?? this.#altered("");
  }

  textOrNull(column: Named): string | null {
    const value: unknown = this.#row[column.name];
    if (value === null || typeof value === "string") return value;
    // Drivers return blobs as one of these.
    const isBlob = value instanceof Uint8Array || value instanceof ArrayBuffer;
    const bytes = isBlob ? Buffer.from(new Uint8Array(value)).toString("utf8") : null;
    return this.#altered(bytes ?? (typeof value === "number" ? String(value) : null));
  }

  /** What a text says. */
  parsed<Value>(column: Named, parse: (text: string) => Value | null | undefined, otherwise: Value): Value {
    const text = this.textOrNull(column);
    return text === null ? otherwise : (parse(text) ?? this.#altered(otherwise));
  }

  oneOf<Value extends string>(column: Named, values: readonly Value[], otherwise: Value): Value {
    const value = this.#row[column.name];
    return values.find((one) => one === value) ?? this.#altered(otherwise);
  }

  /** A safe integer that is at least `least`. */
  count(column: Named, least: number): number {
    const value = this.#row[column.name];
    return typeof value === "number" && Number.isSafeInteger(value) && value >= least ? value : this.#altered(least);
  }

  /** 0 or 1. */
  flag(column: Named, otherwise: boolean): boolean {
    const value = this.#row[column.name];
    return value === 0 || value === 1 ? value === 1 : this.#altered(otherwise);
  }

  time(column: Named): Date {
    return this.timeOrNull(column) ?? this.#altered(new Date(0));
  }

  timeOrNull(column: Named): Date | null {
    const value = this.#row[column.name] ?? null;
    if (value === null) return null;
    const isTime = typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= DATE_MS_MAX;
    return isTime ? new Date(value) : this.#altered(null);
  }

  #altered<Value>(otherwise: Value): Value {
    this.#isAltered = true;
    return otherwise;
  }
}

/** All that a notification is read from: its body is read when it is sent. */
export const notificationColumns = (table: Tables["outbox"]) =>
  without(getTableColumns(table), ["revision", "payload", "scheduledAt", "sentAt", "claimedBy"]);

const KINDS = ["callback", "mail", "message"] as const satisfies readonly NotificationKind[];

const STATUSES = ["pending", "active", "delivered", "given_up", "dropped"] as const;

/** Never throws: a row that was altered in the database becomes a notification with `isAltered`. */
export function notificationOf(row: Row): Notification {
  return readNotification(new Columns(row));
}

export function entryOf(row: Row): OutboxEntry {
  const columns = new Columns(row);
  return {
    ...readNotification(columns),
    status: columns.oneOf(outbox.status, STATUSES, "given_up"),
    dueAt: columns.timeOrNull(outbox.dueAt),
    createdAt: columns.time(outbox.createdAt),
    lastError: columns.textOrNull(outbox.lastError),
  };
}

function readNotification(columns: Columns): Notification {
  const kind = columns.oneOf(outbox.kind, KINDS, "callback");
  const notification: Notification = {
    id: columns.text(outbox.id),
    actionId: columns.text(outbox.actionId),
    accountId: columns.text(outbox.accountId),
    run: columns.count(outbox.run, 1),
    // Safe: `actions.ts` writes only events of the kind; an altered one is only shown.
    message: { kind, event: columns.text(outbox.event), target: columns.text(outbox.target) } as NewNotification,
    host: columns.text(outbox.host),
    keyId: columns.text(outbox.keyId),
    attempts: columns.count(outbox.attempts, 0),
    leaseUntil: columns.timeOrNull(outbox.leaseUntil),
  };
  return columns.isAltered ? { ...notification, isAltered: true } : notification;
}
