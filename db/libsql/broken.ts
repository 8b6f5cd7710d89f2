import type { Action } from "../../src/actions/action.ts";
import type { Notification, NotificationKind } from "../../src/delivery/notification.ts";
import type { StoreContext } from "./context.ts";
import { NOTIFICATION_COLUMNS, notificationOf } from "./outbox-rows.ts";
import { actionOf, REQUEST_COLUMNS, RESULT_COLUMNS, STATE_COLUMNS } from "./rows.ts";
import type { Row, Sql } from "./sql.ts";

/**
 * The conditions of the indexes `actions_broken` and `outbox_broken`, in exactly their words: rows that are not final
 * and that nothing else would find. Other bad values show when the row is claimed, by `Columns`.
 */
const BROKEN_ACTION = `status <> 'completed' AND status <> 'failed' AND status <> 'cancelled' AND NOT (
  typeof(id) = 'text' AND typeof(account_id) = 'text' AND typeof(host) = 'text' AND typeof(key_id) = 'text' AND typeof(revision) = 'integer'
  AND revision < 9007199254740991 AND typeof(ifnull(due_at, 0)) = 'integer'
  AND ifnull(due_at, 0) < 8640000000000001 AND ifnull(due_at, 0) > -8640000000000001
  AND typeof(ifnull(lease_until, 0)) = 'integer' AND ifnull(lease_until, 0) < 8640000000000001
  AND ifnull(lease_until, 0) > -8640000000000001
  AND (status <> 'awaiting_approval' OR (
    typeof(url) = 'text' AND typeof(hostname) = 'text' AND typeof(created_by) = 'text'
    AND (method = 'GET' OR method = 'POST' OR method = 'PUT' OR method = 'PATCH' OR method = 'DELETE')
    AND (on_unknown = 'retry' OR on_unknown = 'stop') AND (approve = 0 OR approve = 1)
    AND typeof(ifnull(dedupe, '')) = 'text' AND typeof(ifnull(idempotency_key, '')) = 'text'
    AND typeof(ifnull(callback, '')) = 'text' AND typeof(ifnull(notify_email, '')) = 'text'
    AND typeof(ifnull(approved_by, '')) = 'text' AND typeof(ifnull(approved_digest, '')) = 'text'
    AND typeof(ifnull(sealed_headers, '')) = 'text' AND typeof(ifnull(body, '')) = 'text'
    AND typeof(run) = 'integer' AND run > 0 AND run < 9007199254740991 AND typeof(attempts) = 'integer'
    AND attempts > -1 AND attempts < 9007199254740991 AND typeof(retries) = 'integer' AND retries > 0
    AND retries < 9007199254740991 AND typeof(created_at) = 'integer' AND created_at < 8640000000000001
    AND created_at > -8640000000000001 AND typeof(ifnull(started_at, 0)) = 'integer'
    AND ifnull(started_at, 0) < 8640000000000001 AND ifnull(started_at, 0) > -8640000000000001
    AND typeof(ifnull(finished_at, 0)) = 'integer' AND ifnull(finished_at, 0) < 8640000000000001
    AND ifnull(finished_at, 0) > -8640000000000001 AND typeof(ifnull(approved_at, 0)) = 'integer'
    AND ifnull(approved_at, 0) < 8640000000000001 AND ifnull(approved_at, 0) > -8640000000000001)))`;

const BROKEN_NOTIFICATION = `status <> 'delivered' AND status <> 'given_up' AND status <> 'dropped' AND NOT (
  typeof(id) = 'text' AND typeof(account_id) = 'text' AND typeof(host) = 'text' AND typeof(key_id) = 'text'
  AND (kind = 'callback' OR kind = 'mail') AND typeof(attempts) = 'integer' AND attempts < 9007199254740991
  AND typeof(ifnull(due_at, 0)) = 'integer' AND ifnull(due_at, 0) < 8640000000000001
  AND ifnull(due_at, 0) > -8640000000000001 AND typeof(ifnull(lease_until, 0)) = 'integer'
  AND ifnull(lease_until, 0) < 8640000000000001 AND ifnull(lease_until, 0) > -8640000000000001)`;

/** An id that is not text can't be addressed: it gets one that can. */
const NAME_ACTIONS = `UPDATE actions SET id = 'act_' || lower(hex(id)) WHERE typeof(id) <> 'text' AND status <> 'completed'
  AND rowid IN (SELECT rowid FROM actions WHERE ${BROKEN_ACTION})`;

const NAME_NOTIFICATIONS = `UPDATE outbox SET id = 'row_' || lower(hex(id)) WHERE typeof(id) <> 'text' AND status <> 'delivered'
  AND rowid IN (SELECT rowid FROM outbox WHERE ${BROKEN_NOTIFICATION})`;

/** Not every driver can read a number past 2^53. */
const COUNTS: ReadonlySet<string> = new Set(["revision", "run", "attempts", "retries", "response_code", "duration_ms"]);

const readable = (column: string) =>
  COUNTS.has(column) || column.endsWith("_at") || column === "lease_until"
    ? `CASE WHEN ${column} NOT BETWEEN -9007199254740991 AND 9007199254740991 AND typeof(${column}) = 'integer'
        THEN 'out of range' ELSE ${column} END AS ${column}`
    : column;

const ACTION_COLUMNS = [...REQUEST_COLUMNS, ...STATE_COLUMNS, ...RESULT_COLUMNS].map(readable).join(", ");

const READABLE_NOTIFICATION_COLUMNS = NOTIFICATION_COLUMNS.split(", ").map(readable).join(", ");

/** See `Queue.broken`. */
export async function findBroken(
  { sql, writer, seal, refused }: StoreContext,
  limit: number,
  after: string,
): Promise<readonly Action[]> {
  const read = () => page(sql, `SELECT ${ACTION_COLUMNS} FROM actions WHERE ${BROKEN_ACTION}`, { limit, after });
  let rows = await read();
  if (rows.some(isNameless)) {
    await writer.write([{ sql: NAME_ACTIONS, args: [] }]);
    rows = await read();
  }
  const others = await findRefused({ sql, refused }, { limit, after });
  const byId = new Map([...rows, ...others].map((row) => [String(row["id"]), row]));
  return [...byId.entries()]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .slice(0, limit)
    .map(([, row]) => ({ ...actionOf(row, seal), isAltered: true }));
}

/** See `Queue.broken`. Rows of an unknown kind belong to the callbacks: otherwise no loop would find them. */
export async function findBrokenNotifications(
  { sql, writer }: Pick<StoreContext, "sql" | "writer">,
  kind: NotificationKind,
  { limit, after }: Page,
): Promise<readonly Notification[]> {
  const isOfKind = kind === "mail" ? "kind = 'mail'" : "kind <> 'mail'";
  const read = () =>
    page(sql, `SELECT ${READABLE_NOTIFICATION_COLUMNS} FROM outbox WHERE ${BROKEN_NOTIFICATION} AND ${isOfKind}`, {
      limit,
      after,
    });
  let rows = await read();
  if (rows.some(isNameless)) {
    await writer.write([{ sql: NAME_NOTIFICATIONS, args: [] }]);
    rows = await read();
  }
  return rows.map((row) => ({ ...notificationOf(row), isAltered: true }));
}

interface Page {
  readonly limit: number;
  readonly after: string;
}

function page(sql: Sql, text: string, { limit, after }: Page): Promise<readonly Row[]> {
  return sql.read({ sql: `${text} AND id > ? ORDER BY id LIMIT ?`, args: [after, limit] });
}

function isNameless(row: Row): boolean {
  return typeof row["id"] !== "string";
}

/** Rows that the database refused to write and that are not final. */
async function findRefused({ sql, refused }: Pick<StoreContext, "sql" | "refused">, { limit, after }: Page) {
  const ids = refused.after(after, limit);
  if (ids.length === 0) return [];
  const places = ids.map(() => "?").join(", ");
  const text = `SELECT ${ACTION_COLUMNS} FROM actions
    WHERE id IN (${places}) AND status IN ('pending', 'active', 'awaiting_approval')`;
  const rows = await sql.read({ sql: text, args: ids });
  const found = new Set(rows.map((row) => row["id"]));
  for (const id of ids) if (!found.has(id)) refused.delete(id);
  return rows;
}
