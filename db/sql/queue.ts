/**
 * Queues of actions and of notifications: what is due by lane, claims, and active rows whose lease is over; behind it what waits, and the
 * store of the outbox. `commands/claims.ts` and `commands/outbox.ts` have what is written.
 */
import {
  and,
  type Column,
  count,
  desc,
  eq,
  gt,
  isNotNull,
  isNull,
  lt,
  lte,
  or,
  type SQL,
  sql,
  type SQLWrapper,
} from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action, ActionStatus } from "../../src/core/action.ts";
import {
  DATE_MS_MAX,
  DUE_LANES_SCANNED_MAX,
  LEASE_MS_MAX,
  LIST_SCAN_ROWS_MAX,
  METRIC_COUNT_MAX,
  PENDING_SCAN_ROWS_MAX,
  RECOVERY_BYTES_MAX,
  RETRY_HOSTS_SHOWN_MAX,
  SMALL_ROW_BYTES_MAX,
} from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification-events.ts";
import type { Notification } from "../../src/core/notification.ts";
import { pausingSubjects } from "../../src/core/pause.ts";
import { keyLimits } from "../../src/core/roles.ts";
import { type Lease, startAttempt } from "../../src/core/settle.ts";
import type {
  ActionStore,
  Claim,
  ClaimedRows,
  LaneHead,
  LaneName,
  OutboxEntry,
  OutboxStore,
  Queue,
  SetBack,
} from "../../src/core/store.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import * as commands from "../commands/claims.ts";
import { type QueueName, valuesOf } from "../commands/command.ts";
import { permitMail, SETTLED, settleNotifications } from "../commands/outbox.ts";
import { findPendingIds, isHeldBack, readPaused } from "../commands/pauses.ts";
import { actions, apiKeys, outbox, timeline } from "../tables.ts";
import type { Dialect, LaneSql, Reader, Row, SqlValue } from "./dialect.ts";
import { isConstraint } from "./errors.ts";
import {
  AFTER_ALL_IDS,
  all,
  type Args,
  columnBytes,
  bytesOfAction,
  countRows,
  hasRow,
  hasValues,
  prepare,
  qb,
  raw,
} from "./read.ts";
import {
  type ActionAccess,
  toAction,
  COLUMNS_BUT_RESULT,
  toOutboxEntry,
  findRows,
  fitting,
  NOTIFICATION_COLUMNS,
  toNotification,
  readable,
  readCreator,
  type UnreadableRow,
} from "./rows.ts";

/** The queue of actions, and reads of what waits in it. */
export function createActionQueue(
  db: ActionAccess,
): Queue<Action> & Pick<ActionStore, "firstDueAt" | "waiting" | "scheduledRetries"> {
  const { reader, seal, written } = db;
  const parse = (row: Row) => toAction(row, seal);
  const fromMemory: FromMemory<Action> = (id, revision, lease) => {
    const action = written.take(id, revision - 1);
    return action === null ? null : startAttempt(action, lease);
  };
  const { id, accountId, leaseUntil } = actions;
  const queue = createQueue("action", db, parse, fromMemory);
  return {
    ...queue,
    async claimDue(asked) {
      try {
        return await queue.claimDue(asked);
      } catch (error) {
        if (!isConstraint(error)) throw error;
        // Ends the rows that break the claim; the next claim takes the others.
        const ids = await Promise.all(asked.lanes.map((lane) => findPendingIds(reader, lane, lane.limit)));
        await db.writer.run(commands.endOutdated, ids.flat(), asked.lease.now);
        throw error;
      }
    },
    async orphans(leaseBefore, limit, after) {
      const isOver = leaseBefore === null ? undefined : isLeaseOver(leaseUntil, leaseBefore);
      // The caller takes an empty page for the last one, so read on if all rows of a page have been ended.
      for (let from = { accountId: after?.accountId ?? "", id: after?.id ?? "" }; ;) {
        const isAfter = sql`(${accountId}, ${id}) > (${from.accountId}, ${from.id})`;
        const orphans = qb
          .select({ id, accountId, bytes: bytesOfAction().as("bytes") })
          .from(actions)
          .where(and(queueTable("action").active, isAfter, isOver));
        const found = await all(reader, orphans.orderBy(accountId, id).limit(limit));
        const page = fitting(RECOVERY_BYTES_MAX, found);
        const last = page.at(-1);
        const ids = page.map((row) => row.id);
        const rows = await queue.readAll(await findRows(reader, ids));
        // Between the two reads, some may have ended or begun another attempt.
        const left = rows.filter(({ status, leaseUntil: until }) => {
          if (leaseBefore === null || status !== "active") return status === "active";
          return until !== null && (until < leaseBefore || until > voidFrom(leaseBefore));
        });
        if (left.length > 0 || last === undefined || last.id === from.id) return left;
        from = last;
      }
    },
    async firstDueAt() {
      const [heads, paused] = await Promise.all([queue.lanes(null, DUE_LANES_SCANNED_MAX), readPaused(reader)]);
      const due = heads.filter((head) => !isHeldBack(paused, pausingSubjects(head)));
      return due.length === 0 ? null : new Date(Math.min(...due.map(({ dueAt }) => dueAt.getTime())));
    },
    async waiting() {
      const counts: Partial<Record<ActionStatus, number>> = {};
      // Each status has a partial index, so no other rows are read.
      for (const status of ["pending", "active", "awaiting_approval"] as const) {
        counts[status] = await countSome(reader, actions, sql.raw(`status = '${status}'`));
      }
      return counts;
    },
    // Reads only columns of the queue's index: to reach others, SQLite would read past bodies of a megabyte.
    async scheduledRetries(ofAccount, now) {
      const { host, dueAt, status } = actions;
      const s = qb
        .select({ host, dueAt })
        .from(actions)
        .where(and(sql`${status} = 'pending'`, eq(actions.accountId, ofAccount)))
        .orderBy(host)
        .limit(PENDING_SCAN_ROWS_MAX)
        .as("s");
      const selectTime = (condition: SQL) =>
        sql<Date | null>`min(case when ${condition} then ${s.dueAt} end)`.mapWith(dueAt);
      const nextAt = selectTime(gt(s.dueAt, now));
      const ofHost = {
        host: s.host,
        pending: count().as("pending"),
        later: sql<number>`count(*) filter (where ${gt(s.dueAt, now)})`.as("later"),
        dueSince: selectTime(lte(s.dueAt, now)).as("due_since"),
        nextAt: nextAt.as("next_at"),
      };
      const rows = await all(reader, qb.select(ofHost).from(s).groupBy(s.host).orderBy(nextAt));
      const total = (member: "later" | "pending") => rows.reduce((sum, row) => sum + row[member], 0);
      const [later, pending] = [total("later"), total("pending")];
      const dueSince = rows.flatMap((row) => row.dueSince?.getTime() ?? []);
      // Leaves out times that were altered to no date.
      const hosts = rows.flatMap((row) =>
        row.nextAt === null || Number.isNaN(row.nextAt.getTime())
          ? []
          : [{ host: row.host, count: row.later, nextAt: row.nextAt }],
      );
      return {
        count: later,
        due: pending - later,
        dueSince: dueSince.length === 0 ? null : new Date(Math.min(...dueSince)),
        isCut: pending === PENDING_SCAN_ROWS_MAX,
        hosts: hosts.slice(0, RETRY_HOSTS_SHOWN_MAX),
      };
    },
  };
}

function createNotificationQueue(kind: NotificationKind, db: ActionAccess): Queue<Notification> {
  const { reader } = db;
  const queue = createQueue(kind, db, toNotification);
  return {
    ...queue,
    async orphans(leaseBefore, limit, after) {
      const { id, leaseUntil } = outbox;
      const isOver = leaseBefore === null ? undefined : isLeaseOver(leaseUntil, leaseBefore);
      const isAfter =
        after === null ? undefined : sql`(${leaseUntil}, ${id}) > (${after.leaseUntil ?? 0}, ${after.id})`;
      const orphans = qb
        .select(NOTIFICATION_COLUMNS)
        .from(outbox)
        .where(and(queueTable(kind).active, isAfter, isOver));
      return queue.readAll(await raw(reader, orphans.orderBy(leaseUntil, id).limit(limit)));
    },
  };
}

function isLeaseOver(leaseUntil: Column, before: Date): SQL | undefined {
  return or(lt(leaseUntil, before), gt(leaseUntil, voidFrom(before)));
}

/** Leases that end later are from before the clock was set back. */
function voidFrom(now: Date): Date {
  return new Date(now.getTime() + LEASE_MS_MAX);
}

/** The claimed row from memory; null: it must be read. `revision`: after the claim. */
type FromMemory<T> = (id: string, revision: number, lease: Lease) => T | null;

/** What the queues of actions and of notifications share. */
function createQueue<T extends object>(
  queue: QueueName,
  { reader, writer, onUnreadable }: ActionAccess,
  parse: (row: Row) => T,
  fromMemory: FromMemory<T> | null = null,
) {
  const { lanes, claimedBy, claimedWith } = READS[queue];
  /** Reads active rows, and ends those that can't be read, so that they don't block the queue. */
  const readAll = async <Value extends object = T>(rows: readonly Row[], read: (row: Row) => Value) => {
    const unreadable: UnreadableRow[] = [];
    const values = readable(rows, read, (row) => unreadable.push(row));
    if (unreadable.length === 0) return values;
    const ids = unreadable.map(({ id }) => id);
    const ended = new Set(await writer.run(commands.endUnreadable, queue, ids, new Date()));
    for (const row of unreadable) if (ended.has(row.id)) onUnreadable(queue, row);
    return values;
  };
  return {
    readAll: (rows: readonly Row[]) => readAll(rows, parse),
    async lanes(after: LaneName | null, limit: number) {
      const { accountId, host, keyId } = after ?? { accountId: "", host: "", keyId: "" };
      const heads = await lanes.all(reader, { accountId, host, keyId, limit });
      return heads.toSorted((one, other) => one.n - other.n).map(toHead);
    },
    async claimDue({ lanes: asked, bytesMax, takesLarge, lease }: Claim): Promise<ClaimedRows<T>> {
      const { rows: won, next } = await writer.run(commands.claim, {
        queue,
        lanes: lanesOf(asked),
        bytesMax,
        rowBytesMax: takesLarge ? Number.MAX_SAFE_INTEGER : SMALL_ROW_BYTES_MAX,
        now: lease.now.getTime(),
        leaseUntil: lease.leaseUntil.getTime(),
        by: lease.by ?? "",
      });
      const known = won.map(({ id, fence }) => fromMemory?.(id, fence, lease) ?? null);
      const missing = won.flatMap(({ id }, n) => (known[n] === null ? [id] : []));
      const stored =
        missing.length === 0 ? [] : await claimedWith.raw(reader, { ids: missing, leaseUntil: lease.leaseUntil });
      const read = await readAll(stored, (row) => ({
        id: row["id"],
        row: parse(row),
        largeBytes: largeOf(row["bytes"]),
      }));
      const byId = new Map(read.map(({ id, ...claimed }) => [id, claimed]));
      return {
        rows: won.flatMap(({ id }, n) => {
          const row = known[n] ?? null;
          return row === null ? (byId.get(id) ?? []) : { row, largeBytes: 0 };
        }),
        next: next.map(({ dueAt, bytes, ...lane }) => {
          return { ...lane, dueAt: headTime(dueAt), isLarge: largeOf(bytes) > 0 };
        }),
      };
    },
    reschedule: (setBack: SetBack, limit: number) => writer.run(commands.reschedule, queue, setBack, limit),
    async claimed(accountIds: readonly string[], { leaseUntil, by = "" }: Lease) {
      return readAll(await claimedBy.raw(reader, { accountIds, leaseUntil, by }), parse);
    },
  };
}

/** The table and columns of a queue. */
function queueTable(queue: QueueName) {
  const isOfKind = queue === "action" ? "" : ` and kind = '${queue}'`;
  // Exactly the conditions of the partial indexes.
  const [pending, active] = [sql.raw(`status = 'pending'${isOfKind}`), sql.raw(`status = 'active'${isOfKind}`)];
  if (queue !== "action") {
    return { table: outbox, pending, active, bytes: columnBytes(outbox.payload), columns: NOTIFICATION_COLUMNS };
  }
  const bytes = sql.join([actions.body, actions.sealedHeaders, actions.extras].map(columnBytes), sql` + `);
  return { table: actions, pending, active, bytes, columns: COLUMNS_BUT_RESULT };
}

/** The lane of the present row of `head`. */
const HEAD = { accountId: sql`head.account_id`, host: sql`head.host`, keyId: sql`head.key_id` };

/** The first row of each lane after `from`, by account, host and key, as `head`, numbered by `n`. */
function headsAfter(queue: QueueName, { joinNextLane }: Dialect, from: LaneSql, limit: SQLWrapper): SQL {
  const { table, pending } = queueTable(queue);
  const columns = sql`next.account_id, next.host, next.key_id, next.due_at`;
  return sql`with recursive head (account_id, host, key_id, due_at, n) as (
    select ${columns}, 1 from (select 1) head ${joinNextLane(table, pending, from)}
    union all
    select ${columns}, head.n + 1 from head ${joinNextLane(table, pending, HEAD)} where head.n < ${limit})`;
}

/** The first row of a lane, not decoded: an altered row must not keep other lanes from being found. */
interface Head extends Readonly<Record<"accountId" | "host" | "keyId" | "dueAt", SqlValue>> {
  readonly n: number;
}

const queueReads = (queue: QueueName) => ({
  lanes: prepare(
    { accountId: "text", host: "text", keyId: "text", limit: "number" },
    (arg, dialect) => sql<Head>`${headsAfter(queue, dialect, arg, arg.limit)}
      select account_id as "accountId", host, key_id as "keyId", due_at as "dueAt", n from head`,
  ),
  claimedBy: prepare({ accountIds: "list", leaseUntil: "time", by: "text" }, (arg, { isOneOf }) => {
    const { accountId, claimedBy } = queueTable(queue).table;
    return claimedRows(queue, arg, and(eq(claimedBy, arg.by), isOneOf(accountId, arg.accountIds)));
  }),
  claimedWith: prepare({ ids: "list", leaseUntil: "time" }, (arg, { isOneOf }) =>
    claimedRows(queue, arg, isOneOf(queueTable(queue).table.id, arg.ids)),
  ),
});

function claimedRows(queue: QueueName, { leaseUntil }: Args<"leaseUntil">, condition: SQL | undefined) {
  const { table, active, bytes, columns } = queueTable(queue);
  const claimed = qb.select({ ...columns, bytes: bytes.as("bytes") }).from(table);
  return claimed.where(and(active, eq(table.leaseUntil, leaseUntil), condition));
}

const READS: Readonly<Record<QueueName, ReturnType<typeof queueReads>>> = {
  action: queueReads("action"),
  callback: queueReads("callback"),
  mail: queueReads("mail"),
  message: queueReads("message"),
};

function toHead({ accountId, host, keyId, dueAt }: Head): LaneHead {
  const lane = { accountId: String(accountId), host: String(host), keyId: String(keyId) };
  return { ...lane, dueAt: headTime(dueAt) };
}

/** The time of a row that no reader has checked. One that was altered to no number is due at once, and one past all dates never. */
function headTime(ms: SqlValue): Date {
  // PostgreSQL's whole numbers past those that are exact are texts.
  return new Date(Math.max(0, Math.min(Number(ms) || 0, DATE_MS_MAX)));
}

/** Each lane once, or its rows would be claimed twice, and with well-formed hosts, as in the store. */
function lanesOf(asked: Claim["lanes"]): Claim["lanes"] {
  const lanes = asked.map(({ host, ...lane }) => ({
    ...lane,
    host: host.toWellFormed(),
  }));
  return [...new Map(lanes.map((lane) => [`${lane.accountId} ${lane.keyId} ${lane.host}`, lane])).values()];
}

/** The size of a large row in bytes; 0 for a small one. */
function largeOf(bytes: unknown): number {
  return Number(bytes) > SMALL_ROW_BYTES_MAX ? Number(bytes) : 0;
}

/** Counts rows in its own turn of the event loop, in 5 ms at most. `condition` must be a partial index's condition. */
async function countSome(reader: Reader, table: typeof actions | typeof outbox, condition: SQL): Promise<number> {
  await nextTurn();
  return countRows(reader, table, condition, METRIC_COUNT_MAX);
}

const PAYLOAD = prepare({ id: "text" }, (arg) =>
  qb.select({ payload: outbox.payload }).from(outbox).where(eq(outbox.id, arg.id)),
);

const CREATOR = prepare({ id: "text" }, (arg) => {
  const { id, accountId } = apiKeys;
  const hasNone = and(isNotNull(id), ...Object.values(keyLimits(apiKeys)).map((limit) => isNull(limit)));
  const isLimited = sql<number>`case when ${actions.keyId} = '' or (${hasNone}) then 0 else 1 end`.as("is_limited");
  const creators = qb.select({ role: actions.keyRole, hold: actions.keyHold, isLimited }).from(outbox);
  const withAction = creators.innerJoin(actions, eq(actions.id, outbox.actionId));
  const isKey = and(eq(id, actions.keyId), eq(accountId, actions.accountId));
  return withAction.leftJoin(apiKeys, isKey).where(eq(outbox.id, arg.id));
});

/** Identifies the claim to which a timeline row belongs. */
function subjectOf({ id, attempts, leaseUntil }: Notification): string {
  return `${id} ${attempts} ${leaseUntil?.getTime() ?? ""}`;
}

/** A claim is identified by the attempts and the lease of its row. */
export function createOutboxStore(db: ActionAccess): OutboxStore {
  const { reader, writer } = db;
  return {
    ...writer.methods({ permitMail }),
    callbacks: createNotificationQueue("callback", db),
    mails: createNotificationQueue("mail", db),
    messages: createNotificationQueue("message", db),
    async payload(id) {
      const [row] = await PAYLOAD.raw(reader, { id });
      const payload = row?.["payload"];
      return typeof payload === "string" ? payload : null;
    },
    async findCreator(id) {
      const [row] = await CREATOR.raw(reader, { id });
      const [creator] = row === undefined ? [] : readable([row], readCreator);
      return creator === undefined ? null : { ...creator, isLimited: row?.["is_limited"] !== 0 };
    },
    settle(change, at) {
      const { before, status, attempts, dueAt, lastError, event } = change;
      const eventOf = ({ type: _type, ...detail }: TimelineEvent) => {
        const row = { at: at.getTime(), type: before.message.kind, subject: subjectOf(before) };
        return { ...row, detail: JSON.stringify(detail) };
      };
      return writer.run(settleNotifications, {
        id: before.id,
        claim: [before.attempts, before.leaseUntil?.getTime() ?? null],
        row: valuesOf(SETTLED, { status, attempts, dueAt, scheduledAt: at, leaseUntil: null, lastError }),
        isDelivered: status === "delivered",
        event: event === null ? null : eventOf(event),
      });
    },
    // Only this result can have written its timeline row. A result without such a row shows in the notification itself.
    isSettled({ before, status, event }, at) {
      const { id, actionId } = before;
      if (event === null) return hasRow(reader, outbox, hasValues(outbox, { id, status, scheduledAt: at }));
      return hasRow(reader, timeline, hasValues(timeline, { actionId, subject: subjectOf(before), at }));
    },
    async list(accountId, before, limit) {
      const entries: OutboxEntry[] = [];
      let from = before ?? AFTER_ALL_IDS;
      // The caller takes fewer for the last page, so read on for those that can't be read.
      for (let looked = 0; looked < LIST_SCAN_ROWS_MAX && entries.length < limit; looked += limit) {
        if (looked > 0) await nextTurn();
        const isEarlier = and(eq(outbox.accountId, accountId), lt(outbox.id, from));
        const newestFirst = qb.select(NOTIFICATION_COLUMNS).from(outbox).where(isEarlier).orderBy(desc(outbox.id));
        const rows = await raw(reader, newestFirst.limit(limit));
        entries.push(...readable(rows, toOutboxEntry));
        if (rows.length < limit) break;
        from = String(rows.at(-1)?.["id"]);
      }
      return entries.slice(0, limit);
    },
    async waiting() {
      const unsent = async (kind: NotificationKind) => {
        const { pending, active } = queueTable(kind);
        return (await countSome(reader, outbox, pending)) + (await countSome(reader, outbox, active));
      };
      return { callback: await unsent("callback"), mail: await unsent("mail"), message: await unsent("message") };
    },
  };
}
