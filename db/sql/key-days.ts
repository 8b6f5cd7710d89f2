import { and, desc, eq, gte, lt, notExists, sql, type SQL } from "drizzle-orm";
import { dayOf } from "../../src/accounts/key-limits.ts";
import { DAY_MS, KEY_ACTIONS_COUNTED_MAX, KEYS_LISTED_MAX } from "../../src/config/limits.ts";
import { firstActionId } from "../../src/runtime/ids.ts";
import type { KeyUse } from "../account-store.ts";
import type { Creation } from "../store.ts";
import type { StoreContext } from "./context.ts";
import { countOf, isOneOfPlaces, place } from "./dialect.ts";
import { type Args, changed, insertWhere, prepare, query } from "./query.ts";
import { actions, apiKeys, keyDays } from "../libsql/schema.ts";
import type { Statement } from "./sql.ts";

/** How many actions keys create a day. */

type Budget = NonNullable<Creation["budget"]>;

/** Holds while the key may create more on the day of a create. */
export function hasBudget(arg: Args<"keyId" | "budgetDay" | "budgetLimit">): SQL {
  const full = query.select({ keyId: keyDays.keyId }).from(keyDays);
  const isDay = and(eq(keyDays.keyId, arg.keyId), eq(keyDays.day, arg.budgetDay));
  return notExists(full.where(and(isDay, gte(keyDays.created, arg.budgetLimit))));
}

const SPEND = prepare((arg: Args<"keyId" | "day">) =>
  insertWhere(keyDays, changed, { keyId: arg.keyId, day: arg.day, created: 1 }).onConflictDoUpdate({
    target: [keyDays.keyId, keyDays.day],
    set: { created: sql`${keyDays.created} + 1` },
  }),
);

/** Counts a create, where the statement before wrote the action's row. */
export function spendBudget(keyId: string, { day }: Budget): Statement {
  return SPEND.bind({ keyId, day });
}

const CREATED = prepare((arg: Args<"keyId" | "day">) =>
  query
    .select({ created: keyDays.created })
    .from(keyDays)
    .where(and(eq(keyDays.keyId, arg.keyId), eq(keyDays.day, arg.day))),
);

export async function hasBudgetLeft(
  { sql: reader }: Pick<StoreContext, "sql">,
  keyId: string,
  { day, limit }: Budget,
): Promise<boolean> {
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

const USE = prepare((arg: Args<"accountId" | "day" | "since">) => {
  const newest = query.select({ at: actions.createdAt }).from(actions).where(ofKey).orderBy(desc(actions.id)).limit(1);
  const today = query.select({ id: actions.id }).from(actions);
  const counted = query.select({ created: keyDays.created }).from(keyDays);
  const isDay = and(sql`${keyDays.keyId} = ${apiKeys.id}`, eq(keyDays.day, arg.day));
  const recent = today.where(and(ofKey, gte(actions.id, arg.since))).limit(KEY_ACTIONS_COUNTED_MAX);
  return query
    .select({
      id: apiKeys.id,
      lastActionAt: sql<Date | null>`${newest}`.mapWith(actions.createdAt).as("last_action_at"),
      actionsToday: sql<number>`case when ${apiKeys.dailyActions} is null then ${countOf(recent)}
        else coalesce(${counted.where(isDay)}, 0) end`
        .mapWith(Number)
        .as("actions_today"),
    })
    .from(apiKeys)
    .where(eq(apiKeys.accountId, arg.accountId))
    .limit(KEYS_LISTED_MAX);
});

/** When each key of an account created its newest action, and how many it has created today. */
export async function readUse(
  { sql: reader }: Pick<StoreContext, "sql">,
  accountId: string,
  now: Date,
): Promise<ReadonlyMap<string, KeyUse>> {
  const day = dayOf(now);
  const rows = await USE.read(reader, { accountId, day, since: firstActionId(new Date(day * DAY_MS)) });
  return new Map(rows.map(({ id, ...use }) => [id, use]));
}

/** Rows deleted per pass, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

/** The days before yesterday: the clock may be set back. */
const PRUNE = prepare((arg: Args<"before">) => {
  const at = sql<number>`${keyDays}.${place}`;
  const old = query.select({ at }).from(keyDays).where(lt(keyDays.day, arg.before)).limit(PRUNE_ROWS);
  return query.delete(keyDays).where(isOneOfPlaces(at, old));
});

export function pruneDays(now: Date): Statement {
  return PRUNE.bind({ before: dayOf(now) - 1 });
}
