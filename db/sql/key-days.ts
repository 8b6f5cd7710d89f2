import { and, desc, eq, gte, type Placeholder, sql } from "drizzle-orm";
import { ACTION_STATUSES, HTTP_METHODS } from "../../src/core/action.ts";
import { dayOf } from "../../src/core/key-limits.ts";
import { DAY_MS, KEY_ACTIONS_COUNTED_MAX, KEYS_LISTED_MAX } from "../../src/core/limits.ts";
import { firstActionId } from "../../src/core/ids.ts";
import type { KeyCall, KeyUse } from "../../src/core/account-store.ts";
import type { KeyBudget } from "../../src/core/store.ts";
import type { StoreContext } from "./context.ts";
import { countOf, isOneOf } from "./dialect.ts";
import { type Args, prepare, query } from "./query.ts";
import { actions, apiKeys, keyDays } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

const CREATED = prepare((arg: Args<"keyId" | "day">) =>
  query
    .select({ created: keyDays.created })
    .from(keyDays)
    .where(and(eq(keyDays.keyId, arg.keyId), eq(keyDays.day, arg.day))),
);

/** See `ActionStore.hasBudgetLeft`. */
export async function hasBudgetLeft(reader: Sql, { keyId, day, limit }: KeyBudget): Promise<boolean> {
  const [found] = await CREATED.read(reader, { keyId, day });
  return found === undefined || found.created < limit;
}

/** The actions of a key that is a row of the query around it. */
const ofKey = and(
  sql`${actions.accountId} = ${apiKeys.accountId}`,
  sql`${actions.keyId} = ${apiKeys.id}`,
  // As the index by key is declared.
  sql`${actions.keyId} <> ''`,
);

const USE = prepare((arg: Args<"accountId" | "day" | "since" | "sinceDayAgo">) => {
  const newest = query.select({ id: actions.id }).from(actions).where(ofKey).orderBy(desc(actions.id)).limit(1);
  const counted = query.select({ created: keyDays.created }).from(keyDays);
  const isDay = and(sql`${keyDays.keyId} = ${apiKeys.id}`, eq(keyDays.day, arg.day));
  const recent = (since: Placeholder) => {
    const rows = query.select({ id: actions.id }).from(actions);
    return countOf(rows.where(and(ofKey, gte(actions.id, since))).limit(KEY_ACTIONS_COUNTED_MAX));
  };
  return query
    .select({
      id: apiKeys.id,
      lastActionId: sql<string | null>`${newest}`.as("last_action_id"),
      actionsToday: sql<number>`case when ${apiKeys.dailyActions} is null then ${recent(arg.since)}
        else coalesce(${counted.where(isDay)}, 0) end`
        .mapWith(Number)
        .as("actions_today"),
      actionsLastDay: sql<number>`${recent(arg.sinceDayAgo)}`.mapWith(Number).as("actions_last_day"),
    })
    .from(apiKeys)
    .where(eq(apiKeys.accountId, arg.accountId))
    .limit(KEYS_LISTED_MAX);
});

const CALLS = prepare((arg: Args<"ids">) => {
  const { id, createdAt, method, url, status, responseCode } = actions;
  return query.select({ id, createdAt, method, url, status, responseCode }).from(actions).where(isOneOf(id, arg.ids));
});

/** The newest action of each key of an account, and how many it has created lately. */
export async function readUse(
  { sql: reader }: Pick<StoreContext, "sql">,
  accountId: string,
  now: Date,
): Promise<ReadonlyMap<string, KeyUse>> {
  const day = dayOf(now);
  const dayAgo = new Date(now.getTime() - DAY_MS);
  const since = { since: firstActionId(new Date(day * DAY_MS)), sinceDayAgo: firstActionId(dayAgo) };
  const rows = await USE.read(reader, { accountId, day, ...since });
  const ids = rows.flatMap(({ lastActionId }) => lastActionId ?? []);
  const found = ids.length === 0 ? [] : await CALLS.read(reader, { ids: JSON.stringify(ids) });
  const calls = new Map(found.flatMap((row) => callOf(row) ?? []).map((call) => [call.id, call]));
  return new Map(
    rows.map(({ id, lastActionId, ...counts }) => [
      id,
      { ...counts, lastCall: lastActionId === null ? null : (calls.get(lastActionId) ?? null) },
    ]),
  );
}

/** Null: the row was altered in the database. */
function callOf({
  method,
  status,
  ...row
}: Omit<KeyCall, "method" | "status"> & Readonly<Record<"method" | "status", string>>) {
  const known = {
    method: HTTP_METHODS.find((one) => one === method),
    status: ACTION_STATUSES.find((one) => one === status),
  };
  if (known.method === undefined || known.status === undefined) return null;
  return { ...row, method: known.method, status: known.status };
}
