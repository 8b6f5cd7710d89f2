import { and, desc, eq, gte, isNotNull, ne, type Placeholder, sql } from "drizzle-orm";
import type { AccountStore, KeyCall } from "../../src/core/account-store.ts";
import { ACTION_STATUSES, HTTP_METHODS } from "../../src/core/action.ts";
import { firstActionId } from "../../src/core/ids.ts";
import { dayOf } from "../../src/core/key-limits.ts";
import { DAY_MS, KEY_ACTIONS_COUNTED_MAX, KEYS_LISTED_MAX, REPLACED_KEYS_MAX } from "../../src/core/limits.ts";
import type { KeyBudget } from "../../src/core/store.ts";
import * as commands from "../commands/accounts.ts";
import { accountColumns, FIRST, readFirstId } from "../commands/accounts.ts";
import { SPENT_ON_DAY } from "../commands/actions.ts";
import { isStopped } from "../commands/pauses.ts";
import type { StoreContext } from "./context.ts";
import { type Dialect, hasValues } from "./dialect.ts";
import { read, type Reader } from "./read.ts";

const FIND = read({ id: "text" }, ({ db, tables }, arg) =>
  db.select(accountColumns(tables)).from(tables.accounts).where(eq(tables.accounts.id, arg.id)),
);

const FIND_KEY = read({ id: "text", accountId: "text" }, ({ db, tables: { apiKeys } }, arg) =>
  db.select().from(apiKeys).where(hasValues(apiKeys, arg)),
);

const KEY_BY_HASH = read({ hash: "text" }, ({ db, tables: { apiKeys } }, arg) =>
  db.select().from(apiKeys).where(eq(apiKeys.hash, arg.hash)),
);

const REVOKED_AMONG = read({ hashes: "list" }, ({ db, tables: { apiKeys }, isOneOf }, arg) => {
  const isRevoked = and(isOneOf(apiKeys.hash, arg.hashes), isNotNull(apiKeys.revokedAt));
  return db.select({ hash: apiKeys.hash }).from(apiKeys).where(isRevoked);
});

const KEYS = read({ accountId: "text", limit: "number" }, ({ db, tables: { apiKeys } }, arg) => {
  const ofAccount = db.select().from(apiKeys).where(eq(apiKeys.accountId, arg.accountId));
  return ofAccount.orderBy(sql`${apiKeys.revokedAt} nulls first`, apiKeys.createdAt, apiKeys.id).limit(arg.limit);
});

/** Follows `replaces` by the primary key; bounded, even if rows were altered into a cycle. The builder has no recursion. */
const REPLACED = read({ id: "text", max: "number" }, ({ tables: { apiKeys } }, arg) => {
  const { id, replaces } = apiKeys;
  return sql<{ readonly id: string; readonly depth: number }>`with recursive replaced (id, depth) as (
      select ${replaces}, 1 from ${apiKeys} where ${id} = ${arg.id} and ${replaces} is not null
      union all
      select ${replaces}, replaced.depth + 1 from replaced join ${apiKeys} on ${id} = replaced.id
      where ${replaces} is not null and replaced.depth < ${arg.max})
    select id, depth from replaced`;
});

/** The id of the account that the first start made. */
const firstId = ({ tables: { accounts }, addedOrder }: Dialect) =>
  sql`(select ${sql.identifier("id")} from ${accounts} order by ${addedOrder} limit 1)`;

/** The keys of the first account that have, or had, a hold. */
const HOLDS = read({}, (dialect) => {
  const { apiKeys } = dialect.tables;
  return dialect.db
    .select({ id: apiKeys.id })
    .from(apiKeys)
    .where(and(sql`${apiKeys.accountId} = ${firstId(dialect)}`, ne(apiKeys.hold, "none")))
    .limit(1);
});

/** Stopped accounts first, then the newest. */
const LIST = read({ limit: "number" }, (dialect, arg) => {
  const { db, tables, addedOrder } = dialect;
  const { people, members, accounts } = tables;
  const emails = db.select({ email: people.email }).from(members).innerJoin(people, eq(people.id, members.personId));
  const isMember = sql`${members.accountId} = ${accounts.id}`;
  const email = emails.where(isMember).orderBy(members.joinedAt, members.personId).limit(1);
  const isStoppedNow = sql<boolean>`${isStopped(dialect, accounts.id)}`.mapWith(Boolean).as("is_stopped");
  return db
    .select({
      id: accounts.id,
      email: sql<string | null>`${email}`.as("email"),
      createdAt: accounts.createdAt,
      isFirst: sql<boolean>`${accounts.id} = ${firstId(dialect)}`.mapWith(Boolean).as("is_first"),
      isStopped: isStoppedNow,
      allowedAt: accounts.allowedAt,
    })
    .from(accounts)
    .orderBy(desc(isStoppedNow), sql`${accounts}.${addedOrder} desc`)
    .limit(arg.limit);
});

/** See `ActionStore.hasBudgetLeft`. */
export async function hasBudgetLeft(reader: Reader, { keyId, day, limit }: KeyBudget): Promise<boolean> {
  const found = await SPENT_ON_DAY.get(reader, { keyId, day });
  return found === null || found.created < limit;
}

const USE = read(
  { accountId: "text", day: "number", since: "text", sinceDayAgo: "text" },
  ({ db, tables: { actions, keyDays, apiKeys } }, arg) => {
    // As the index by key is declared.
    const isOfKey = and(eq(actions.accountId, apiKeys.accountId), eq(actions.keyId, apiKeys.id), ne(actions.keyId, ""));
    const newest = db.select({ id: actions.id }).from(actions).where(isOfKey).orderBy(desc(actions.id)).limit(1);
    const isToday = and(eq(keyDays.keyId, apiKeys.id), eq(keyDays.day, arg.day));
    const today = db.select({ created: keyDays.created }).from(keyDays).where(isToday);
    const recent = (since: Placeholder) => {
      const isRecent = and(isOfKey, gte(actions.id, since));
      const rows = db.select({ id: actions.id }).from(actions).where(isRecent);
      return db.$count(rows.limit(KEY_ACTIONS_COUNTED_MAX).as("counted"));
    };
    return db
      .select({
        id: apiKeys.id,
        lastActionId: sql<string | null>`${newest}`.as("last_action_id"),
        actionsToday: sql<number>`case when ${apiKeys.dailyActions} is null then ${recent(arg.since)}
          else coalesce(${today}, 0) end`.as("actions_today"),
        actionsLastDay: sql<number>`${recent(arg.sinceDayAgo)}`.as("actions_last_day"),
      })
      .from(apiKeys)
      .where(eq(apiKeys.accountId, arg.accountId))
      .limit(KEYS_LISTED_MAX);
  },
);

const CALLS = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) => {
  const { id, createdAt, method, url, status, responseCode } = actions;
  return db.select({ id, createdAt, method, url, status, responseCode }).from(actions).where(isOneOf(id, arg.ids));
});

type CallRow = Omit<KeyCall, "method" | "status"> & Readonly<Record<"method" | "status", string>>;

/** Null: the row was altered in the database. */
function callOf({ method: storedMethod, status: storedStatus, ...row }: CallRow): KeyCall | null {
  const method = HTTP_METHODS.find((one) => one === storedMethod);
  const status = ACTION_STATUSES.find((one) => one === storedStatus);
  return method === undefined || status === undefined ? null : { ...row, method, status };
}

export function createAccountStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): AccountStore {
  const stopArgs = async () => ({
    firstAccountId: await readFirstId(reader),
    idPrefix: `pau_${crypto.randomUUID().slice(0, 8)}`,
  });
  return {
    findKey: (accountId, id) => FIND_KEY.get(reader, { accountId, id }),
    first: () => FIRST.get(reader, {}),
    find: (id) => FIND.get(reader, { id }),
    create: (account, keys, extras) => writer.run(commands.create, { account, keys, extras }),
    async addKey(key, audit, stop) {
      const stopped = stop === undefined ? stop : { ...stop, ...(await stopArgs()) };
      return writer.run(commands.addKey, { key, audit, stop: stopped });
    },
    async replacedBy(id) {
      const keys = await REPLACED.all(reader, { id, max: REPLACED_KEYS_MAX });
      return keys.toSorted((one, other) => one.depth - other.depth).map((key) => key.id);
    },
    keyByHash: (hash) => KEY_BY_HASH.get(reader, { hash }),
    revokedAmong: async (hashes) => (await REVOKED_AMONG.all(reader, { hashes })).map(({ hash }) => hash),
    keyUsed: (id, at) => writer.run(commands.useKey, { id, at }),
    async keyUse(accountId, now) {
      const day = dayOf(now);
      const dayAgo = new Date(now.getTime() - DAY_MS);
      const since = { since: firstActionId(new Date(day * DAY_MS)), sinceDayAgo: firstActionId(dayAgo) };
      const rows = await USE.all(reader, { accountId, day, ...since });
      const ids = rows.flatMap(({ lastActionId }) => lastActionId ?? []);
      const found = ids.length === 0 ? [] : await CALLS.all(reader, { ids });
      const calls = new Map(found.flatMap((row) => callOf(row) ?? []).map((call) => [call.id, call]));
      return new Map(
        rows.map(({ id, lastActionId, ...counts }) => [
          id,
          { ...counts, lastCall: lastActionId === null ? null : (calls.get(lastActionId) ?? null) },
        ]),
      );
    },
    keys: (accountId, limit) => KEYS.all(reader, { accountId, limit }),
    revokeKey: (accountId, id, at, { by = null, audit, pause } = {}) =>
      writer.run(commands.revokeKey, { accountId, id, at, by, audit, pause }),
    hasHold: async () => (await HOLDS.all(reader, {})).length > 0,
    stopOthers: async (stop) => writer.run(commands.stopOthers, { stop, ...(await stopArgs()) }),
    list: (limit) => LIST.all(reader, { limit }),
    allow: (id, end) => writer.run(commands.allow, { id, ...end }),
  };
}
