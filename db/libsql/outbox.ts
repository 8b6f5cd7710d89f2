import type { Claimed } from "../../src/actions/settle.ts";
import { MAIL_WINDOW_MS, MAILS_PER_ACCOUNT_MAX, MAILS_PER_RECIPIENT_MAX } from "../../src/config/limits.ts";
import type { Notification, NotificationChange, NotificationKind } from "../../src/delivery/notification.ts";
import type { DueRow, LaneHead, LaneName, OutboxEntry, OutboxStore, Queue } from "../store.ts";
import { findBrokenNotifications } from "./broken.ts";
import { and, eq, sql as drizzleSql } from "drizzle-orm";
import { type Args, prepare, query } from "./query.ts";
import { Columns, creatorIn } from "./rows.ts";
import { outbox } from "./schema.ts";
import { CHANGED, type Sql, type Statement } from "./sql.ts";
import { dueRowOf } from "./find.ts";
import type { StoreContext } from "./context.ts";
import { rescheduleNotifications } from "./apply.ts";
import {
  ENTRY_COLUMNS as ENTRY,
  entryOf,
  NOTIFICATION_COLUMNS as NOTIFICATION,
  notificationOf,
} from "./outbox-rows.ts";
import { isStopped } from "./pauses.ts";
import { countNotifications } from "./claim.ts";

/** Callbacks and mails. A row's attempts, with its lease, are the fencing token. */
export function createOutboxStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): OutboxStore {
  const queue = (kind: NotificationKind): Queue<Notification> => ({
    lanes: (after, limit) => findLanes(sql, kind, after, limit),
    pending: (lane, limit) => findPending(sql, kind, lane, limit),
    orphans: (leaseBefore, limit, after) => findOrphans(sql, kind, { leaseBefore, limit, after }),
    claimed: (due, at) => findClaimed(sql, kind, due, at),
    broken: (limit, after) => findBrokenNotifications({ sql, writer }, kind, { limit, after }),
    reschedule: (setBack, limit) => rescheduleNotifications(writer, kind, setBack, limit),
    async claim(due, at) {
      const done = await writer.write(due.map((row) => claim(row, at)));
      return done.flatMap(({ rows }) => rows.map(notificationOf));
    },
  });
  return {
    callbacks: queue("callback"),
    mails: queue("mail"),
    async payload(id) {
      const [row] = await sql.read({ sql: "SELECT payload FROM outbox WHERE id = ?", args: [id] });
      return typeof row?.["payload"] === "string" ? row["payload"] : null;
    },
    async creatorOf(id) {
      const [row] = await sql.read({ sql: CREATOR, args: [id] });
      return row === undefined ? null : creatorIn(new Columns(row));
    },
    async permitMail(mail, at) {
      const [updated] = await writer.write([permit(mail, at)]);
      return updated?.changes === 1;
    },
    async settle(change, at) {
      const [updated] = await writer.write(settle(change, at));
      return updated?.changes === 1;
    },
    isSettled: (change, at) => isSettled(sql, change, at),
    async force(change, at) {
      const [updated] = await writer.write(force(change, at));
      return updated?.changes === 1;
    },
    list: (accountId, before, limit) => listEntries(sql, accountId, before, limit),
    waiting: () => countNotifications(sql),
  };
}

const CREATOR = "SELECT a.key_role, a.key_hold FROM outbox o JOIN actions a ON a.id = o.action_id WHERE o.id = ?";

const NOTIFICATION_COLUMNS = Object.values(NOTIFICATION)
  .map((column) => column.name)
  .join(", ");
const ENTRY_COLUMNS = Object.values(ENTRY)
  .map((column) => column.name)
  .join(", ");

function millis(at: Date | null): number | null {
  return at === null ? null : at.getTime();
}

/** Only the stop of an account applies: other pauses don't hold back callbacks and mails. */
const CLAIM = prepare((arg: Args<"id" | "attempts" | "leaseUntil">) =>
  query
    .update(outbox)
    .set({
      status: "active",
      attempts: drizzleSql`${outbox.attempts} + 1`,
      dueAt: null,
      leaseUntil: drizzleSql`${arg.leaseUntil}`,
    })
    .where(
      and(
        eq(outbox.id, arg.id),
        eq(outbox.attempts, arg.attempts),
        eq(outbox.status, "pending"),
        drizzleSql`not ${isStopped(outbox.accountId)}`,
      ),
    )
    .returning(NOTIFICATION),
);

function claim({ id, revision }: DueRow, { leaseUntil }: Claimed): Statement {
  return CLAIM.bind({ id, attempts: revision, leaseUntil });
}

/**
 * The lease distinguishes claims with the same number of attempts, since a returned claim does not count. A delivered
 * callback needs its body no more, which may be a megabyte.
 */
const SETTLE = `UPDATE outbox SET status = ?1, due_at = ?2, scheduled_at = ?6, lease_until = NULL, last_error = ?3,
    attempts = ?7, payload = CASE ?1 WHEN 'delivered' THEN NULL ELSE payload END
  WHERE id = ?4 AND attempts = ?5 AND lease_until = ?8 AND status = 'active'`;

const TIMELINE_ROW = `INSERT INTO timeline (action_id, account_id, at, run, revision, type, subject, status, detail)
  SELECT o.action_id, o.account_id, ?, o.run, o.revision, o.kind, ?, a.status, ?
  FROM outbox o JOIN actions a ON a.id = o.action_id WHERE o.id = ? AND ${CHANGED.sql}`;

function settle(change: NotificationChange, at: Date): readonly Statement[] {
  const { before, status, attempts, dueAt, lastError, event } = change;
  const { id } = before;
  const leaseMs = millis(before.leaseUntil);
  const update = {
    sql: SETTLE,
    args: [status, millis(dueAt), lastError, id, before.attempts, at.getTime(), attempts, leaseMs],
  };
  if (event === null) return [update];
  const { type: _, ...detail } = event;
  return [update, { sql: TIMELINE_ROW, args: [at.getTime(), subjectOf(before), JSON.stringify(detail), id] }];
}

/** Identifies the claim that a timeline row belongs to. */
function subjectOf({ id, attempts, leaseUntil }: Notification): string {
  return `${id} ${attempts} ${millis(leaseUntil) ?? ""}`;
}

/** Known by the timeline row that only this result can have written, or, without one, by the row itself. */
async function isSettled(sql: Sql, { before, status, event }: NotificationChange, at: Date): Promise<boolean> {
  const text =
    event === null
      ? "SELECT 1 FROM outbox WHERE id = ? AND status = ? AND scheduled_at = ?"
      : "SELECT 1 FROM timeline WHERE action_id = ? AND subject = ? AND at = ?";
  const args = event === null ? [before.id, status] : [before.actionId, subjectOf(before)];
  return (await sql.read({ sql: text, args: [...args, at.getTime()] })).length > 0;
}

/** Replaces all numbers by legal ones. */
const FORCE = `UPDATE outbox SET status = ?, due_at = NULL, scheduled_at = ?, lease_until = NULL, last_error = ?, attempts = ?
  WHERE id = ? AND status IN ('pending', 'active')`;

const FORCE_TIMELINE_ROW = `INSERT INTO timeline (action_id, account_id, at, run, revision, type, subject, status, detail)
  SELECT a.id, a.account_id, ?, a.run, a.revision, ?, ?, a.status, ?
  FROM outbox o JOIN actions a ON a.id = o.action_id WHERE o.id = ? AND ${CHANGED.sql}`;

function force({ before, status, attempts, lastError, event }: NotificationChange, at: Date): readonly Statement[] {
  const { id } = before;
  const update = { sql: FORCE, args: [status, at.getTime(), lastError, attempts, id] };
  if (event === null) return [update];
  const { type, ...detail } = event;
  const subject = `${id} set aside ${at.getTime()}`;
  return [update, { sql: FORCE_TIMELINE_ROW, args: [at.getTime(), type, subject, JSON.stringify(detail), id] }];
}

const otherMailsBelow = (column: string) =>
  `(SELECT count(*) FROM (SELECT 1 FROM outbox
    WHERE kind = 'mail' AND ${column} = ? AND sent_at > ? AND id <> ? LIMIT ?)) < ?`;

/**
 * The mails of the last hour are counted in the statement that adds this one, so racing mails can't exceed the limit.
 */
const PERMIT = `UPDATE outbox SET sent_at = ? WHERE id = ? AND attempts = ? AND status = 'active'
  AND ${otherMailsBelow("host")} AND ${otherMailsBelow("account_id")}`;

function permit({ id, attempts, host, accountId }: Notification, at: Date): Statement {
  const since = at.getTime() - MAIL_WINDOW_MS;
  const under = (value: string, max: number) => [value, since, id, max, max];
  return {
    sql: PERMIT,
    args: [
      at.getTime(),
      id,
      attempts,
      ...under(host, MAILS_PER_RECIPIENT_MAX),
      ...under(accountId, MAILS_PER_ACCOUNT_MAX),
    ],
  };
}

/** The head of each lane: one index lookup per lane. */
async function findLanes(
  sql: Sql,
  kind: NotificationKind,
  after: LaneName | null,
  limit: number,
): Promise<readonly LaneHead[]> {
  const heads: LaneHead[] = [];
  let last = after;
  while (heads.length < limit) {
    const [row] = await sql.read({
      sql: `SELECT account_id, host, key_id, due_at FROM outbox
        WHERE status = 'pending' AND kind = ? AND (account_id, host, key_id) > (?, ?, ?)
        ORDER BY account_id, host, key_id, due_at LIMIT 1`,
      args: [kind, last?.accountId ?? "", last?.host ?? "", last?.keyId ?? ""],
    });
    if (row === undefined) break;
    last = { accountId: String(row["account_id"]), host: String(row["host"]), keyId: String(row["key_id"]) };
    heads.push({ ...last, dueAt: new Date(Number(row["due_at"])) });
  }
  return heads;
}

async function findPending(sql: Sql, kind: NotificationKind, { accountId, host, keyId }: LaneName, limit: number) {
  const rows = await sql.read({
    sql: `SELECT id, attempts, due_at, ifnull(octet_length(payload), 0) AS bytes FROM outbox
      WHERE status = 'pending' AND kind = ? AND account_id = ? AND host = ? AND key_id = ?
        AND typeof(due_at) = 'integer' AND typeof(attempts) = 'integer'
      ORDER BY due_at LIMIT ?`,
    args: [kind, accountId, host, keyId, limit],
  });
  return rows.map((row) => dueRowOf(row, Number(row["attempts"])));
}

interface OrphanPage {
  readonly leaseBefore: Date | null;
  readonly limit: number;
  readonly after: Notification | null;
}

async function findOrphans(sql: Sql, kind: NotificationKind, { leaseBefore, limit, after }: OrphanPage) {
  const rows = await sql.read({
    sql: `SELECT ${NOTIFICATION_COLUMNS} FROM outbox
      WHERE status = 'active' AND kind = ? AND (lease_until, id) > (?, ?)
        ${leaseBefore === null ? "" : "AND lease_until < ?"}
      ORDER BY lease_until, id LIMIT ?`,
    args: [
      kind,
      after?.leaseUntil?.getTime() ?? Number.MIN_SAFE_INTEGER,
      after?.id ?? "",
      ...(leaseBefore === null ? [] : [leaseBefore.getTime()]),
      limit,
    ],
  });
  return rows.map(notificationOf);
}

async function findClaimed(sql: Sql, kind: NotificationKind, due: readonly DueRow[], { leaseUntil }: Claimed) {
  const places = due.map(() => "(?, ?)").join(", ");
  const rows = await sql.read({
    sql: `SELECT ${NOTIFICATION_COLUMNS} FROM outbox
      WHERE status = 'active' AND kind = ? AND lease_until = ? AND (id, attempts) IN (VALUES ${places})`,
    args: [kind, leaseUntil.getTime(), ...due.flatMap(({ id, revision }) => [id, revision + 1])],
  });
  return rows.map(notificationOf);
}

async function listEntries(
  sql: Sql,
  accountId: string,
  before: string | null,
  limit: number,
): Promise<readonly OutboxEntry[]> {
  const rows = await sql.read({
    sql: `SELECT ${ENTRY_COLUMNS} FROM outbox WHERE account_id = ? ${before === null ? "" : "AND id < ?"}
      ORDER BY id DESC LIMIT ?`,
    args: before === null ? [accountId, limit] : [accountId, before, limit],
  });
  return rows.map(entryOf);
}
