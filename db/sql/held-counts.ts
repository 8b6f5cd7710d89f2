import { and, eq, lt, sql } from "drizzle-orm";
import {
  COUNTED_MAX,
  DAY_MS,
  HELD_HOSTS_SHOWN_MAX,
  HELD_KEYS_MAX,
  HELD_PER_KEY_MAX,
  HELD_REQUESTERS_SHOWN_MAX,
  HOUR_MS,
} from "../../src/core/limits.ts";
import type { HeldFilter, Requester, WaitingApprovals, WaitingHost } from "../../src/core/store.ts";
import { countOf, indexedBy, isOneOf, itemsOf } from "./dialect.ts";
import { valuesOf } from "./filter-values.ts";
import { AND_HELD, idBefore, isHeld } from "./held.ts";
import { type Args, prepare, prepareEach, query } from "./query.ts";
import { actions } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

/** The needless terms make SQLite use the partial index by status. */
const IS_BY_STATUS = sql`${actions.status} <> 'completed' and ${actions.status} <> 'active'`;

type Conditions = "none" | "key" | "host" | "host and key";

/** The index of each: left alone, SQLite takes one of all actions for the sake of the id. */
const INDEX_OF = {
  none: "actions_by_status",
  key: "actions_held_by_key",
  host: "actions_held_by_host",
  "host and key": "actions_held_by_host",
} as const satisfies Record<Conditions, string>;

/** Each reads entries of an index alone. */
const countBy = prepareEach((variant: Conditions) =>
  prepare((arg: Args<"accountId" | "keyId" | "host" | "before" | "limit">) => {
    const { id, keyId, host } = actions;
    const isHost = variant.startsWith("host") ? eq(host, arg.host) : undefined;
    const isKey = variant.endsWith("key") ? eq(keyId, arg.keyId) : undefined;
    const isByStatus = variant === "none" ? IS_BY_STATUS : undefined;
    const condition = and(isHeld(arg.accountId), isByStatus, isHost, isKey, lt(id, arg.before));
    return sql<{ readonly count: number }>`select count(*) as count from (
      select ${id} from ${indexedBy(actions, INDEX_OF[variant])} where ${condition} limit ${arg.limit}) held`;
  }),
);

export const NO_FILTER: HeldFilter = { keyId: null, host: null, before: null };

/** How many actions of an account await approval, at most `limit`. */
export async function countAllHeld(reader: Sql, accountId: string, filter: HeldFilter, limit: number): Promise<number> {
  const { keyId, host } = filter;
  const ofAccount = keyId === null ? "none" : "key";
  const atHost = keyId === null ? "host" : "host and key";
  const variant = host === null ? ofAccount : atHost;
  const [counted] = await countBy(variant).read(reader, { accountId, keyId, host, before: idBefore(filter), limit });
  return counted?.count ?? 0;
}

/** How many actions of a key await approval, at most `HELD_PER_KEY_MAX`. */
export async function countHeld(reader: Sql, accountId: string, keyId: string): Promise<number> {
  return countAllHeld(reader, accountId, { ...NO_FILTER, keyId }, HELD_PER_KEY_MAX);
}

/** Ids begin with their time, so the first one is the oldest. */
const OLDEST = prepare((arg: Args<"accountId">) => {
  const held = query.select({ createdAt: actions.createdAt }).from(actions);
  return held
    .where(and(isHeld(arg.accountId), IS_BY_STATUS))
    .orderBy(actions.id)
    .limit(1);
});

/** The actions of an account that await approval, counted up to `COUNTED_MAX`. */
export async function readWaiting(reader: Sql, accountId: string, now: Date): Promise<WaitingApprovals> {
  const count = await countAllHeld(reader, accountId, NO_FILTER, COUNTED_MAX);
  const [oldest] = count === 0 ? [] : await OLDEST.read(reader, { accountId });
  const oldestAt = oldest?.createdAt ?? null;
  const over = async (ms: number) => {
    const before = new Date(now.getTime() - ms);
    if (oldestAt === null || oldestAt >= before) return 0;
    return countAllHeld(reader, accountId, { ...NO_FILTER, before }, COUNTED_MAX);
  };
  const [overAnHour, overADay] = [await over(HOUR_MS), await over(DAY_MS)];
  return { count, isCut: count === COUNTED_MAX, oldestAt, overAnHour, overADay };
}

/** The keys with held actions, and the oldest of each: two looks into the index for each key. */
const FIRST_BY_KEY = prepare((arg: Args<"accountId" | "limit">) => {
  const { accountId, keyId, id } = actions;
  return sql<{
    readonly key_id: string;
    readonly id: string | null;
  }>`with ${valuesOf(keyId, { accountId: arg.accountId, also: AND_HELD })}
    select value as key_id, (select ${id} from ${actions} where ${accountId} = ${arg.accountId}${AND_HELD}
      and ${keyId} = found.value order by ${id} limit 1) as id
    from found where value is not null limit ${arg.limit}`;
});

const COUNT_OF_KEYS = prepare((arg: Args<"accountId" | "keyIds" | "limit">) => {
  const { accountId, keyId, id } = actions;
  const held = sql`(select ${id} from ${actions} where ${accountId} = ${arg.accountId}${AND_HELD}
    and ${keyId} = j.value limit ${arg.limit})`;
  return sql<{
    readonly key_id: string;
    readonly count: number;
  }>`select j.value as key_id, ${countOf(held)} as count from ${itemsOf(arg.keyIds)}`;
});

const CREATORS_OF = prepare((arg: Args<"ids">) =>
  query.select({ id: actions.id, createdBy: actions.createdBy }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** How many actions of each key await approval, up to a bound; the longest waiting key first. */
export async function findRequesters(reader: Sql, accountId: string): Promise<readonly Requester[]> {
  const heads = await FIRST_BY_KEY.read(reader, { accountId, limit: HELD_KEYS_MAX });
  const first = heads
    .flatMap(({ key_id: keyId, id }) => (id === null ? [] : [{ keyId, id }]))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .slice(0, HELD_REQUESTERS_SHOWN_MAX);
  const keyIds = JSON.stringify(first.map(({ keyId }) => keyId));
  const [counts, creators] = await Promise.all([
    COUNT_OF_KEYS.read(reader, { accountId, keyIds, limit: COUNTED_MAX }),
    CREATORS_OF.read(reader, { ids: JSON.stringify(first.map(({ id }) => id)) }),
  ]);
  const countOfKey = new Map(counts.map(({ key_id: keyId, count }) => [keyId, count]));
  const creatorOf = new Map(creators.map(({ id, createdBy }) => [id, createdBy]));
  return first.flatMap(({ keyId, id }) => {
    const createdBy = creatorOf.get(id);
    return createdBy === undefined ? [] : [{ keyId, createdBy, count: countOfKey.get(keyId) ?? 0 }];
  });
}

/** By the names of the hosts. */
const HELD_HOSTS = prepare((arg: Args<"accountId" | "limit" | "counted">) => {
  const { accountId, host, id } = actions;
  const held = sql`(select ${id} from ${actions} where ${accountId} = ${arg.accountId}${AND_HELD}
    and ${host} = found.value limit ${arg.counted})`;
  return sql<{
    readonly host: string;
    readonly count: number;
  }>`with ${valuesOf(host, { accountId: arg.accountId, also: AND_HELD })}
    select value as host, ${countOf(held)} as count from found where value is not null limit ${arg.limit}`;
});

/** The hosts with held actions, one more than `HELD_HOSTS_SHOWN_MAX`, each counted up to `COUNTED_MAX`. */
export async function findHeldHosts(reader: Sql, accountId: string): Promise<readonly WaitingHost[]> {
  return HELD_HOSTS.read(reader, { accountId, limit: HELD_HOSTS_SHOWN_MAX + 1, counted: COUNTED_MAX });
}
