import { type Column, getTableColumns, getTableName } from "drizzle-orm";
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
import { actionPolicyText, parseActionPolicy } from "../../src/core/action-policy.ts";
import { extrasText, NO_EXTRAS } from "../../src/core/extras.ts";
import { parseExtras } from "../../src/core/extras-schema.ts";
import type { NewNotification, Notification, NotificationKind } from "../../src/core/notification.ts";
import { type Counted, countedText, parseCounted } from "../../src/core/rule-count.ts";
import { type Actor, HOLDS, ROLES } from "../../src/core/roles.ts";
import type { OutboxEntry } from "../../src/core/store.ts";
import {
  isTooLate,
  TIMELINE_EVENT_TYPES,
  type TimelineEntry,
  type TimelineEvent,
  type TimelineEventType,
} from "../../src/core/timeline.ts";
import type { Secrets } from "../../src/crypto/secrets.ts";
import { RESULT } from "../commands/actions.ts";
import type { QueueName } from "../commands/claims.ts";
import type { Tables } from "../commands/command.ts";
import { tables } from "../libsql/schema.ts";
import type { Row } from "./sql.ts";

const { actions, outbox, timeline } = tables;

/** A row with a value that the service never writes: a hand has altered it in the database. Nothing of it is ever sent. */
export class UnreadableRow extends Error {
  override readonly name = "UnreadableRow";
  readonly id: string;

  constructor(column: Column, row: Row, cause?: unknown) {
    const id = String(row["id"]);
    super(`The ${column.name} of ${id} in ${getTableName(column.table)} can't be read.`, { cause });
    this.id = id;
  }
}

/** Called with a row that can't be read, of the actions or a kind of notification. */
export type OnUnreadable = (of: QueueName, row: UnreadableRow) => void;

/** What can be read of rows. The others must not keep these from being listed, claimed or rescued: `onUnreadable` is called with them. */
export function readable<Value extends object>(
  rows: readonly Row[],
  read: (row: Row) => Value,
  onUnreadable: (row: UnreadableRow) => void = () => {},
): readonly Value[] {
  const values: Value[] = [];
  for (const row of rows) {
    try {
      values.push(read(row));
    } catch (error) {
      if (!(error instanceof UnreadableRow)) throw error;
      onUnreadable(error);
    }
  }
  return values;
}

/** The last millisecond of `Date` (ECMA-262, 21.4.1.1). */
const DATE_MS_MAX = 8_640_000_000_000_000;

/** Reads columns of a row. Each throws `UnreadableRow` for a value that the service never writes. */
export class Columns {
  readonly #row: Row;

  constructor(row: Row) {
    this.#row = row;
  }

  text(column: Column): string {
    const value = this.#row[column.name];
    return typeof value === "string" ? value : this.unreadable(column);
  }

  textOrNull(column: Column): string | null {
    return this.#isNull(column) ? null : this.text(column);
  }

  oneOf<Value extends string>(column: Column, values: readonly Value[]): Value {
    const value = this.#row[column.name];
    return values.find((one) => one === value) ?? this.unreadable(column);
  }

  number(column: Column): number {
    const value = this.#row[column.name];
    return typeof value === "number" && Number.isSafeInteger(value) ? value : this.unreadable(column);
  }

  numberOrNull(column: Column): number | null {
    return this.#isNull(column) ? null : this.number(column);
  }

  flag(column: Column): boolean {
    const value = this.#row[column.name];
    return value === 0 || value === 1 ? value === 1 : this.unreadable(column);
  }

  time(column: Column): Date {
    const ms = this.number(column);
    return Math.abs(ms) <= DATE_MS_MAX ? new Date(ms) : this.unreadable(column);
  }

  timeOrNull(column: Column): Date | null {
    return this.#isNull(column) ? null : this.time(column);
  }

  /** What a text says. */
  parsed<Value>(column: Column, parse: (text: string) => Value | null | undefined, none: Value): Value {
    return this.#isNull(column) ? none : (parse(this.text(column)) ?? this.unreadable(column));
  }

  unreadable(column: Column, cause?: unknown): never {
    throw new UnreadableRow(column, this.#row, cause);
  }

  #isNull(column: Column): boolean {
    return this.#row[column.name] === null;
  }
}

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

function without<Columns extends object, Name extends keyof Columns & string>(
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

const ON_UNKNOWN = ["retry", "stop"] as const satisfies readonly OnUnknown[];

/** An action from a row; without the columns of its result that is null. */
export function actionOf(row: Row, seal: HeaderSeal): Action {
  const columns = new Columns(row);
  const action: Action = {
    id: columns.text(actions.id),
    accountId: columns.text(actions.accountId),
    retries: columns.number(actions.retries),
    url: columns.text(actions.url),
    hostname: columns.text(actions.hostname),
    host: columns.text(actions.host),
    method: columns.oneOf(actions.method, HTTP_METHODS),
    body: columns.textOrNull(actions.body),
    headers: headersOf(columns, seal),
    dedupe: columns.textOrNull(actions.dedupe),
    idempotencyKey: columns.textOrNull(actions.idempotencyKey),
    onUnknown: columns.oneOf(actions.onUnknown, ON_UNKNOWN),
    approve: columns.flag(actions.approve),
    callback: columns.textOrNull(actions.callback),
    notifyEmail: columns.textOrNull(actions.notifyEmail),
    title: columns.textOrNull(actions.title),
    extras: columns.parsed(actions.extras, parseExtras, NO_EXTRAS),
    expiresAt: columns.timeOrNull(actions.expiresAt),
    createdAt: columns.time(actions.createdAt),
    // Safe: the actor is only shown.
    createdBy: columns.text(actions.createdBy) as Actor,
    keyId: columns.text(actions.keyId),
    creator: creatorOf(columns),
    revision: columns.number(actions.revision),
    status: columns.oneOf(actions.status, ACTION_STATUSES),
    run: columns.number(actions.run),
    attempts: columns.number(actions.attempts),
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
  // A body is of some kind.
  return action.body === null && action.extras.bodyKind !== undefined ? columns.unreadable(actions.body) : action;
}

/** Whoever created an action. */
export function creatorOf(columns: Columns): Creator {
  return { role: columns.oneOf(actions.keyRole, ROLES), hold: columns.oneOf(actions.keyHold, HOLDS) };
}

/** The same to show it: its texts are put into answers as the JSON that they are. */
export function shownActionOf(row: Row, seal: HeaderSeal): Action {
  const action = actionOf(row, seal);
  const columns = new Columns(row);
  const { bodyKind = "json" } = action.extras;
  if (bodyKind === "json" && !isJson(action.body)) columns.unreadable(actions.body);
  if (!isJson(action.result?.responseBody ?? null)) columns.unreadable(actions.responseBody);
  return action;
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

const SOURCES = ["target", "dispatch"] as const satisfies readonly ErrorSource[];

function resultOf(row: Row): Result | null {
  const { response_code: code = null, error_source: source = null } = row;
  if (code === null && source === null) return null;
  const columns = new Columns(row);
  return {
    lastError: columns.textOrNull(actions.lastError),
    errorSource: source === null ? null : columns.oneOf(actions.errorSource, SOURCES),
    responseCode: columns.numberOrNull(actions.responseCode),
    responseBody: columns.textOrNull(actions.responseBody),
    responseTruncated: row["response_truncated"] === 1,
    durationMs: columns.numberOrNull(actions.durationMs),
    responseHeaders: columns.textOrNull(actions.responseHeaders),
  };
}

function headersOf(columns: Columns, seal: HeaderSeal): Action["headers"] {
  const sealed = columns.textOrNull(actions.sealedHeaders);
  if (sealed === null) return null;
  try {
    const text = seal.open(sealed, headersPlace(columns.text(actions.id))).toString("utf8");
    return JSON.parse(text) as Record<string, string>;
  } catch (error) {
    return columns.unreadable(actions.sealedHeaders, error);
  }
}

function headersPlace(actionId: string) {
  return { table: "actions", row: actionId, column: "sealed_headers" };
}

/** One list, so that actions of which nothing counts share it. */
const NOTHING_COUNTED: readonly Counted[] = [];

export function timelineEntryOf(row: Row): TimelineEntry {
  const columns = new Columns(row);
  const type = columns.oneOf(timeline.type, ROW_TYPES);
  const [seq, at, run] = [columns.number(timeline.seq), columns.time(timeline.at), columns.number(timeline.run)];
  const status = columns.oneOf(timeline.status, ACTION_STATUSES);
  const detail = columns.parsed(timeline.detail, detailOf, null);
  // Safe: `actions.ts` writes a type with its own fields.
  const event = { ...detail, type: type === "late_result" || type === "late" ? "attempt" : type } as TimelineEvent;
  return { seq, at, run, status, event };
}

function detailOf(text: string): object | null {
  try {
    const detail: unknown = JSON.parse(text);
    return typeof detail === "object" && !Array.isArray(detail) ? detail : null;
  } catch {
    return null;
  }
}

/**
 * What came of an attempt too late to settle the action, which is no change of its status: under other names than the end of
 * an attempt, so that the event stream and the overview find rows by their type alone.
 */
const LATE_ROWS = ["late_result", "late"] as const;

type RowType = TimelineEventType | (typeof LATE_ROWS)[number];

const ROW_TYPES: readonly RowType[] = [...TIMELINE_EVENT_TYPES, ...LATE_ROWS];

/** The type of an event's row. */
export function rowTypeOf(event: TimelineEvent): RowType {
  if (!isTooLate(event)) return event.type;
  return "late" in event && event.late === "result" ? "late_result" : "late";
}

/** All that a notification is read from: its body is read when it is sent. */
export const notificationColumns = (table: Tables["outbox"]) =>
  without(getTableColumns(table), ["revision", "payload", "scheduledAt", "sentAt", "claimedBy"]);

const KINDS = ["callback", "mail", "message"] as const satisfies readonly NotificationKind[];

const STATUSES = ["pending", "active", "delivered", "given_up", "dropped"] as const;

export function notificationOf(row: Row): Notification {
  const columns = new Columns(row);
  const kind = columns.oneOf(outbox.kind, KINDS);
  return {
    id: columns.text(outbox.id),
    actionId: columns.text(outbox.actionId),
    accountId: columns.text(outbox.accountId),
    run: columns.number(outbox.run),
    // Safe: `actions.ts` writes only events of the kind.
    message: { kind, event: columns.text(outbox.event), target: columns.text(outbox.target) } as NewNotification,
    host: columns.text(outbox.host),
    keyId: columns.text(outbox.keyId),
    attempts: columns.number(outbox.attempts),
    leaseUntil: columns.timeOrNull(outbox.leaseUntil),
  };
}

export function entryOf(row: Row): OutboxEntry {
  const columns = new Columns(row);
  return {
    ...notificationOf(row),
    status: columns.oneOf(outbox.status, STATUSES),
    dueAt: columns.timeOrNull(outbox.dueAt),
    createdAt: columns.time(outbox.createdAt),
    lastError: columns.textOrNull(outbox.lastError),
  };
}
