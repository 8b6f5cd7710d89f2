import type { Action } from "../../src/actions/action.ts";
import type { Actor } from "../../src/accounts/roles.ts";
import {
  REPEATS_PER_REJECTION_MAX,
  EARLIER_REJECTIONS_SHOWN_MAX,
  REJECTIONS_PER_KEY_MAX,
} from "../../src/config/limits.ts";
import {
  type EarlierRejection,
  type RejectionEntry,
  rejectionWindowStart,
  saysWhy,
  type RejectedRequest,
  type RejectionStore,
} from "../../src/approvals/rejections.ts";
import { allOf, ALWAYS, CHANGED, eitherOf, type Guard, type Row, type SqlValue, type Statement } from "./sql.ts";
import type { ApiKey } from "../account-store.ts";
import type { StoreContext } from "./context.ts";
import { timelineEntryOf } from "./rows.ts";

const OF_REQUEST = "FROM rejections WHERE account_id = ? AND key_id = ? AND digest = ? AND at > ?";

const REJECTED = `SELECT at ${OF_REQUEST} AND kind = 'rejected' ORDER BY at DESC LIMIT 1`;

const REPEATED = `SELECT at ${OF_REQUEST} AND kind = 'asked' ORDER BY at DESC LIMIT ${REPEATS_PER_REJECTION_MAX}`;

const OF_KEY = "FROM rejections WHERE account_id = ? AND key_id = ? AND at > ?";

const COUNT_OF_KEY = `SELECT count(*) AS count, min(at) AS since
  FROM (SELECT at ${OF_KEY} ORDER BY at LIMIT ${REJECTIONS_PER_KEY_MAX})`;

const IS_ROOM = `(SELECT count(*) FROM (SELECT 1 ${OF_KEY} LIMIT ${REJECTIONS_PER_KEY_MAX})) < ${REJECTIONS_PER_KEY_MAX}`;

const EARLIER = `SELECT kind, at, action_id, run, actor, reason ${OF_REQUEST} ORDER BY at DESC
  LIMIT ${EARLIER_REJECTIONS_SHOWN_MAX + 1}`;

const FIRST_EVENT = `SELECT seq, at, run, type, status, detail FROM timeline
  WHERE action_id = ? AND run = ? AND type IN ('created', 'retried') ORDER BY revision DESC LIMIT 1`;

/** Rows deleted per pass, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

const PRUNE = `DELETE FROM rejections WHERE seq IN (SELECT seq FROM rejections WHERE at <= ? ORDER BY at LIMIT ${PRUNE_ROWS})`;

/** Requests that people rejected within the last day. */
export function createRejectionStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): RejectionStore {
  return {
    async count(request, now) {
      const args = argsOf(request, now);
      const [rejected, asked, ofKey] = await Promise.all([
        sql.read({ sql: REJECTED, args }),
        sql.read({ sql: REPEATED, args }),
        sql.read({ sql: COUNT_OF_KEY, args: keyArgsOf(request, now) }),
      ]);
      const [newest] = rejected;
      const [key] = ofKey;
      return {
        rejectedAt: newest === undefined ? null : timeOf(newest, "at"),
        repeatedAt: asked.map((row) => timeOf(row, "at")),
        fullSince: key !== undefined && Number(key["count"]) >= REJECTIONS_PER_KEY_MAX ? timeOf(key, "since") : null,
      };
    },
    async earlier({ id, run, accountId, keyId }, digest, now) {
      const [rows, firstEvent] = await Promise.all([
        sql.read({ sql: EARLIER, args: argsOf({ accountId, keyId, digest }, now) }),
        sql.read({ sql: FIRST_EVENT, args: [id, run] }),
      ]);
      const before = rows.filter((row) => row["action_id"] !== id || row["run"] !== run);
      const newest = before.slice(0, EARLIER_REJECTIONS_SHOWN_MAX);
      return { reason: firstEvent.map(reasonIn)[0] ?? null, rejections: newest.toReversed().map(earlierOf) };
    },
    async prune(now) {
      const [deleted] = await writer.write([{ sql: PRUNE, args: [rejectionWindowStart(now).getTime()] }]);
      return deleted?.changes === PRUNE_ROWS;
    },
  };
}

/** Holds while the request may be made: the limit is part of the statement that writes it. */
export function mayAsk(action: Action, entry: RejectionEntry | null | undefined, at: Date): Guard {
  if (entry?.kind !== "asked") return ALWAYS;
  const request = { ...action, digest: entry.digest };
  const args = argsOf(request, at);
  const isRoom = { sql: IS_ROOM, args: keyArgsOf(request, at) };
  const isNew = { sql: `NOT EXISTS (${REJECTED})`, args };
  if (!saysWhy(entry.reason)) return allOf([isRoom, isNew]);
  return allOf([
    isRoom,
    eitherOf(isNew, { sql: `(SELECT count(*) FROM (${REPEATED})) < ${REPEATS_PER_REJECTION_MAX}`, args }),
  ]);
}

const INSERT = `INSERT INTO rejections (account_id, key_id, digest, kind, at, action_id, run, actor, reason)
  SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${CHANGED.sql}`;

const FORGET = `DELETE FROM rejections WHERE account_id = ? AND key_id = ? AND digest = ? AND ${CHANGED.sql}`;

/**
 * The rows of an entry, written where the statement before wrote a row. They may write none, so they must end a chain.
 */
export function rejectionRows(after: Action, entry: RejectionEntry | null | undefined, at: Date): readonly Statement[] {
  if (entry === null || entry === undefined) return [];
  const { id, run, accountId, keyId } = after;
  const { kind, digest, by, reason } = entry;
  const request = { accountId, keyId, digest };
  if (kind === "approved") return [{ sql: FORGET, args: [accountId, keyId, digest] }];
  const row = [accountId, keyId, digest, kind, at.getTime(), id, run, by, reason];
  // A first request is not a repeated one: only after a rejection is it counted.
  const guard =
    kind === "asked"
      ? { sql: `EXISTS (${REJECTED})`, args: argsOf(request, at) }
      : { sql: IS_ROOM, args: keyArgsOf(request, at) };
  return [{ sql: `${INSERT} AND ${guard.sql}`, args: [...row, ...guard.args] }];
}

const INHERIT = `INSERT INTO rejections (account_id, key_id, digest, kind, at, action_id, run, actor, reason)
  SELECT account_id, ?, digest, kind, at, action_id, run, actor, reason ${OF_KEY}`;

/** What counts for a key counts for the one that replaces it, or a rotation would end every count. */
export function inheritRejections(key: Pick<ApiKey, "id" | "accountId" | "createdAt">, replaced: string): Statement {
  return { sql: INHERIT, args: [key.id, ...keyArgsOf({ accountId: key.accountId, keyId: replaced }, key.createdAt)] };
}

function keyArgsOf({ accountId, keyId }: Pick<RejectedRequest, "accountId" | "keyId">, now: Date): readonly SqlValue[] {
  return [accountId, keyId, rejectionWindowStart(now).getTime()];
}

function argsOf({ accountId, keyId, digest }: RejectedRequest, now: Date): readonly SqlValue[] {
  return [accountId, keyId, digest, rejectionWindowStart(now).getTime()];
}

function timeOf(row: Row, column: string): Date {
  return new Date(Number(row[column]));
}

function earlierOf(row: Row): EarlierRejection {
  const reason = row["reason"] ?? null;
  return {
    kind: row["kind"] === "asked" ? "asked" : "rejected",
    at: timeOf(row, "at"),
    // Safe: the actor is only shown.
    by: String(row["actor"]) as Actor,
    reason: reason === null ? null : String(reason),
  };
}

/** The reason given for a run, if its first event has one. */
function reasonIn(row: Row): string | null {
  const event = timelineEntryOf(row)?.event;
  return event?.type === "created" || event?.type === "retried" ? (event.reason ?? null) : null;
}
