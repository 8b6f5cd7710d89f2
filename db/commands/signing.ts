/** Seeds of signing secrets: which one an origin has, and their rotation. */
import { and, desc, eq, inArray, lt, sql } from "drizzle-orm";
import type { OriginUse, ShownSeed, SigningSeed, SigningStore, SigningUse } from "../../src/core/account-store.ts";
import { CALLBACKS_SCANNED_MAX, KNOWN_ORIGINS_MAX, SEEDS_LISTED_MAX } from "../../src/core/limits.ts";
import { normalTarget } from "../../src/core/target.ts";
import { accountLock } from "../sql/locks.ts";
import { all, eachValue, get, hasValues, prepare, qb } from "../sql/read.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { addToAudit } from "./audit.ts";
import { command } from "./command.ts";
import { actions, callbackOverlaps, outbox, signingSeeds } from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** How many seeds are kept: the newest and the one that it replaces. */
export const SEEDS_KEPT = 2;

type Seed = Omit<typeof signingSeeds.$inferInsert, "seq">;

export const rotate = command(
  async (tx, seed: Seed, audit: AuditEntry | undefined, shown: ShownSeed | undefined) => {
    const { accountId, origin } = seed;
    if (shown !== undefined) {
      const isInUse = and(eq(signingSeeds.accountId, accountId), inArray(signingSeeds.origin, seedPlaces(shown)));
      const inUse = qb.select({ id: signingSeeds.id }).from(signingSeeds).where(isInUse);
      const newest = await get(tx, inUse.orderBy(desc(signingSeeds.seq)).limit(1));
      if ((newest?.id ?? null) !== shown.id) return false;
    }
    await tx.db.insert(signingSeeds).values(seed);
    await addToAudit(tx, audit);
    const isOfOrigin = hasValues(signingSeeds, { accountId, origin });
    const seeds = qb.select({ seq: signingSeeds.seq }).from(signingSeeds).where(isOfOrigin);
    const kept = await all(tx, seeds.orderBy(desc(signingSeeds.seq)).limit(SEEDS_KEPT));
    await tx.db.delete(signingSeeds).where(and(isOfOrigin, lt(signingSeeds.seq, kept.at(-1)?.seq ?? 0)));
    return true;
  },
  ({ accountId }) => [accountLock(accountId)],
);

const SEEDS = prepare({ accountId: "text", places: "list" }, (arg, { isOneOf }) => {
  const isInUse = and(eq(signingSeeds.accountId, arg.accountId), isOneOf(signingSeeds.origin, arg.places));
  return qb.select().from(signingSeeds).where(isInUse).orderBy(desc(signingSeeds.seq)).limit(SEEDS_KEPT);
});

const OVERLAP = prepare({ accountId: "text", origin: "text" }, (arg) =>
  qb.select({ until: callbackOverlaps.until }).from(callbackOverlaps).where(hasValues(callbackOverlaps, arg)),
);

/** The stored origin of a seed for all origins. */
const EVERYTHING = "";

const EVERY_ORIGIN = { calls: "calls", callbacks: "callbacks" } as const satisfies Record<SigningUse, string>;

/** The prefix of stored origins of callbacks. Origins of calls have none. */
const CALLBACKS_TO = "callbacks ";

function seedPlace(origin: string | null, use: SigningUse | null): string {
  if (origin === null) return use === null ? EVERYTHING : EVERY_ORIGIN[use];
  return use === "callbacks" ? CALLBACKS_TO + origin : origin;
}

/** The places of the seeds in use for an origin. */
function seedPlaces({ origin, use }: Pick<ShownSeed, "origin" | "use">): string[] {
  return [seedPlace(origin, use), EVERY_ORIGIN[use], EVERYTHING];
}

/** The inverse of `seedPlace`. */
function originAndUse(place: string): Pick<SigningSeed, "origin" | "use"> {
  if (place === EVERYTHING) return { origin: null, use: null };
  if (place === EVERY_ORIGIN.calls || place === EVERY_ORIGIN.callbacks) return { origin: null, use: place };
  if (place.startsWith(CALLBACKS_TO)) return { origin: place.slice(CALLBACKS_TO.length), use: "callbacks" };
  return { origin: place, use: "calls" };
}

/** Each origin with its newest use. An altered URL may have no origin. */
function toUses(rows: readonly { readonly url: string; readonly at: Date }[]): readonly OriginUse[] {
  const newest = new Map<string, Date>();
  for (const { url, at } of rows) {
    const origin = normalTarget(url)?.origin;
    if (origin === undefined) continue;
    const known = newest.get(origin);
    if (known === undefined || known < at) newest.set(origin, at);
  }
  return [...newest].map(([origin, lastUsedAt]) => ({ origin, lastUsedAt }));
}

/** A rotation is one commit. */
export function createSigningStore({ reader, writer }: StoreAccess): SigningStore {
  const { isOneOf } = reader.dialect;
  return {
    rotate: ({ use, ...seed }, audit, shown) =>
      writer.run(rotate, { ...seed, origin: seedPlace(seed.origin, use) }, audit, shown),
    async seeds(accountId, origin, use) {
      const seeds = await SEEDS.all(reader, { accountId, places: seedPlaces({ origin, use }) });
      return seeds.map(({ id, origin: place, sealedSeed, rotatedAt }) => {
        return { id, accountId, ...originAndUse(place), sealedSeed, rotatedAt };
      });
    },
    // Each of these reads is bounded, whatever the size of the table.
    async origins(accountId) {
      const { hostname, id, url, createdAt } = actions;
      const isOfAccount = eq(actions.accountId, accountId);
      const ofHost = qb.select({ id }).from(actions);
      const newestOfHost = ofHost.where(and(isOfAccount, sql`${hostname} = found.value`)).orderBy(desc(id));
      const selected = sql`${newestOfHost.limit(1)} as id`;
      const newestOfHosts = eachValue<{ readonly id: string }>(hostname, isOfAccount, selected, KNOWN_ORIGINS_MAX);
      const callbacks = qb
        .select({ url: outbox.target, at: outbox.createdAt, kind: outbox.kind })
        .from(outbox)
        .where(eq(outbox.accountId, accountId));
      const rotated = qb
        .select({ place: signingSeeds.origin, at: signingSeeds.rotatedAt })
        .from(signingSeeds)
        .where(eq(signingSeeds.accountId, accountId));
      const [hosts, sent, rotations] = await Promise.all([
        all(reader, newestOfHosts),
        all(reader, callbacks.orderBy(desc(outbox.id)).limit(CALLBACKS_SCANNED_MAX)),
        all(reader, rotated.orderBy(signingSeeds.origin, signingSeeds.seq).limit(SEEDS_LISTED_MAX)),
      ]);
      const ids = hosts.map((host) => host.id);
      const called = qb.select({ url, at: createdAt }).from(actions).where(isOneOf(id, ids));
      // For equal places, the last one wins, which is the newest.
      const newest = new Map(rotations.map(({ place, at }) => [place, at]));
      return {
        calls: ids.length === 0 ? [] : toUses(await all(reader, called)),
        callbacks: toUses(sent.filter(({ kind }) => kind === "callback")).slice(0, KNOWN_ORIGINS_MAX),
        rotations: [...newest].map(([place, rotatedAt]) => ({ ...originAndUse(place), rotatedAt })),
      };
    },
    callbackOverlap: async (accountId, origin) => (await OVERLAP.get(reader, { accountId, origin }))?.until ?? null,
  };
}
