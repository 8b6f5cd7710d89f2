import type { Action } from "../../src/actions/action.ts";
import type { KeyKind } from "../../src/actions/dedupe.ts";
import {
  DEDUPE_WINDOW_MS,
  RESCUE_BYTES_MAX,
  SMALL_ROW_BYTES_MAX,
  TIMELINE_ROWS_MAX,
  HOST_ACTIONS_SCANNED_MAX,
} from "../../src/config/limits.ts";
import { CHANGED, type Guard, type Statement, type Row, type Sql } from "./sql.ts";
import type { Claimed } from "../../src/actions/settle.ts";
import type { TimelineEntry } from "../../src/actions/timeline.ts";
import type { DueRow, LaneHead, LaneName } from "../store.ts";
import type { StoreContext } from "./context.ts";
import { actionOf, shownActionOf, RESULT_COLUMNS, REQUEST_COLUMNS, STATE_COLUMNS, timelineEntryOf } from "./rows.ts";
import { type HostOfKey, hostOfKey } from "../../src/approvals/facts.ts";

/** An idempotency or dedupe key. */
export interface KeyOf {
  readonly accountId: string;
  readonly kind: KeyKind;
  readonly key: string;
}

/** The keys that an action was created with. */
export function keysOf({ accountId, idempotencyKey, dedupe }: Action): readonly KeyOf[] {
  const keys: KeyOf[] = [];
  if (idempotencyKey !== null) keys.push({ accountId, kind: "idempotency", key: idempotencyKey });
  if (dedupe !== null) keys.push({ accountId, kind: "dedupe", key: dedupe });
  return keys;
}

/**
 * Condition on rows `k` and `a`: the key names the action, within 24 h and, for `dedupe`, unless it failed.
 * `src/actions/dedupe.ts` has the same rule for one action.
 */
export const LIVE = `k.created_at > ? AND (k.kind = 'idempotency' OR a.status <> 'failed')`;

/** The start of the window, exclusive. */
function windowStart(now: Date): number {
  return now.getTime() - DEDUPE_WINDOW_MS;
}

/** Holds while the key names no live action. */
export function free({ accountId, kind, key }: KeyOf, now: Date): Guard {
  return {
    sql: `NOT EXISTS (SELECT 1 FROM action_keys k JOIN actions a ON a.id = k.action_id
      WHERE k.account_id = ? AND k.kind = ? AND k.key = ? AND ${LIVE})`,
    args: [accountId, kind, key, windowStart(now)],
  };
}

/** Holds while the key names this action. */
export function heldBy({ accountId, kind, key }: KeyOf, actionId: string): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM action_keys WHERE account_id = ? AND kind = ? AND key = ? AND action_id = ?)`,
    args: [accountId, kind, key, actionId],
  };
}

const REPLACE = `ON CONFLICT (account_id, kind, key)
  DO UPDATE SET action_id = excluded.action_id, created_at = excluded.created_at`;

const TAKE = `INSERT INTO action_keys (account_id, kind, key, action_id, created_at)
  SELECT ?, ?, ?, ?, ? WHERE ${CHANGED.sql} ${REPLACE}`;

/** Makes the key name the action, where the statement before wrote the action's row. */
export function take({ accountId, kind, key }: KeyOf, action: Action): Statement {
  return { sql: TAKE, args: [accountId, kind, key, action.id, action.createdAt.getTime()] };
}

const BIND = `INSERT INTO action_keys (account_id, kind, key, action_id, created_at)
  SELECT ?, 'idempotency', ?, k.action_id, ? FROM action_keys k JOIN actions a ON a.id = k.action_id
  WHERE k.account_id = ? AND k.kind = 'dedupe' AND k.key = ? AND ${LIVE}`;

/**
 * Makes the idempotency key of a create name the live action that its dedupe key names, for 24 h from now. Writes
 * nothing while the idempotency key names a live action. Null for a create without both keys.
 */
export function bind({ accountId, idempotencyKey, dedupe }: Action, now: Date): Statement | null {
  if (idempotencyKey === null || dedupe === null) return null;
  const isFree = free({ accountId, kind: "idempotency", key: idempotencyKey }, now);
  return {
    sql: `${BIND} AND ${isFree.sql} ${REPLACE}`,
    args: [accountId, idempotencyKey, now.getTime(), accountId, dedupe, windowStart(now), ...isFree.args],
  };
}

type Reader = Pick<StoreContext, "sql" | "seal">;

const COLUMNS = [...REQUEST_COLUMNS, ...STATE_COLUMNS, ...RESULT_COLUMNS];

/** For joins: every column of `actions a`. */
export const ACTION_COLUMNS = COLUMNS.map((column) => `a.${column}`).join(", ");

/** Bytes of the columns that can be long. It reads only the lengths, which SQLite keeps before the values. */
export const BYTES = ["body", "sealed_headers", "response_body"]
  .map((column) => `ifnull(octet_length(a.${column}), 0)`)
  .join(" + ");

export async function findAction({ sql, seal }: Reader, accountId: string, id: string): Promise<Action | null> {
  const text = `SELECT ${ACTION_COLUMNS} FROM actions a WHERE a.id = ? AND a.account_id = ?`;
  return first(await sql.read({ sql: text, args: [id, accountId] }), seal);
}

export async function findActionById({ sql, seal }: Reader, id: string): Promise<Action | null> {
  return first(await sql.read({ sql: `SELECT ${ACTION_COLUMNS} FROM actions a WHERE a.id = ?`, args: [id] }), seal);
}

/** The live action that a key names. */
export async function holderOf(
  { sql, seal }: Reader,
  { accountId, kind, key }: KeyOf,
  now: Date,
): Promise<Action | null> {
  const text = `SELECT ${ACTION_COLUMNS} FROM action_keys k JOIN actions a ON a.id = k.action_id
    WHERE k.account_id = ? AND k.kind = ? AND k.key = ? AND ${LIVE}`;
  return first(await sql.read({ sql: text, args: [accountId, kind, key, windowStart(now)] }), seal);
}

/** Oldest first; beyond the limit the oldest are left out. */
export async function readTimeline(sql: Sql, accountId: string, id: string): Promise<readonly TimelineEntry[]> {
  const rows = await sql.read({
    sql: `SELECT seq, at, run, type, status, detail FROM timeline
      WHERE action_id = ? AND account_id = ? ORDER BY seq DESC LIMIT ?`,
    args: [id, accountId, TIMELINE_ROWS_MAX],
  });
  return rows.flatMap((row) => timelineEntryOf(row) ?? []).toReversed();
}

/** Active actions whose lease ended before this time, or all of them (null). See `Queue.orphans`. */
export async function findOrphans(
  { sql, seal }: Reader,
  leaseBefore: Date | null,
  limit: number,
  after: Action | null,
): Promise<readonly Action[]> {
  const found = await sql.read({
    sql: `SELECT a.id, ${BYTES} AS bytes FROM actions a
      WHERE a.status = 'active' AND (a.account_id, a.id) > (?, ?) ${leaseBefore === null ? "" : "AND a.lease_until < ?"}
      ORDER BY a.account_id, a.id LIMIT ?`,
    args: [after?.accountId ?? "", after?.id ?? "", ...(leaseBefore === null ? [] : [leaseBefore.getTime()]), limit],
  });
  const ids = idsWithin(RESCUE_BYTES_MAX, found);
  const places = ids.map(() => "?").join(", ");
  const text = `SELECT ${ACTION_COLUMNS} FROM actions a WHERE a.id IN (${places})`;
  const rows = ids.length === 0 ? [] : await sql.read({ sql: text, args: ids });
  const placeOf = (row: Row) => ids.indexOf(String(row["id"]));
  return rows.toSorted((one, other) => placeOf(one) - placeOf(other)).map((row) => actionOf(row, seal));
}

/** Rows that are active under exactly this claim. */
export async function findClaimed(
  { sql, seal }: Reader,
  due: readonly DueRow[],
  { leaseUntil }: Claimed,
): Promise<readonly Action[]> {
  const places = due.map(() => "(?, ?)").join(", ");
  const rows = await sql.read({
    sql: `SELECT ${ACTION_COLUMNS} FROM actions a
      WHERE a.status = 'active' AND a.lease_until = ? AND (a.id, a.revision) IN (VALUES ${places})`,
    args: [leaseUntil.getTime(), ...due.flatMap(({ id, revision }) => [id, revision + 1])],
  });
  return rows.map((row) => actionOf(row, seal));
}

/** Ids of the rows whose `bytes` fit together; at least one. */
export function idsWithin(bytesMax: number, found: readonly Row[]): readonly string[] {
  const ids: string[] = [];
  let bytes = 0;
  for (const row of found) {
    bytes += Number(row["bytes"]);
    if (bytes > bytesMax && ids.length > 0) break;
    ids.push(String(row["id"]));
  }
  return ids;
}

/** The head of each lane: one index lookup per lane, without reading the rows behind it. */
export async function findLanes(sql: Sql, after: LaneName | null, limit: number): Promise<readonly LaneHead[]> {
  const heads: LaneHead[] = [];
  let last = after;
  while (heads.length < limit) {
    const [row] = await sql.read({
      sql: `SELECT account_id, host, key_id, due_at FROM actions
        WHERE status = 'pending' AND (account_id, host, key_id) > (?, ?, ?)
        ORDER BY account_id, host, key_id, due_at LIMIT 1`,
      args: [last?.accountId ?? "", last?.host ?? "", last?.keyId ?? ""],
    });
    if (row === undefined) break;
    last = { accountId: String(row["account_id"]), host: String(row["host"]), keyId: String(row["key_id"]) };
    heads.push({ ...last, dueAt: new Date(Number(row["due_at"])) });
  }
  return heads;
}

export async function findPending(
  sql: Sql,
  { accountId, host, keyId }: LaneName,
  limit: number,
): Promise<readonly DueRow[]> {
  const rows = await sql.read({
    sql: `SELECT id, revision, due_at, ifnull(octet_length(body), 0) + ifnull(octet_length(sealed_headers), 0) AS bytes
      FROM actions WHERE account_id = ? AND host = ? AND key_id = ? AND status = 'pending'
        AND typeof(due_at) = 'integer' AND typeof(revision) = 'integer'
      ORDER BY due_at LIMIT ?`,
    args: [accountId, host, keyId, limit],
  });
  return rows.map((row) => dueRowOf(row, Number(row["revision"])));
}

/** From the columns `id`, `due_at` and `bytes`. */
export function dueRowOf(row: Row, revision: number): DueRow {
  const bytes = Number(row["bytes"]);
  const due = { id: String(row["id"]), revision, dueAt: new Date(Number(row["due_at"])) };
  return bytes > SMALL_ROW_BYTES_MAX ? { ...due, largeBytes: bytes } : due;
}

function first(rows: readonly Row[], seal: StoreContext["seal"]): Action | null {
  const [row] = rows;
  return row === undefined ? null : shownActionOf(row, seal);
}

// Only the newest actions of a host are read.
const APPROVED = `SELECT j.value AS pair FROM json_each(?) j WHERE EXISTS (
  SELECT 1 FROM (SELECT key_id, status, approved_at FROM actions
    WHERE account_id = ? AND hostname = json_extract(j.value, '$[1]') ORDER BY id DESC LIMIT ?)
  WHERE key_id = json_extract(j.value, '$[0]') AND status = 'completed' AND approved_at IS NOT NULL)`;

/** Hosts that received an approved call of the key that completed, by `hostOfKey`. */
export async function findApprovedHosts(
  sql: Sql,
  accountId: string,
  asked: readonly HostOfKey[],
): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set();
  const pairs = JSON.stringify([...new Set(asked.map(hostOfKey))].map((pair): unknown => JSON.parse(pair)));
  const rows = await sql.read({ sql: APPROVED, args: [pairs, accountId, HOST_ACTIONS_SCANNED_MAX] });
  return new Set(rows.map((row) => String(row["pair"])));
}
