import { and, desc, eq, exists, getTableColumns, like, ne, sql } from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action } from "../../src/core/action.ts";
import { ATTEMPTS_KEPT, SEARCH_STEP_ROWS, TIMELINE_ROWS_MAX } from "../../src/core/limits.ts";
import { type ActionStore, type FilterValues, hostOfKey } from "../../src/core/store.ts";
import { isHolder, KEY_ARGS, keyWindowStart } from "../commands/actions.ts";
import { LATE_SUCCESS } from "../tables.ts";
import type { StoreContext } from "./context.ts";
import { eachValue, hasValues } from "./dialect.ts";
import { all, prepare, type Reader } from "./read.ts";
import { actionColumns, isJson, readable, shownActionOf, timelineEntryOf } from "./rows.ts";
import type { Row } from "./sql.ts";

const FIND_BY_ID = prepare({ id: "text" }, ({ db, tables: { actions } }, arg) =>
  db.select(actionColumns(actions)).from(actions).where(eq(actions.id, arg.id)),
);

const FIND = prepare({ id: "text", accountId: "text" }, ({ db, tables: { actions } }, arg) =>
  db.select(actionColumns(actions)).from(actions).where(hasValues(actions, arg)),
);

const KEY_HOLDER = prepare(KEY_ARGS, ({ db, tables }, arg) => {
  const { actionKeys, actions } = tables;
  const keys = db.select(actionColumns(actions)).from(actionKeys);
  return keys.innerJoin(actions, eq(actions.id, actionKeys.actionId)).where(isHolder(tables, arg));
});

const FIND_ALL = prepare({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db.select(actionColumns(actions)).from(actions).where(isOneOf(actions.id, arg.ids)),
);

const TIMELINE = prepare({ actionId: "text", accountId: "text" }, ({ db, tables: { timeline } }, arg) =>
  db.select().from(timeline).where(hasValues(timeline, arg)).orderBy(desc(timeline.seq)).limit(TIMELINE_ROWS_MAX),
);

/** What actions are read with. */
export type ActionReads = Omit<StoreContext, "writer" | "written">;

/** An action as it is shown; null: there is none, or its row can't be read. */
function shown(rows: readonly Row[], { seal, onUnreadable }: ActionReads): Action | null {
  return (
    readable(
      rows.slice(0, 1),
      (row) => shownActionOf(row, seal),
      (row) => onUnreadable("action", row),
    )[0] ?? null
  );
}

export async function findAction(db: ActionReads, accountId: string, id: string): Promise<Action | null> {
  return shown(await FIND.raw(db.reader, { id, accountId }), db);
}

export async function findActionById(db: ActionReads, id: string): Promise<Action | null> {
  return shown(await FIND_BY_ID.raw(db.reader, { id }), db);
}

/** The rows of these actions, in this order. */
export async function findRows(reader: Reader, ids: readonly string[]): Promise<readonly Row[]> {
  if (ids.length === 0) return [];
  const rows = await FIND_ALL.raw(reader, { ids });
  const byId = new Map(rows.map((row) => [row["id"], row]));
  return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
}

/** These actions in this order, as they are shown, without those that can't be read. */
export async function findActions({ reader, seal }: ActionReads, ids: readonly string[]): Promise<readonly Action[]> {
  return readable(await findRows(reader, ids), (row) => shownActionOf(row, seal));
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

/** SQLite reads on this thread: others get their turn between two steps. */
async function inSteps(
  ids: readonly string[],
  find: (ids: readonly string[]) => Promise<readonly { readonly id: string }[]>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let at = 0; at < ids.length; at += SEARCH_STEP_ROWS) {
    if (at > 0) await nextTurn();
    for (const { id } of await find(ids.slice(at, at + SEARCH_STEP_ROWS))) found.add(id);
  }
  return found;
}

type Finds =
  | ("find" | "findById" | "holderOf" | "timeline" | "approvedHosts")
  | ("responses" | "filterValues" | "withUnknown" | "withLateSuccess");

/** Of one action, or of some that are known. See `ActionStore`. */
export function createFinds(reads: ActionReads): Pick<ActionStore, Finds> {
  const { reader } = reads;
  const { db, tables, isOneOf, itemsOf, placeIn, indexedBy } = reader.dialect;
  const { actions, attempts, timeline } = tables;
  return {
    find: (accountId, id) => findAction(reads, accountId, id),
    findById: (id) => findActionById(reads, id),
    async holderOf(accountId, kind, key, now) {
      const windowStart = keyWindowStart(now).getTime();
      return shown(await KEY_HOLDER.raw(reader, { accountId, kind, key, windowStart }), reads);
    },
    async timeline(accountId, id) {
      return readable(await TIMELINE.raw(reader, { actionId: id, accountId }), timelineEntryOf).toReversed();
    },
    // One look into an index for each pair of a key and a host (`j`).
    async approvedHosts(accountId, asked) {
      const pairs = [...new Set(asked.map(hostOfKey))].map((pair): unknown => JSON.parse(pair));
      const { hostname, keyId, status, approvedAt } = actions;
      const isOfPair = sql`${keyId} = ${placeIn(0)} and ${hostname} = ${placeIn(1)}`;
      const approved = sql<{ readonly pair: string }>`select j.value as pair from ${itemsOf(pairs)} where exists (
        select ${keyId} from ${indexedBy(actions, "actions_approved")} where ${actions.accountId} = ${accountId}
          and ${isOfPair} and ${status} = 'completed' and ${approvedAt} is not null)`;
      return new Set((await all(reader, approved)).map(({ pair }) => pair));
    },
    async responses(accountId, id) {
      const { actionId: _, ...columns } = getTableColumns(attempts);
      const kept = db
        .select(columns)
        .from(attempts)
        .innerJoin(actions, and(eq(actions.id, attempts.actionId), eq(actions.accountId, accountId)))
        .where(eq(attempts.actionId, id));
      const newest = await all(reader, kept.orderBy(desc(attempts.run), desc(attempts.attempt)).limit(ATTEMPTS_KEPT));
      return newest.filter(({ responseBody }) => isJson(responseBody));
    },
    // Costs a look into an index for each value.
    async filterValues(accountId, limit) {
      const { id, keyId, createdBy } = actions;
      const isOfAccount = eq(actions.accountId, accountId);
      const isOfKey = and(isOfAccount, ne(keyId, ""));
      // With the name on the newest action of each: a key may be gone.
      const newest = db
        .select({ createdBy })
        .from(actions)
        .where(and(isOfKey, sql`${keyId} = found.value`));
      const [hosts, creators] = await Promise.all([
        all(
          reader,
          sql<{ readonly host: string }>`${eachValue(actions.hostname, isOfAccount)}
            select value as host from found where value is not null limit ${limit}`,
        ),
        all(
          reader,
          sql<FilterValues["creators"][number]>`${eachValue(keyId, isOfKey)}
            select value as "keyId", ${newest.orderBy(desc(id)).limit(1)} as "createdBy"
            from found where value is not null limit ${limit}`,
        ),
      ]);
      return { hosts: hosts.map(({ host }) => host), creators };
    },
    withUnknown(ids) {
      // A detail is JSON of our own: its quotes can't be part of a text in it.
      const isUnknown = and(eq(timeline.type, "attempt"), like(timeline.detail, '%"outcome":"unknown"%'));
      const attempt = db
        .select({ seq: timeline.seq })
        .from(timeline)
        .where(and(sql`${timeline.actionId} = j.value`, isUnknown));
      return inSteps(ids, (some) =>
        all(reader, sql<{ readonly id: string }>`select j.value as id from ${itemsOf(some)} where ${exists(attempt)}`),
      );
    },
    withLateSuccess: (ids) =>
      inSteps(ids, (some) => {
        const isLate = and(isOneOf(actions.id, some), like(actions.lateResult, LATE_SUCCESS));
        return all(reader, db.select({ id: actions.id }).from(actions).where(isLate));
      }),
  };
}
