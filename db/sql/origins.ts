import { and, desc, eq, sql } from "drizzle-orm";
import { CALLBACKS_SCANNED_MAX, KNOWN_ORIGINS_MAX, SEEDS_LISTED_MAX } from "../../src/core/limits.ts";
import { normalTarget } from "../../src/core/target.ts";
import type { OriginUse } from "../../src/core/account-store.ts";
import { eachValue } from "./filter-values.ts";
import { read, type Reader } from "./read.ts";

/** Where an account's calls and callbacks went. Everything is bounded, and none of it grows with the table. */

/** The newest action of each host name. */
const NEWEST_OF_HOSTS = read({ accountId: "text", limit: "number" }, ({ db, tables: { actions } }, arg) => {
  const { accountId, hostname, id } = actions;
  const isOfAccount = eq(accountId, arg.accountId);
  const ofHost = db
    .select({ id })
    .from(actions)
    .where(and(isOfAccount, sql`${hostname} = found.value`));
  return sql<{ readonly id: string }>`${eachValue(hostname, isOfAccount)}
    select ${ofHost.orderBy(desc(id)).limit(1)} as id from found where value is not null limit ${arg.limit}`;
});

const TARGETS = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db.select({ url: actions.url, at: actions.createdAt }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

const CALLBACKS = read({ accountId: "text", limit: "number" }, ({ db, tables: { outbox } }, arg) =>
  db
    .select({ url: outbox.target, at: outbox.createdAt, kind: outbox.kind })
    .from(outbox)
    .where(eq(outbox.accountId, arg.accountId))
    .orderBy(desc(outbox.id))
    .limit(arg.limit),
);

const ROTATED = read({ accountId: "text", limit: "number" }, ({ db, tables: { signingSeeds } }, arg) =>
  db
    .select({ place: signingSeeds.origin, at: signingSeeds.rotatedAt })
    .from(signingSeeds)
    .where(eq(signingSeeds.accountId, arg.accountId))
    .orderBy(signingSeeds.origin, signingSeeds.seq)
    .limit(arg.limit),
);

/** One origin of each host name that has an action, by its newest one. */
export async function readCalledOrigins(reader: Reader, accountId: string): Promise<readonly OriginUse[]> {
  const ids = (await NEWEST_OF_HOSTS.all(reader, { accountId, limit: KNOWN_ORIGINS_MAX })).map(({ id }) => id);
  return ids.length === 0 ? [] : usesOf(await TARGETS.all(reader, { ids }));
}

/** The origins of the newest callbacks. */
export async function readCalledBackOrigins(reader: Reader, accountId: string): Promise<readonly OriginUse[]> {
  const rows = await CALLBACKS.all(reader, { accountId, limit: CALLBACKS_SCANNED_MAX });
  return usesOf(rows.filter(({ kind }) => kind === "callback")).slice(0, KNOWN_ORIGINS_MAX);
}

/** When each place that has a seed got its newest one. */
export async function readRotations(reader: Reader, accountId: string): Promise<ReadonlyMap<string, Date>> {
  const rows = await ROTATED.all(reader, { accountId, limit: SEEDS_LISTED_MAX });
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
