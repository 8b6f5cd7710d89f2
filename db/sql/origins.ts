import { desc, eq, sql } from "drizzle-orm";
import { CALLBACKS_SCANNED_MAX, KNOWN_ORIGINS_MAX, SEEDS_LISTED_MAX } from "../../src/core/limits.ts";
import { normalTarget } from "../../src/core/target.ts";
import type { OriginUse } from "../../src/core/account-store.ts";
import type { StoreContext } from "./context.ts";
import { isOneOf } from "./dialect.ts";
import { type Args, prepare, query } from "./query.ts";
import { actions, outbox, signingSeeds } from "../libsql/schema.ts";

/** Where an account's calls and callbacks went. Everything is bounded, and none of it grows with the table. */

/**
 * The newest action of each host name: from one name to the next in the index, so that it costs a look-up for each name,
 * however many actions there are. The builder has no recursion.
 */
const NEWEST_OF_HOSTS = prepare((arg: Args<"accountId" | "limit">) => {
  const { accountId, hostname, id } = actions;
  const ofAccount = sql`from ${actions} where ${accountId} = ${arg.accountId}`;
  return sql<{ readonly id: string }>`with recursive names (name, depth) as (
      select (select ${hostname} ${ofAccount} order by ${hostname} limit 1), 1
      union all
      select (select ${hostname} ${ofAccount} and ${hostname} > names.name order by ${hostname} limit 1), names.depth + 1
      from names where names.name is not null and names.depth < ${arg.limit})
    select (select ${id} ${ofAccount} and ${hostname} = names.name order by ${id} desc limit 1) as id
    from names where names.name is not null`;
});

const TARGETS = prepare((arg: Args<"ids">) =>
  query.select({ url: actions.url, at: actions.createdAt }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

const CALLBACKS = prepare((arg: Args<"accountId" | "limit">) =>
  query
    .select({ url: outbox.target, at: outbox.createdAt, kind: outbox.kind })
    .from(outbox)
    .where(eq(outbox.accountId, arg.accountId))
    .orderBy(desc(outbox.id))
    .limit(arg.limit),
);

const ROTATED = prepare((arg: Args<"accountId" | "limit">) =>
  query
    .select({ place: signingSeeds.origin, at: signingSeeds.rotatedAt })
    .from(signingSeeds)
    .where(eq(signingSeeds.accountId, arg.accountId))
    .orderBy(signingSeeds.origin, signingSeeds.seq)
    .limit(arg.limit),
);

type Reader = Pick<StoreContext, "sql">;

/** One origin of each host name that has an action, by its newest one. */
export async function readCalledOrigins({ sql: reader }: Reader, accountId: string): Promise<readonly OriginUse[]> {
  const ids = (await NEWEST_OF_HOSTS.read(reader, { accountId, limit: KNOWN_ORIGINS_MAX })).map(({ id }) => id);
  return ids.length === 0 ? [] : usesOf(await TARGETS.read(reader, { ids: JSON.stringify(ids) }));
}

/** The origins of the newest callbacks. */
export async function readCalledBackOrigins({ sql: reader }: Reader, accountId: string): Promise<readonly OriginUse[]> {
  const rows = await CALLBACKS.read(reader, { accountId, limit: CALLBACKS_SCANNED_MAX });
  return usesOf(rows.filter(({ kind }) => kind === "callback")).slice(0, KNOWN_ORIGINS_MAX);
}

/** When each place that has a seed got its newest one. */
export async function readRotations({ sql: reader }: Reader, accountId: string): Promise<ReadonlyMap<string, Date>> {
  const rows = await ROTATED.read(reader, { accountId, limit: SEEDS_LISTED_MAX });
  // The newest of a place comes last.
  return new Map(rows.map(({ place, at }) => [place, at]));
}

/** Each origin once, with its newest use. A URL that was altered in the database has none. */
function usesOf(rows: readonly { readonly url: string; readonly at: Date }[]): readonly OriginUse[] {
  const newest = new Map<string, Date>();
  for (const { url, at } of rows) {
    const origin = normalTarget(url)?.origin;
    if (origin === undefined) continue;
    const known = newest.get(origin);
    if (known === undefined || known < at) newest.set(origin, at);
  }
  return [...newest].map(([origin, lastUsedAt]) => ({ origin, lastUsedAt }));
}
