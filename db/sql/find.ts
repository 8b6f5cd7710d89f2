import { and, desc, eq, getTableColumns, ne, sql } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import { ATTEMPTS_KEPT, RECOVERY_BYTES_MAX, TIMELINE_ROWS_MAX } from "../../src/core/limits.ts";
import { type ActionStore, type FilterValues, hostOfKey } from "../../src/core/store.ts";
import { isHolder, KEY_ARGS, keyWindowStart } from "../commands/actions.ts";
import type { StoreContext } from "./context.ts";
import { bytesOfAction, eachValue, hasValues } from "./dialect.ts";
import { read, type Reader } from "./read.ts";
import { actionColumns, actionOf, isJson, shownActionOf, timelineEntryOf } from "./rows.ts";
import type { Row } from "./sql.ts";

const FIND_BY_ID = read({ id: "text" }, ({ db, tables: { actions } }, arg) =>
  db.select(actionColumns(actions)).from(actions).where(eq(actions.id, arg.id)),
);

const FIND = read({ id: "text", accountId: "text" }, ({ db, tables: { actions } }, arg) =>
  db.select(actionColumns(actions)).from(actions).where(hasValues(actions, arg)),
);

export async function findAction(
  { sql: reader, seal }: Pick<StoreContext, "sql" | "seal">,
  accountId: string,
  id: string,
): Promise<Action | null> {
  const [row] = await FIND.raw(reader, { id, accountId });
  return row === undefined ? null : shownActionOf(row, seal);
}

export async function findActionById(
  { sql: reader, seal }: Pick<StoreContext, "sql" | "seal">,
  id: string,
): Promise<Action | null> {
  const [row] = await FIND_BY_ID.raw(reader, { id });
  return row === undefined ? null : shownActionOf(row, seal);
}

const FIND_ALL = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db.select(actionColumns(actions)).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** The rows of these actions, in this order. */
export async function findRows(reader: Reader, ids: readonly string[]): Promise<readonly Row[]> {
  if (ids.length === 0) return [];
  const rows = await FIND_ALL.raw(reader, { ids });
  const byId = new Map(rows.map((row) => [row["id"], row]));
  return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
}

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

const KEY_HOLDER = read(KEY_ARGS, ({ db, tables }, arg) => {
  const { actionKeys, actions } = tables;
  const keys = db.select(actionColumns(actions)).from(actionKeys);
  return keys.innerJoin(actions, eq(actions.id, actionKeys.actionId)).where(isHolder(tables, arg));
});

const TIMELINE = read({ actionId: "text", accountId: "text" }, ({ db, tables: { timeline } }, arg) =>
  db.select().from(timeline).where(hasValues(timeline, arg)).orderBy(desc(timeline.seq)).limit(TIMELINE_ROWS_MAX),
);

/** One look into an index for each pair of a key and a host (`j`). */
const APPROVED = read(
  { accountId: "text", pairs: "list" },
  ({ tables: { actions }, placeIn, itemsOf, indexedBy }, arg) => {
    const { accountId, hostname, keyId, status, approvedAt } = actions;
    const isOfPair = sql`${keyId} = ${placeIn(0)} and ${hostname} = ${placeIn(1)}`;
    const isApproved = sql`${status} = 'completed' and ${approvedAt} is not null`;
    return sql<{ readonly pair: string }>`select j.value as pair from ${itemsOf(arg.pairs)} where exists (
    select ${keyId} from ${indexedBy(actions, "actions_approved")}
    where ${accountId} = ${arg.accountId} and ${isOfPair} and ${isApproved})`;
  },
);

const ORPHANS = read(
  { accountId: "text", id: "text", leaseBefore: "time?", limit: "number" },
  ({ db, tables: { actions } }, arg) => {
    const isAfter = sql`(${actions.accountId}, ${actions.id}) > (${arg.accountId}, ${arg.id})`;
    const isOver = sql`(${arg.leaseBefore} is null or ${actions.leaseUntil} < ${arg.leaseBefore})`;
    const orphans = db.select({ id: actions.id, bytes: bytesOfAction(actions).as("bytes") }).from(actions);
    return orphans
      .where(and(eq(actions.status, "active"), isAfter, isOver))
      .orderBy(actions.accountId, actions.id)
      .limit(arg.limit);
  },
);

/** Active actions whose lease ended before this time, or all of them (null). See `Queue.orphans`. */
export async function findOrphans(
  { sql: reader, seal }: Pick<StoreContext, "sql" | "seal">,
  leaseBefore: Date | null,
  limit: number,
  after: Action | null,
): Promise<readonly Action[]> {
  const from = { accountId: after?.accountId ?? "", id: after?.id ?? "" };
  const found = await ORPHANS.all(reader, { ...from, leaseBefore, limit });
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

const RESPONSES = read({ id: "text", accountId: "text" }, ({ db, tables: { attempts, actions } }, arg) => {
  const { actionId: _, ...columns } = getTableColumns(attempts);
  return db
    .select(columns)
    .from(attempts)
    .innerJoin(actions, and(eq(actions.id, attempts.actionId), eq(actions.accountId, arg.accountId)))
    .where(eq(attempts.actionId, arg.id))
    .orderBy(desc(attempts.run), desc(attempts.attempt))
    .limit(ATTEMPTS_KEPT);
});

const HOSTS = read({ accountId: "text", limit: "number" }, ({ tables: { actions } }, arg) => {
  const found = eachValue(actions.hostname, eq(actions.accountId, arg.accountId));
  return sql<{ readonly host: string }>`${found}
    select value as host from found where value is not null limit ${arg.limit}`;
});

/** With the name on the newest action of each: a key may be gone. */
const CREATORS = read({ accountId: "text", limit: "number" }, ({ db, tables: { actions } }, arg) => {
  const { accountId, keyId, id, createdBy } = actions;
  const isOfKey = and(eq(accountId, arg.accountId), ne(keyId, ""));
  const newest = db
    .select({ createdBy })
    .from(actions)
    .where(and(isOfKey, sql`${keyId} = found.value`));
  return sql<FilterValues["creators"][number]>`${eachValue(keyId, isOfKey)}
    select value as "keyId", ${newest.orderBy(desc(id)).limit(1)} as "createdBy"
    from found where value is not null limit ${arg.limit}`;
});

/** Of one action, or of some that are known. See `ActionStore`. */
export function createFinds(
  db: Pick<StoreContext, "sql" | "seal">,
): Pick<ActionStore, "find" | "findById" | "holderOf" | "timeline" | "approvedHosts" | "responses" | "filterValues"> {
  const { sql: reader } = db;
  return {
    find: (accountId, id) => findAction(db, accountId, id),
    findById: (id) => findActionById(db, id),
    async holderOf(accountId, kind, key, now) {
      const [row] = await KEY_HOLDER.raw(reader, { accountId, kind, key, windowStart: keyWindowStart(now).getTime() });
      return row === undefined ? null : shownActionOf(row, db.seal);
    },
    async timeline(accountId, id) {
      const rows = await TIMELINE.raw(reader, { actionId: id, accountId });
      return rows.flatMap((row) => timelineEntryOf(row) ?? []).toReversed();
    },
    async approvedHosts(accountId, asked) {
      if (asked.length === 0) return new Set();
      const pairs = [...new Set(asked.map(hostOfKey))].map((pair): unknown => JSON.parse(pair));
      return new Set((await APPROVED.all(reader, { accountId, pairs })).map(({ pair }) => pair));
    },
    async responses(accountId, id) {
      const found = await RESPONSES.all(reader, { id, accountId });
      return found.map((row) =>
        isJson(row.responseBody) ? row : { ...row, responseBody: JSON.stringify(row.responseBody) },
      );
    },
    // Costs a look into an index for each value.
    async filterValues(accountId, limit) {
      const [hosts, creators] = await Promise.all([
        HOSTS.all(reader, { accountId, limit }),
        CREATORS.all(reader, { accountId, limit }),
      ]);
      return { hosts: hosts.map(({ host }) => host), creators };
    },
  };
}
