import { and, desc, eq, sql } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import type { TimelineEntry } from "../../src/core/timeline.ts";
import { RECOVERY_BYTES_MAX, TIMELINE_ROWS_MAX } from "../../src/core/limits.ts";
import { type LaneName, type HostOfKey, hostOfKey } from "../../src/core/store.ts";
import type { StoreContext } from "./context.ts";
import { bytesOf, indexedBy, isAbsent, isOneOf, itemsOf, placeIn } from "./dialect.ts";
import { type Args, prepare, query } from "./query.ts";
import { ACTION_COLUMNS, actionOf, shownActionOf, timelineEntryOf } from "./rows.ts";
import { actions, timeline } from "../libsql/schema.ts";
import type { Row, Sql } from "./sql.ts";

type Reader = Pick<StoreContext, "sql" | "seal">;

const FIND_BY_ID = prepare((arg: Args<"id">) =>
  query.select(ACTION_COLUMNS).from(actions).where(eq(actions.id, arg.id)),
);

const FIND = prepare((arg: Args<"id" | "accountId">) =>
  query
    .select(ACTION_COLUMNS)
    .from(actions)
    .where(and(eq(actions.id, arg.id), eq(actions.accountId, arg.accountId))),
);

export async function findAction({ sql: reader, seal }: Reader, accountId: string, id: string): Promise<Action | null> {
  const [row] = await FIND.readRaw(reader, { id, accountId });
  return row === undefined ? null : shownActionOf(row, seal);
}

export async function findActionById({ sql: reader, seal }: Reader, id: string): Promise<Action | null> {
  const [row] = await FIND_BY_ID.readRaw(reader, { id });
  return row === undefined ? null : shownActionOf(row, seal);
}

const FIND_ALL = prepare((arg: Args<"ids">) =>
  query.select(ACTION_COLUMNS).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** The rows of these actions, in this order. */
export async function findRows(reader: Sql, ids: readonly string[]): Promise<readonly Row[]> {
  if (ids.length === 0) return [];
  const rows = await FIND_ALL.readRaw(reader, { ids: JSON.stringify(ids) });
  const byId = new Map(rows.map((row) => [row[actions.id.name], row]));
  return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
}

/** Bytes of the columns that can be long. */
export const BYTES_SUM = sql<number>`${bytesOf(actions.body)} + ${bytesOf(actions.sealedHeaders)}
  + ${bytesOf(actions.extras)} + ${bytesOf(actions.responseBody)} + ${bytesOf(actions.lateResult)}`;

export const BYTES = BYTES_SUM.as("bytes");

/** Ids of the rows whose `bytes` fit together; at least one. */
export function idsWithin(bytesMax: number, found: readonly { readonly id: string; readonly bytes: number }[]) {
  const ids: string[] = [];
  let total = 0;
  for (const { id, bytes } of found) {
    total += bytes;
    if (total > bytesMax && ids.length > 0) break;
    ids.push(id);
  }
  return ids;
}

const TIMELINE = prepare((arg: Args<"id" | "accountId">) =>
  query
    .select()
    .from(timeline)
    .where(and(eq(timeline.actionId, arg.id), eq(timeline.accountId, arg.accountId)))
    .orderBy(desc(timeline.seq))
    .limit(TIMELINE_ROWS_MAX),
);

/** Oldest first; beyond the limit the oldest are left out. */
export async function readTimeline(reader: Sql, accountId: string, id: string): Promise<readonly TimelineEntry[]> {
  const rows = await TIMELINE.readRaw(reader, { id, accountId });
  return rows.flatMap((row) => timelineEntryOf(row) ?? []).toReversed();
}

/** One look into an index for each pair of a key and a host (`j`). */
const APPROVED = prepare((arg: Args<"accountId" | "pairs">) => {
  const { accountId, hostname, keyId, status, approvedAt } = actions;
  const isOfPair = sql`${keyId} = ${placeIn(0)} and ${hostname} = ${placeIn(1)}`;
  const isApproved = sql`${status} = 'completed' and ${approvedAt} is not null`;
  return sql<{ readonly pair: string }>`select j.value as pair from ${itemsOf(arg.pairs)} where exists (
    select ${keyId} from ${indexedBy(actions, "actions_approved")}
    where ${accountId} = ${arg.accountId} and ${isOfPair} and ${isApproved})`;
});

/** Hosts that received an approved call of the key that completed, by `hostOfKey`. */
export async function findApprovedHosts(
  reader: Sql,
  accountId: string,
  asked: readonly HostOfKey[],
): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set();
  const pairs = JSON.stringify([...new Set(asked.map(hostOfKey))].map((pair): unknown => JSON.parse(pair)));
  return new Set((await APPROVED.read(reader, { accountId, pairs })).map(({ pair }) => pair));
}

const ORPHANS = prepare((arg: Args<"accountId" | "id" | "leaseBefore" | "limit">) => {
  const isAfter = sql`(${actions.accountId}, ${actions.id}) > (${arg.accountId}, ${arg.id})`;
  const isOver = sql`(${isAbsent(arg.leaseBefore, actions.leaseUntil)} or ${actions.leaseUntil} < ${arg.leaseBefore})`;
  const orphans = query.select({ id: actions.id, bytes: BYTES }).from(actions);
  return orphans
    .where(and(eq(actions.status, "active"), isAfter, isOver))
    .orderBy(actions.accountId, actions.id)
    .limit(arg.limit);
});

/** Active actions whose lease ended before this time, or all of them (null). See `Queue.orphans`. */
export async function findOrphans(
  { sql: reader, seal }: Reader,
  leaseBefore: Date | null,
  limit: number,
  after: Action | null,
): Promise<readonly Action[]> {
  const from = { accountId: after?.accountId ?? "", id: after?.id ?? "" };
  const found = await ORPHANS.read(reader, { ...from, leaseBefore, limit });
  const rows = (await findRows(reader, idsWithin(RECOVERY_BYTES_MAX, found))).map((row) => actionOf(row, seal));
  // Between the two reads one may have ended, or begun its next attempt.
  const orphans = rows.filter(({ status, leaseUntil }) => {
    return status === "active" && (leaseBefore === null || (leaseUntil !== null && leaseUntil < leaseBefore));
  });
  const last = rows.at(-1);
  // Only an empty page is the last.
  const isLast = orphans.length > 0 || last === undefined;
  return isLast ? orphans : findOrphans({ sql: reader, seal }, leaseBefore, limit, last);
}

const PENDING_OF_LANE = prepare((arg: Args<"accountId" | "host" | "keyId" | "limit">) => {
  const isOfLane = and(eq(actions.accountId, arg.accountId), eq(actions.host, arg.host), eq(actions.keyId, arg.keyId));
  return query
    .select({ id: actions.id })
    .from(actions)
    .where(and(isOfLane, eq(actions.status, "pending")))
    .orderBy(actions.dueAt)
    .limit(arg.limit);
});

/** Ids of the earliest pending actions of a lane. */
export async function findPendingIds(reader: Sql, lane: LaneName, limit: number): Promise<readonly string[]> {
  return (await PENDING_OF_LANE.read(reader, { ...lane, limit })).map(({ id }) => id);
}
