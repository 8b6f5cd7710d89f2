import { and, count, eq, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action, ActionStatus } from "../../src/core/action.ts";
import { type Claimed, startAttempt } from "../../src/core/settle.ts";
import {
  DUE_LANES_SCANNED_MAX,
  PENDING_SCAN_ROWS_MAX,
  RETRY_HOSTS_SHOWN_MAX,
  SMALL_ROW_BYTES_MAX,
} from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification.ts";
import type { ActionStore, Claim, LaneHead, Queue } from "../../src/core/store.ts";
import type { Tables } from "../commands/command.ts";
import { claim, endSetBack, type QueueName } from "../commands/claims.ts";
import * as reschedule from "../commands/reschedule.ts";
import type { StoreContext } from "./context.ts";
import { bytesOf, type Dialect, type LaneSql } from "./dialect.ts";
import { isConstraint } from "./errors.ts";
import { findOrphans } from "./find.ts";
import { actionOf, Columns, columnsButResult, notificationColumns } from "./rows.ts";
import { findPendingIds, isPaused } from "../commands/pauses.ts";
import { read, type Reader } from "./read.ts";
import type { Row, SqlValue } from "./sql.ts";

export function createActionQueue(db: StoreContext): Queue<Action> {
  const { seal, written } = db;
  const claimedFrom: ClaimedFrom<Action> = (id, revision, at) => {
    const action = written.take(id, revision - 1);
    return action === null ? null : startAttempt(action, at);
  };
  const queue = createQueue("action", db, (row) => actionOf(row, seal), claimedFrom);
  return {
    ...queue,
    async claimDue(asked) {
      try {
        return await queue.claimDue(asked);
      } catch (error) {
        if (!isConstraint(error)) throw error;
        // The next claim takes the others.
        const ids = await Promise.all(asked.lanes.map((lane) => findPendingIds(db.sql, lane, lane.limit)));
        await db.writer.run(endSetBack, ids.flat(), asked.at.now);
        throw error;
      }
    },
    orphans: (leaseBefore, limit, after) => findOrphans(db, leaseBefore, limit, after),
    reschedule: (setBack, limit) => db.writer.run(reschedule.actions, setBack, limit),
  };
}

/** A row as this claim leaves it, if memory has it; null: read it. `revision` is the one of after the claim. */
type ClaimedFrom<T> = (id: string, revision: number, at: Claimed) => T | null;

/** The part of a queue that is the same for actions and notifications. */
export function createQueue<T>(
  queue: QueueName,
  { sql: reader, writer }: Pick<StoreContext, "sql" | "writer">,
  parse: (row: Row) => T,
  claimedFrom: ClaimedFrom<T> | null = null,
): Pick<Queue<T>, "lanes" | "claimDue" | "claimed"> {
  const { lanes, claimedBy, claimedWith } = READS[queue];
  return {
    lanes: async (after, limit) => {
      const { accountId, host, keyId } = after ?? { accountId: "", host: "", keyId: "" };
      const heads = await lanes.raw(reader, { accountId, host, keyId, limit });
      return heads.toSorted((one, other) => Number(one["n"]) - Number(other["n"])).map(headOf);
    },
    async claimDue({ lanes: asked, bytesMax, takesLarge, at }) {
      const { rows: won, next } = await writer.run(claim, {
        queue,
        lanes: lanesOf(asked),
        bytesMax,
        rowBytesMax: takesLarge ? Number.MAX_SAFE_INTEGER : SMALL_ROW_BYTES_MAX,
        now: at.now.getTime(),
        leaseUntil: at.leaseUntil.getTime(),
        by: at.by ?? "",
      });
      const known = won.map(({ id, fence }) => claimedFrom?.(id, fence, at) ?? null);
      const missing = won.flatMap(({ id }, n) => (known[n] === null ? [id] : []));
      const values = { ids: missing, leaseUntil: at.leaseUntil };
      const found = missing.length === 0 ? [] : await claimedWith.raw(reader, values);
      const byId = new Map(found.map((row) => [row["id"], { row: parse(row), largeBytes: largeOf(row["bytes"]) }]));
      return {
        rows: won.flatMap(({ id }, n) => {
          const row = known[n] ?? null;
          return row === null ? (byId.get(id) ?? []) : { row, largeBytes: 0 };
        }),
        next: next.map(({ dueAt, bytes, ...lane }) => {
          return { ...lane, dueAt: new Date(dueAt), isLarge: largeOf(bytes) > 0 };
        }),
      };
    },
    async claimed(accountIds, { leaseUntil, by = "" }) {
      return (await claimedBy.raw(reader, { accountIds, leaseUntil, by })).map(parse);
    },
  };
}

/** The rows of a table that wait in lanes. */
function waiting(queue: QueueName, { actions, outbox }: Tables) {
  const isOfKind = queue === "action" ? "" : ` and kind = '${queue}'`;
  // The conditions of the partial indexes.
  const [pending, active] = [sql.raw(`status = 'pending'${isOfKind}`), sql.raw(`status = 'active'${isOfKind}`)];
  if (queue !== "action") {
    return { table: outbox, pending, active, bytes: bytesOf(outbox.payload), columns: notificationColumns(outbox) };
  }
  const bytes = sql.join([actions.body, actions.sealedHeaders, actions.extras].map(bytesOf), sql` + `);
  return { table: actions, pending, active, bytes, columns: columnsButResult(actions) };
}

/** A lane that was found. */
const HEAD = { accountId: sql`head.account_id`, host: sql`head.host`, keyId: sql`head.key_id` };

/**
 * The heads of the lanes behind one, as rows of `head` in the order of `n`: of the next key of the host, else the next host of the
 * account, else the next account.
 */
function headsBehind(queue: QueueName, { tables, joinNextLane }: Dialect, from: LaneSql, limit: SQLWrapper): SQL {
  const { table, pending } = waiting(queue, tables);
  const columns = sql`next.account_id, next.host, next.key_id, next.due_at`;
  return sql`with recursive head (account_id, host, key_id, due_at, n) as (
    select ${columns}, 1 from (select 1) head ${joinNextLane(table, pending, from)}
    union all
    select ${columns}, head.n + 1 from head ${joinNextLane(table, pending, HEAD)} where head.n < ${limit})`;
}

const readsOf = (queue: QueueName) => ({
  lanes: read(
    { accountId: "text", host: "text", keyId: "text", limit: "number" },
    (dialect, arg) => sql`${headsBehind(queue, dialect, arg, arg.limit)} select * from head`,
  ),
  claimedBy: read({ accountIds: "list", leaseUntil: "time", by: "text" }, ({ db, tables, isOneOf }, arg) => {
    const { table, active, bytes, columns } = waiting(queue, tables);
    const isClaim = and(eq(table.claimedBy, arg.by), eq(table.leaseUntil, arg.leaseUntil));
    return db
      .select({ ...columns, bytes: bytes.as("bytes") })
      .from(table)
      .where(and(active, isClaim, isOneOf(table.accountId, arg.accountIds)));
  }),
  claimedWith: read({ ids: "list", leaseUntil: "time" }, ({ db, tables, isOneOf }, arg) => {
    const { table, active, bytes, columns } = waiting(queue, tables);
    return db
      .select({ ...columns, bytes: bytes.as("bytes") })
      .from(table)
      .where(and(active, isOneOf(table.id, arg.ids), eq(table.leaseUntil, arg.leaseUntil)));
  }),
});

const READS: Readonly<Record<QueueName, ReturnType<typeof readsOf>>> = {
  action: readsOf("action"),
  callback: readsOf("callback"),
  mail: readsOf("mail"),
  message: readsOf("message"),
};

function headOf(row: Row): LaneHead {
  const [accountId, host, keyId] = [String(row["account_id"]), String(row["host"]), String(row["key_id"])];
  return { accountId, host, keyId, dueAt: new Date(typeof row["due_at"] === "number" ? row["due_at"] : 0) };
}

/** Each lane once: one that is named twice would give its rows twice. The store has well-formed text. */
function lanesOf(asked: Claim["lanes"]): Claim["lanes"] {
  const lanes = asked.map(({ accountId, keyId, host, limit }) => ({
    accountId,
    keyId,
    host: host.toWellFormed(),
    limit,
  }));
  return [...new Map(lanes.map((lane) => [`${lane.accountId} ${lane.keyId} ${lane.host}`, lane])).values()];
}

/** 0 for a small row. */
function largeOf(bytes: unknown): number {
  return Number(bytes) > SMALL_ROW_BYTES_MAX ? Number(bytes) : 0;
}

/** Larger counts are reported as this number. */
const COUNTED_MAX = 100_000;

/** The statuses that are not final. Each has a partial index, so no other rows are read. */
const STATUSES = ["pending", "active", "awaiting_approval"] as const satisfies readonly ActionStatus[];

const KINDS = ["callback", "mail", "message"] as const satisfies readonly NotificationKind[];

const FIRST_LANE = { accountId: sql`''`, host: sql`''`, keyId: sql`''` };

const FIRST_DUE = read({ limit: "number" }, (dialect, arg) => {
  return sql<{ readonly due_at: SqlValue }>`${headsBehind("action", dialect, FIRST_LANE, arg.limit)}
    select min(head.due_at) as due_at from head where not ${isPaused(dialect, HEAD)}`;
});

const counted = (name: string, source: SQL) => ({
  name,
  rows: read(
    { limit: "number" },
    (_, arg) =>
      sql<{ readonly n: number }>`select count(*) as n from (select 1 from ${source} limit ${arg.limit}) counted`,
  ),
});

const COUNTED_ACTIONS = STATUSES.map((status) => counted(status, sql`actions where status = ${status}`));

const COUNTED_NOTIFICATIONS = KINDS.flatMap((kind) =>
  ["pending", "active"].map((status) => counted(kind, sql`outbox where status = ${status} and kind = ${kind}`)),
);

/** Number of notifications that are not final, by kind. */
export async function countNotifications(reader: Reader): Promise<Readonly<Record<NotificationKind, number>>> {
  const counts = await countEach(reader, COUNTED_NOTIFICATIONS);
  return { callback: counts.get("callback") ?? 0, mail: counts.get("mail") ?? 0, message: counts.get("message") ?? 0 };
}

/** Counts the rows of each source, in a turn of the event loop each (5 ms at most), and adds up sources of one name. */
async function countEach(reader: Reader, sources: readonly ReturnType<typeof counted>[]) {
  const counts = new Map<string, number>();
  for (const { name, rows } of sources) {
    const found = await rows.get(reader, { limit: COUNTED_MAX });
    counts.set(name, (counts.get(name) ?? 0) + (found?.n ?? 0));
    await nextTurn();
  }
  return counts;
}

/**
 * Covered by the index of the queues: otherwise bodies of a megabyte would be read to reach later columns. What is due
 * later is a retry or has a `run_at`.
 */
const PENDING_BY_HOST = read({ accountId: "text", now: "time" }, ({ db, tables: { actions } }, arg) => {
  const s = db
    .select({ host: actions.host, dueAt: actions.dueAt })
    .from(actions)
    .where(and(eq(actions.status, "pending"), eq(actions.accountId, arg.accountId)))
    .orderBy(actions.host)
    .limit(PENDING_SCAN_ROWS_MAX)
    .as("s");
  const nextAt = sql`min(case when ${s.dueAt} > ${arg.now} then ${s.dueAt} end)`;
  return db
    .select({
      host: s.host,
      pending: count().as("pending"),
      later: sql<number>`count(*) filter (where ${s.dueAt} > ${arg.now})`.as("later"),
      dueSince: sql`min(case when ${s.dueAt} <= ${arg.now} then ${s.dueAt} end)`.as("due_since"),
      nextAt: nextAt.as("next_at"),
    })
    .from(s)
    .groupBy(s.host)
    .orderBy(nextAt);
});

/** What waits in the queue. See `ActionStore`. */
export function createQueueReads(reader: Reader): Pick<ActionStore, "firstDueAt" | "waiting" | "scheduledRetries"> {
  return {
    async firstDueAt() {
      const found = await FIRST_DUE.get(reader, { limit: DUE_LANES_SCANNED_MAX });
      return typeof found?.due_at === "number" ? new Date(found.due_at) : null;
    },
    async waiting() {
      const counts = await countEach(reader, COUNTED_ACTIONS);
      return Object.fromEntries(STATUSES.map((status) => [status, counts.get(status) ?? 0]));
    },
    async scheduledRetries(accountId, now) {
      const rows = await PENDING_BY_HOST.raw(reader, { accountId, now });
      const total = (column: string) => rows.reduce((all, row) => all + Number(row[column]), 0);
      const [later, pending] = [total("later"), total("pending")];
      // Times that were altered can't be told.
      const timeIn = (row: Row, name: string) => new Columns(row).timeOrNull({ name });
      const dueSince = rows.flatMap((row) => timeIn(row, "due_since")?.getTime() ?? []);
      const hosts = rows.flatMap((row) => {
        const nextAt = timeIn(row, "next_at");
        return nextAt === null ? [] : [{ host: String(row["host"]), count: Number(row["later"]), nextAt }];
      });
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
