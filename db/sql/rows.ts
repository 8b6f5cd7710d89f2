/**
 * Rows of actions, timelines and notifications: what is read of them, with a check of each value, since somebody may have altered the
 * database; and the values that a create stores.
 */
import { type Column, type GetColumnData, getTableColumns, getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { type ActionPolicy, parseActionPolicy } from "../../src/core/action-policy.ts";
import {
  type Action,
  awaitsRunAt,
  largeRowBytes,
  type LateResult,
  parseLateResult,
  type Result,
  extrasText,
  NO_EXTRAS,
} from "../../src/core/action.ts";
import { systemClock } from "../../src/core/clock.ts";
import { parseCounted, parseExtras } from "../../src/core/extras-schema.ts";
import { jsonIn } from "../../src/core/json.ts";
import { DATE_MS_MAX } from "../../src/core/limits.ts";
import type { NewNotification } from "../../src/core/notification-events.ts";
import type { Notification } from "../../src/core/notification.ts";
import { RecentMap } from "../../src/core/maps.ts";
import type { StoredCount } from "../../src/core/account-rules.ts";
import type { OutboxEntry } from "../../src/core/store.ts";
import { isTarget } from "../../src/core/target.ts";
import {
  isTooLate,
  TIMELINE_EVENT_TYPES,
  type TimelineEntry,
  type TimelineEvent,
  type TimelineEventType,
} from "../../src/core/timeline.ts";
import type { Secrets } from "../../src/crypto/secrets.ts";
import { areHeaders } from "../../src/receipts/response-headers.ts";
import { createTurnShare } from "../../src/runtime/fair-share.ts";
import { RESULT } from "../commands/actions.ts";
import type { QueueName } from "../commands/command.ts";
import { actions, outbox, timeline } from "../tables.ts";
import type { Reader, Row, SqlValue } from "./dialect.ts";
import { prepare, qb } from "./read.ts";
import type { StoreAccess } from "./writer.ts";

/** A row with a value that the service never writes: somebody altered the database. Nothing of such a row is ever sent. */
export class UnreadableRow extends Error {
  override readonly name = "UnreadableRow";
  readonly id: string;

  constructor(column: Column, row: Row, cause?: unknown) {
    const id = String(row["id"]);
    super(`The ${column.name} of ${id} in ${getTableName(column.table)} can't be read.`, { cause });
    this.id = id;
  }
}

/** Called with each action or notification that can't be read. */
export type OnUnreadable = (of: QueueName, row: UnreadableRow) => void;

/** Reads rows and leaves out unreadable ones: one altered row must not keep the others from being listed or claimed. */
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

type ColumnsOf<Names extends string> = Readonly<Record<Names, Column>>;

type RowOf<Columns extends ColumnsOf<string>> = { readonly [Name in keyof Columns]: GetColumnData<Columns[Name]> };

/** Makes a function that reads these columns of a row. It throws `UnreadableRow` for a value that its column can't have. */
export function rowReader<Columns extends ColumnsOf<string>>(columns: Columns): (row: Row) => RowOf<Columns> {
  const all = Object.entries(columns).map(([name, column]) => ({
    name,
    stored: column.name,
    column,
    decode: columnDecoder(column),
  }));
  return (row) => {
    const read: Record<string, unknown> = {};
    for (const { name, stored, column, decode } of all) {
      const value = row[stored] ?? null;
      read[name] = value === null && !column.notNull ? null : decode(value);
      if (read[name] === undefined) throw new UnreadableRow(column, row);
    }
    // Safe: as checked.
    return read as RowOf<Columns>;
  };
}

/** Decodes a value; returns undefined if the column can't have it. */
function columnDecoder({ dataType, enumValues }: Column): (value: SqlValue) => unknown {
  if (dataType === "number") return whole;
  if (dataType === "date") {
    return (value) => (Math.abs(whole(value) ?? Number.NaN) <= DATE_MS_MAX ? new Date(Number(value)) : undefined);
  }
  if (dataType === "boolean") return (value) => (value === 0 || value === 1 ? value === 1 : undefined);
  if (enumValues === undefined || enumValues.length === 0)
    return (value) => (typeof value === "string" ? value : undefined);
  return (value) => enumValues.find((one) => one === value);
}

function whole(value: SqlValue): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

/** Encrypts header values, which may be credentials and so are stored only encrypted. */
export type HeaderSeal = Pick<Secrets, "seal" | "open">;

/** All columns from which an action is read. */
export const ACTION_COLUMNS = without(getTableColumns(actions), ["scheduledAt", "claimedBy"]);

/** The columns of an action without its last result, which may be large. */
export const COLUMNS_BUT_RESULT = without(ACTION_COLUMNS, RESULT);

export function only<Table extends SQLiteTable, Name extends keyof Table["_"]["columns"] & string>(
  table: Table,
  names: readonly Name[],
) {
  const columns = getTableColumns(table);
  // Safe: these are the members named.
  return Object.fromEntries(names.map((name) => [name, columns[name]])) as Pick<Table["_"]["columns"], Name>;
}

function without<Columns extends object, Name extends keyof Columns & string>(
  columns: Columns,
  names: readonly Name[],
) {
  const others = Object.entries(columns).filter(([name]) => !names.some((one) => one === name));
  // Safe: these are the members not named.
  return Object.fromEntries(others) as Omit<Columns, Name>;
}

/** Marks a due time that a requester chose (`run_at`), which stays as it is when the clock is set back. */
const NEVER_MOVED = new Date(0);

/** The `scheduled_at` of an action whose state is written at this time. */
export function scheduledTime(action: Action, at: Date): Date {
  return awaitsRunAt(action) ? NEVER_MOVED : at;
}

export function storedValues({ id, headers, creator, extras, policy, counted }: Action, seal: HeaderSeal) {
  const sealedHeaders = headers === null ? null : seal.seal(JSON.stringify(headers), headersPlace(id));
  const [keyRole, keyHold] = [creator.role, creator.hold];
  return { sealedHeaders, keyRole, keyHold, extras: extrasText(extras), ...decidedTexts({ policy, counted }) };
}

/** What was decided about an action, as it is stored. */
export function decidedTexts({ policy, counted }: Pick<Action, "policy" | "counted">) {
  return {
    policy: policy === null ? null : JSON.stringify(policy),
    counted: counted.length === 0 ? null : JSON.stringify(counted),
  };
}

/** Columns whose values have another form in an action. */
const FORMED = ["keyRole", "keyHold", "sealedHeaders", "extras", "lateResult", "policy", "counted"] as const;

const readPlain = rowReader(without(COLUMNS_BUT_RESULT, FORMED));
const readFormed = rowReader(only(actions, FORMED));
const readResult = rowReader(only(actions, RESULT));

/** Reads who created an action. */
export const readCreator = rowReader({ role: actions.keyRole, hold: actions.keyHold });

/** Makes an action from a row. `result` is null if the row was selected without its columns. */
export function toAction(row: Row, seal: HeaderSeal): Action {
  const plain = readPlain(row);
  const { keyRole, keyHold, sealedHeaders, extras, lateResult, policy, counted } = readFormed(row);
  const parsed = <Value>(
    column: Column,
    text: string | null,
    none: Value,
    parse: (text: string) => Value | null | undefined,
  ) => {
    if (text === null) return none;
    const value = parse(text);
    if (value === null || value === undefined) throw new UnreadableRow(column, row);
    return value;
  };
  const action: Action = {
    ...plain,
    headers: sealedHeaders === null ? null : openedHeaders(row, plain.id, sealedHeaders, seal),
    extras: parsed(actions.extras, extras, NO_EXTRAS, parseExtras),
    creator: { role: keyRole, hold: keyHold },
    result: toResult(row),
    lateResult: parsed<LateResult | null>(actions.lateResult, lateResult, null, parseLateResult),
    policy: parsed<ActionPolicy | null>(actions.policy, policy, null, parseActionPolicy),
    counted: parsed(actions.counted, counted, NOTHING_COUNTED, parseCounted),
  };
  if (!isTarget(action.url)) throw new UnreadableRow(actions.url, row);
  // A kind of body without a body: the row was altered.
  if (action.body === null && action.extras.bodyKind !== undefined) throw new UnreadableRow(actions.body, row);
  return action;
}

/** Makes an action to show from a row. Checks that its texts are JSON, since answers contain them as they are. */
export function toShownAction(row: Row, seal: HeaderSeal): Action {
  const action = toAction(row, seal);
  const { bodyKind = "json" } = action.extras;
  if (bodyKind === "json" && !isJson(action.body)) throw new UnreadableRow(actions.body, row);
  const { result, lateResult } = action;
  if (!isJson(result?.responseBody ?? null)) throw new UnreadableRow(actions.responseBody, row);
  if (!areHeaders(result?.responseHeaders ?? null)) throw new UnreadableRow(actions.responseHeaders, row);
  if (lateResult !== null && !(isJson(lateResult.responseBody) && areHeaders(lateResult.responseHeaders)))
    throw new UnreadableRow(actions.lateResult, row);
  return action;
}

export function isJson(text: string | null): boolean {
  return text === null || jsonIn(text) !== undefined;
}

function toResult(row: Row): Result | null {
  const { response_code: code = null, error_source: source = null } = row;
  if (code === null && source === null) return null;
  const result = readResult(row);
  return { ...result, responseTruncated: result.responseTruncated === true };
}

function openedHeaders(row: Row, id: string, sealed: string, seal: HeaderSeal): Action["headers"] {
  try {
    return JSON.parse(seal.open(sealed, headersPlace(id)).toString("utf8")) as Record<string, string>;
  } catch (error) {
    throw new UnreadableRow(actions.sealedHeaders, row, error);
  }
}

function headersPlace(actionId: string) {
  return { table: "actions", row: actionId, column: "sealed_headers" };
}

/** One shared list, since most actions count towards no rule. */
const NOTHING_COUNTED: readonly StoredCount[] = [];

const FIND_ALL = prepare({ ids: "list" }, (arg, { isOneOf }) =>
  qb.select(ACTION_COLUMNS).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** The rows of these actions, in this order. */
export async function findRows(reader: Reader, ids: readonly string[]): Promise<readonly Row[]> {
  if (ids.length === 0) return [];
  const rows = await FIND_ALL.raw(reader, { ids });
  const byId = new Map(rows.map((row) => [row["id"], row]));
  return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
}

/** SQLite reads on this thread, so that many searches and lists would block the event loop if each took its own turn. */
export const shareTurn = createTurnShare(systemClock);

/** These actions of an account in this order, to show them, without those that can't be read. */
export async function findActions(
  { reader, seal }: Pick<ActionAccess, "reader" | "seal">,
  accountId: string,
  ids: readonly string[],
): Promise<readonly Action[]> {
  const rows = await shareTurn(accountId, () => findRows(reader, ids));
  return shareTurn(accountId, () => readable(rows, (row) => toShownAction(row, seal)));
}

/** The first rows whose `bytes` fit together, but at least one. */
export function fitting<Sized extends { readonly bytes?: unknown }>(bytesMax: number, rows: readonly Sized[]) {
  let total = 0;
  const count = rows.findIndex(({ bytes }) => (total += Number(bytes)) > bytesMax);
  return rows.slice(0, count === -1 ? rows.length : Math.max(1, count));
}

const readEntry = rowReader(only(timeline, ["seq", "at", "run", "status", "type", "detail"]));

export function toTimelineEntry(row: Row): TimelineEntry {
  const { type: stored, detail: text, ...entry } = readEntry(row);
  const type = ROW_TYPES.find((one) => one === stored);
  if (type === undefined) throw new UnreadableRow(timeline.type, row);
  const detail = jsonIn(text);
  if (typeof detail !== "object" || detail === null || Array.isArray(detail))
    throw new UnreadableRow(timeline.detail, row);
  // Safe: `actions.ts` writes each type with its own members.
  const event = { ...detail, type: type === "late_result" || type === "late" ? "attempt" : type } as TimelineEvent;
  return { ...entry, event };
}

/**
 * Types of rows for late results of attempts, which change no status. They are not stored as `attempt`, so that the event
 * stream and the overview can select rows by type alone.
 */
const LATE_ROWS = ["late_result", "late"] as const;

type RowType = TimelineEventType | (typeof LATE_ROWS)[number];

const ROW_TYPES: readonly RowType[] = [...TIMELINE_EVENT_TYPES, ...LATE_ROWS];

/** The type under which an event is stored. */
export function timelineRowType(event: TimelineEvent): RowType {
  if (!isTooLate(event)) return event.type;
  return "late" in event && event.late === "result" ? "late_result" : "late";
}

/** The columns of a notification without its body, which is read when it is sent. */
export const NOTIFICATION_COLUMNS = without(getTableColumns(outbox), [
  "revision",
  "payload",
  "scheduledAt",
  "sentAt",
  "claimedBy",
]);

const ENTRY = ["status", "dueAt", "createdAt", "lastError"] as const;

const readNotification = rowReader(without(NOTIFICATION_COLUMNS, ENTRY));
const readOutboxEntry = rowReader(only(outbox, ENTRY));

export function toNotification(row: Row): Notification {
  const { kind, event, target, ...notification } = readNotification(row);
  // Safe: `actions.ts` writes only events of this kind.
  return { ...notification, message: { kind, event, target } as NewNotification };
}

export function toOutboxEntry(row: Row): OutboxEntry {
  return { ...toNotification(row), ...readOutboxEntry(row) };
}

/** What reading and writing actions needs besides the reader and the writer. */
export interface ActionAccess extends StoreAccess {
  readonly seal: HeaderSeal;
  readonly written: WrittenActions;
  readonly onUnreadable: OnUnreadable;
}

/** 32 MiB at most, since large actions are not kept. */
const WRITTEN_ACTIONS_MAX = 2_000;

/**
 * Actions that were just written and will be claimed next. Reading them back and decrypting their headers would cost more than
 * the rest of a claim. An entry with the claimed revision is never stale.
 */
export class WrittenActions {
  readonly #actions = new RecentMap<Action>(WRITTEN_ACTIONS_MAX);

  /** Keeps a pending action without its last result, which may be large and which a claim does not return. */
  keep(action: Action): void {
    if (action.dueAt === null || largeRowBytes(action) !== undefined) return;
    this.#actions.set(action.id, action.result === null ? action : { ...action, result: null });
  }

  /** Removes an action, and returns it if it has exactly this revision. */
  take(id: string, revision: number): Action | null {
    const action = this.#actions.get(id);
    if (action === undefined) return null;
    this.#actions.delete(id);
    return action.revision === revision ? action : null;
  }
}
