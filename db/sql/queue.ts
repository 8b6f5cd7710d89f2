import { and, eq, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action, ActionStatus } from "../../src/core/action.ts";
import { type Claimed, startAttempt } from "../../src/core/settle.ts";
import { DUE_LANES_SCANNED_MAX, SMALL_ROW_BYTES_MAX } from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification.ts";
import type { LaneHead, Queue } from "../../src/core/store.ts";
import { claim, endSetBack, type QueueName } from "../commands/claims.ts";
import * as reschedule from "../commands/reschedule.ts";
import type { StoreContext } from "./context.ts";
import { bytesOf, countOf, isOneOf } from "./dialect.ts";
import { isConstraint } from "./errors.ts";
import { findOrphans, findPendingIds } from "./find.ts";
import { NOTIFICATION_COLUMNS } from "./outbox-rows.ts";
import { isPaused, type LaneSql } from "./pauses.ts";
import { type Args, byDialect, prepare, query } from "./query.ts";
import { actionOf, COLUMNS_BUT_RESULT } from "./rows.ts";
import { actions, outbox } from "../libsql/schema.ts";
import type { Row, Sql, SqlValue } from "./sql.ts";

/** A table of rows that wait in lanes. */
interface QueueTable {
  readonly table: SQLiteTable & Readonly<Record<LaneColumn, SQLiteColumn>>;
  /** The conditions of the partial indexes of pending rows and of active ones. */
  readonly pending: string;
  readonly active: string;
  /** Memory that an attempt of a row takes. */
  readonly bytes: SQL;
  /** What a row is read from. */
  readonly columns: Readonly<Record<string, SQLiteColumn>>;
}

type LaneColumn = "id" | "accountId" | "host" | "keyId" | "dueAt" | "leaseUntil" | "claimedBy";

const ACTIONS: QueueTable = {
  table: actions,
  pending: "status = 'pending'",
  active: "status = 'active'",
  bytes: sql`${bytesOf(actions.body)} + ${bytesOf(actions.sealedHeaders)} + ${bytesOf(actions.extras)}`,
  columns: COLUMNS_BUT_RESULT,
};

function ofKind(kind: NotificationKind): QueueTable {
  const [pending, active] = [`status = 'pending' and kind = '${kind}'`, `status = 'active' and kind = '${kind}'`];
  return { table: outbox, pending, active, bytes: bytesOf(outbox.payload), columns: NOTIFICATION_COLUMNS };
}

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
        await db.writer.run(endSetBack, { ids: ids.flat(), at: asked.at.now });
        throw error;
      }
    },
    orphans: (leaseBefore, limit, after) => findOrphans(db, leaseBefore, limit, after),
    reschedule: (setBack, limit) => db.writer.run(reschedule.actions, { ...setBack, limit }),
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
      const heads = await lanes.readRaw(reader, { accountId, host, keyId, limit });
      return heads.toSorted((one, other) => Number(one["n"]) - Number(other["n"])).map(headOf);
    },
    async claimDue({ lanes: asked, bytesMax, takesLarge, at }) {
      const { rows: won, next } = await writer.run(claim, {
        queue,
        // Each lane once: one that is named twice would give its rows twice.
        lanes: [...new Map(asked.map((lane) => [`${lane.accountId} ${lane.keyId} ${lane.host}`, lane])).values()],
        bytesMax,
        rowBytesMax: takesLarge ? Number.MAX_SAFE_INTEGER : SMALL_ROW_BYTES_MAX,
        now: at.now.getTime(),
        leaseUntil: at.leaseUntil.getTime(),
        by: at.by ?? "",
      });
      const known = won.map(({ id, fence }) => claimedFrom?.(id, fence, at) ?? null);
      const missing = won.flatMap(({ id }, n) => (known[n] === null ? [id] : []));
      const values = { ids: JSON.stringify(missing), leaseUntil: at.leaseUntil };
      const read = missing.length === 0 ? [] : await claimedWith.readRaw(reader, values);
      const byId = new Map(read.map((row) => [row["id"], { row: parse(row), largeBytes: largeOf(row["bytes"]) }]));
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
      return (await claimedBy.readRaw(reader, { accountIds: JSON.stringify(accountIds), leaseUntil, by })).map(parse);
    },
  };
}

/** A lane that was found. */
const HEAD = { accountId: sql`head.account_id`, host: sql`head.host`, keyId: sql`head.key_id` };

/**
 * The heads of the lanes behind one, as rows of `head` in the order of `n`: of the next key of the host, else the next host of the
 * account, else the next account. For a comparison of row values SQLite would use the index for the account only, and read all
 * rows of the lane before.
 */
function headsBehind({ table, pending }: QueueTable, from: LaneSql, limit: SQLWrapper): SQL {
  const columns = (name: string) => sql.raw(LANE_HEAD.map((column) => `${name}.${column}`).join(", "));
  const first = (selected: SQL, isBehind: SQL) => sql`(select ${selected} from ${table} b where b.${sql.raw(pending)}
    and ${isBehind} order by b.account_id, b.host, b.key_id, b.due_at limit 1)`;
  const behind = ({ accountId, host, keyId }: LaneSql) => {
    const ofHost = first(sql`b.rowid`, sql`b.account_id = ${accountId} and b.host = ${host} and b.key_id > ${keyId}`);
    const ofAccount = first(sql`b.rowid`, sql`b.account_id = ${accountId} and b.host > ${host}`);
    const ofOthers = first(sql`b.rowid`, sql`b.account_id > ${accountId}`);
    const isAfter = sql`(b.account_id, b.host, b.key_id) > (${accountId}, ${host}, ${keyId})`;
    return byDialect({
      sqlite: sql`join ${table} next on next.rowid = coalesce(${ofHost}, ${ofAccount}, ${ofOthers})`,
      postgres: sql`cross join lateral ${first(columns("b"), isAfter)} next`,
    });
  };
  return sql`with recursive head (${sql.raw(LANE_HEAD.join(", "))}, n) as (
    select ${columns("next")}, 1 from (select 1) head ${behind(from)}
    union all select ${columns("next")}, head.n + 1 from head ${behind(HEAD)} where head.n < ${limit})`;
}

const LANE_HEAD = ["account_id", "host", "key_id", "due_at"] as const;

function readsOf(queue: QueueTable) {
  const { table, active, bytes, columns } = queue;
  const rows = query.select({ ...columns, bytes: bytes.as("bytes") }).from(table);
  const isActive = sql.raw(active);
  return {
    lanes: prepare(
      (arg: Args<"accountId" | "host" | "keyId" | "limit">) => sql`${headsBehind(queue, arg, arg.limit)}
        select * from head`,
    ),
    claimedBy: prepare((arg: Args<"accountIds" | "leaseUntil" | "by">) => {
      const isClaim = and(eq(table.claimedBy, arg.by), eq(table.leaseUntil, arg.leaseUntil));
      return rows.where(and(isActive, isClaim, isOneOf(table.accountId, arg.accountIds)));
    }),
    claimedWith: prepare((arg: Args<"ids" | "leaseUntil">) =>
      rows.where(and(isActive, isOneOf(table.id, arg.ids), eq(table.leaseUntil, arg.leaseUntil))),
    ),
  };
}

const READS: Readonly<Record<QueueName, ReturnType<typeof readsOf>>> = {
  action: readsOf(ACTIONS),
  callback: readsOf(ofKind("callback")),
  mail: readsOf(ofKind("mail")),
  message: readsOf(ofKind("message")),
};

function headOf(row: Row): LaneHead {
  const [accountId, host, keyId] = [String(row["account_id"]), String(row["host"]), String(row["key_id"])];
  return { accountId, host, keyId, dueAt: new Date(typeof row["due_at"] === "number" ? row["due_at"] : 0) };
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

const FIRST_DUE = prepare((arg: Args<"limit">) => {
  return sql<{ readonly due_at: SqlValue }>`${headsBehind(ACTIONS, FIRST_LANE, arg.limit)}
    select min(head.due_at) as due_at from head where not ${isPaused(HEAD)}`;
});

/** Due time of the earliest pending action; null: none is pending, except paused ones. */
export async function findFirstDue(reader: Sql): Promise<Date | null> {
  const [row] = await FIRST_DUE.read(reader, { limit: DUE_LANES_SCANNED_MAX });
  return typeof row?.due_at === "number" ? new Date(row.due_at) : null;
}

function counted(name: string, source: SQL) {
  const rows = prepare(
    (arg: Args<"limit">) => sql`SELECT ${countOf(sql`(SELECT 1 FROM ${source} LIMIT ${arg.limit})`)} AS n`,
  );
  return { name, rows };
}

const COUNTED_ACTIONS = STATUSES.map((status) => counted(status, sql`actions WHERE status = ${status}`));

const COUNTED_NOTIFICATIONS = KINDS.flatMap((kind) =>
  ["pending", "active"].map((status) => counted(kind, sql`outbox WHERE status = ${status} AND kind = ${kind}`)),
);

/** Number of actions that are not final, by status. */
export async function countActions(reader: Sql): Promise<Partial<Record<ActionStatus, number>>> {
  const counts = await countEach(reader, COUNTED_ACTIONS);
  return Object.fromEntries(STATUSES.map((status) => [status, counts.get(status) ?? 0]));
}

/** Number of notifications that are not final, by kind. */
export async function countNotifications(reader: Sql): Promise<Readonly<Record<NotificationKind, number>>> {
  const counts = await countEach(reader, COUNTED_NOTIFICATIONS);
  return { callback: counts.get("callback") ?? 0, mail: counts.get("mail") ?? 0, message: counts.get("message") ?? 0 };
}

/** Counts the rows of each source, in a turn of the event loop each (5 ms at most), and adds up sources of one name. */
async function countEach(reader: Sql, sources: readonly ReturnType<typeof counted>[]) {
  const counts = new Map<string, number>();
  for (const { name, rows } of sources) {
    const [row] = await rows.readRaw(reader, { limit: COUNTED_MAX });
    counts.set(name, (counts.get(name) ?? 0) + Number(row?.["n"]));
    await nextTurn();
  }
  return counts;
}
