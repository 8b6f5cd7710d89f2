import { type Column, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action, ActionStatus } from "../../src/core/action.ts";
import { type Claimed, startAttempt } from "../../src/core/settle.ts";
import { DUE_LANES_SCANNED_MAX, SMALL_ROW_BYTES_MAX } from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification.ts";
import type { Claim, ClaimedRow, LaneHead, LaneName, Queue } from "../../src/core/store.ts";
import * as reschedule from "../commands/reschedule.ts";
import { findBroken } from "./broken.ts";
import type { Refused, StoreContext } from "./context.ts";
import { bytesOf, countOf } from "./dialect.ts";
import { isConstraint } from "./errors.ts";
import { findOrphans } from "./find.ts";
import { pauseLocks } from "./locks.ts";
import { isPaused, type LaneSql } from "./pauses.ts";
import { type Args, onlySqlite, prepare } from "./query.ts";
import { actionOf, COLUMNS_BUT_RESULT } from "./rows.ts";
import { actions } from "../libsql/schema.ts";
import type { Row, Sql, SqlValue, Statement } from "./sql.ts";

/**
 * `lanes` are JSON, and the first of them again by its parts; `limit` is the largest of theirs, `largest` the bytes of the
 * largest row, `refused` ids as JSON.
 */
export type ClaimArgs = Args<ClaimName>;

type ClaimName =
  | ("lanes" | "accountId" | "host" | "keyId" | "limit")
  | ("now" | "bytesMax" | "largest" | "refused" | "leaseUntil" | "by");

type ClaimValues = ReturnType<typeof valuesOfClaim>;

/** A table of rows that wait in lanes, as SQL. */
export interface QueueTable {
  readonly name: "actions" | "outbox";
  /** The condition of the partial index of pending rows, and of that of active ones. */
  readonly pending: string;
  readonly active: string;
  /** The counter that is part of the fencing token. */
  readonly fence: "revision" | "attempts";
  /** Memory that an attempt of a row takes. */
  readonly bytes: SQL;
  /** What a row is read from. */
  readonly columns: Readonly<Record<string, Column>> & { readonly id: Column; readonly accountId: Column };
  /** Holds while nothing of the lane may be claimed. */
  readonly isPaused: (lane: LaneSql) => SQL;
  /** Holds for rows of which an attempt may still begin at this time. */
  readonly isLive: (now: SQLWrapper) => SQL;
  readonly set: (arg: ClaimArgs) => SQL;
  /** Whether each claimed row gets a row in the timeline. */
  readonly isTold: boolean;
}

/** The statements of a queue, of which each database has its own. */
export interface QueueStatements {
  /**
   * Chooses of each lane the earliest due rows up to its limit, one of each lane in turn, as many as fit into `bytesMax`;
   * the first one always fits. The last two statements return the claimed rows (or only `id` and `fence`), and the
   * earliest pending row of each lane.
   */
  claim(values: ClaimValues, returned: "rows" | "ids"): readonly Statement[];
  /** The `id` of the rows that a claim of one lane would choose. */
  choose(values: ClaimValues): Statement;
  /** Rows under a claim, by node (`by`) and accounts (a JSON list), and by ids (a JSON list). */
  claimedBy(values: { readonly accountIds: string; readonly leaseUntil: Date; readonly by: string }): Statement;
  claimedWith(values: { readonly ids: string; readonly leaseUntil: Date }): Statement;
  /** See `Queue.lanes`. */
  lanes(reader: Sql, after: LaneName | null, limit: number): Promise<readonly LaneHead[]>;
}

const ACTIONS: QueueTable = {
  name: "actions",
  pending: "status = 'pending'",
  active: "status = 'active'",
  fence: "revision",
  bytes: sql`${bytesOf(sql`body`)} + ${bytesOf(sql`sealed_headers`)} + ${bytesOf(sql`extras`)}`,
  columns: COLUMNS_BUT_RESULT,
  isPaused,
  // An altered time is no number: such a row is claimed, found to be altered, and ended.
  isLive: (now) => {
    const isAltered = onlySqlite(sql` OR typeof(expires_at) <> 'integer'`) ?? sql``;
    return sql`(expires_at IS NULL OR expires_at > ${now}${isAltered})`;
  },
  set: ({ leaseUntil, by, now }) => sql`status = 'active', revision = revision + 1, attempts = attempts + 1,
    due_at = NULL, lease_until = ${leaseUntil}, claimed_by = ${by}, started_at = coalesce(started_at, ${now})`,
  isTold: true,
};

export function createActionQueue(db: StoreContext): Queue<Action> {
  const { seal, written } = db;
  const claimedFrom: ClaimedFrom<Action> = (id, revision, at) => {
    const action = written.take(id, revision - 1);
    return action === null ? null : startAttempt(action, at);
  };
  return {
    ...createQueue(ACTIONS, db, (row) => actionOf(row, seal), claimedFrom),
    orphans: (leaseBefore, limit, after) => findOrphans(db, leaseBefore, limit, after),
    broken: (limit, after) => findBroken(db, limit, after),
    reschedule: (setBack, limit) => db.writer.run(reschedule.actions, { ...setBack, limit }),
  };
}

/** A row as this claim leaves it, if memory has it; null: read it. `revision` is the one of after the claim. */
type ClaimedFrom<T> = (id: string, revision: number, at: Claimed) => T | null;

type QueueContext = Pick<StoreContext, "sql" | "writer" | "refused" | "queueStatements">;

/** The part of a queue that is the same for actions and notifications. */
export function createQueue<T>(
  table: QueueTable,
  { sql: reader, writer, refused, queueStatements }: QueueContext,
  parse: (row: Row) => T,
  claimedFrom: ClaimedFrom<T> | null = null,
): Pick<Queue<T>, "lanes" | "claimDue" | "claimed"> {
  const statements = queueStatements(table);

  const claimedRow = (row: Row): ClaimedRow<T> => ({ row: parse(row), largeBytes: largeBytesIn(row) });
  const readClaimed = (ids: readonly SqlValue[], { leaseUntil }: Claimed) =>
    ids.length === 0 ? [] : reader.read(statements.claimedWith({ ids: JSON.stringify(ids), leaseUntil }));
  /** The rows of these ids and revisions, in their order. */
  const rowsOf = async (won: readonly Row[], at: Claimed): Promise<readonly ClaimedRow<T>[]> => {
    const known = won.map(({ id, fence }) => claimedFrom?.(String(id), Number(fence), at) ?? null);
    const missing = won.flatMap(({ id = null }, n) => (known[n] === null ? [id] : []));
    const read = new Map((await readClaimed(missing, at)).map((row) => [row["id"], claimedRow(row)]));
    return won.flatMap(({ id }, n) => {
      const row = known[n] ?? null;
      return row === null ? (read.get(id) ?? []) : { row, largeBytes: 0 };
    });
  };

  const claimOnce = async (claim: Claim) => {
    // Results of writes cross threads as JSON: large rows are read afterwards instead, and those that memory has are not.
    const returned = claim.takesLarge || claimedFrom !== null ? "ids" : "rows";
    const done = await writer.write(
      statements.claim(valuesOfClaim(claim, refused), returned),
      pauseLocks(new Set(claim.lanes.map(({ accountId }) => accountId))),
    );
    const [updated, heads] = done.slice(-2);
    const won = updated?.rows ?? [];
    return {
      rows: returned === "rows" ? won.map(claimedRow) : await rowsOf(won, claim.at),
      next: (heads?.rows ?? []).map((row) => ({ ...headOf(row), isLarge: largeBytesIn(row) > 0 })),
    };
  };

  const claimDue: Queue<T>["claimDue"] = async (claim) => {
    try {
      return await claimOnce(claim);
    } catch (error) {
      if (!isConstraint(error)) throw error;
      // One of the rows was altered: claim in smaller parts until it is alone.
      const [lane] = claim.lanes;
      if (claim.lanes.length > 1 || lane === undefined) {
        const parts = await Promise.all(claim.lanes.map((one) => claimDue({ ...claim, lanes: [one] })));
        return { rows: parts.flatMap((part) => part.rows), next: parts.flatMap((part) => part.next) };
      }
      if (lane.limit > 1) return claimDue({ ...claim, lanes: [{ ...lane, limit: Math.ceil(lane.limit / 2) }] });
      const [head] = await reader.read(statements.choose(valuesOfClaim(claim, refused)));
      if (head === undefined || !refused.add(String(head["id"]))) throw error;
      return claimDue(claim);
    }
  };

  return {
    lanes: (after, limit) => statements.lanes(reader, after, limit),
    claimDue,
    async claimed(accountIds, { leaseUntil, by = "" }) {
      const claimedBy = statements.claimedBy({ accountIds: JSON.stringify(accountIds), leaseUntil, by });
      return (await reader.read(claimedBy)).map(parse);
    },
  };
}

function valuesOfClaim({ lanes, bytesMax, takesLarge, at }: Claim, refused: Refused) {
  const rows = lanes.map(({ accountId, host, keyId, limit }) => [accountId, host.toWellFormed(), keyId, limit]);
  const [[accountId = "", host = "", keyId = ""] = []] = rows;
  return {
    laneCount: rows.length,
    lanes: JSON.stringify(rows),
    accountId,
    host,
    keyId,
    limit: Math.max(0, ...lanes.map((lane) => lane.limit)),
    bytesMax,
    largest: takesLarge ? Number.MAX_SAFE_INTEGER : SMALL_ROW_BYTES_MAX,
    refused: refused.json,
    now: at.now,
    leaseUntil: at.leaseUntil,
    by: at.by ?? "",
  };
}

export function headOf(row: Row): LaneHead {
  const [accountId, host, keyId] = [String(row["account_id"]), String(row["host"]), String(row["key_id"])];
  return { accountId, host, keyId, dueAt: new Date(Number(row["due_at"])) };
}

/** 0 for a small row. */
function largeBytesIn(row: Row): number {
  const bytes = Number(row["bytes"]);
  return bytes > SMALL_ROW_BYTES_MAX ? bytes : 0;
}

/** Larger counts are reported as this number. */
const COUNTED_MAX = 100_000;

/** The statuses that are not final. Each has a partial index, so no other rows are read. */
const STATUSES = ["pending", "active", "awaiting_approval"] as const satisfies readonly ActionStatus[];

const KINDS = ["callback", "mail", "message"] as const satisfies readonly NotificationKind[];

/**
 * Steps from the head of each lane to the next by the index of the queues, without reading the rows between: the next
 * key of the host, else the next host of the account, else the next account. A single row-value comparison would use
 * the index for the account only and scan all earlier lanes.
 */
const FIRST_DUE = prepare((arg: Args<"limit">) => {
  return sql<{ readonly due_at: SqlValue }>`WITH RECURSIVE head (id, n) AS (
  SELECT (SELECT id FROM actions WHERE status = 'pending' ORDER BY account_id, host, key_id, due_at LIMIT 1), 1
  UNION ALL
  SELECT coalesce(
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id = actions.account_id AND b.host = actions.host
      AND b.key_id > actions.key_id ORDER BY b.key_id, b.due_at LIMIT 1),
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id = actions.account_id AND b.host > actions.host
      ORDER BY b.host, b.key_id, b.due_at LIMIT 1),
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id > actions.account_id
      ORDER BY b.account_id, b.host, b.key_id, b.due_at LIMIT 1)), n + 1
  FROM head JOIN actions ON actions.id = head.id WHERE n < ${arg.limit})
  SELECT min(actions.due_at) AS due_at FROM head JOIN actions ON actions.id = head.id
  WHERE NOT ${isPaused(actions)}`;
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
