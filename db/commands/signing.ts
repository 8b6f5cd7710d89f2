import { and, desc, eq, lt, sql } from "drizzle-orm";
import type { OriginUse, SigningSeed, SigningStore, SigningUse } from "../../src/core/account-store.ts";
import { CALLBACKS_SCANNED_MAX, KNOWN_ORIGINS_MAX, SEEDS_LISTED_MAX } from "../../src/core/limits.ts";
import { normalTarget } from "../../src/core/target.ts";
import type { StoreContext } from "../sql/context.ts";
import { eachValue, hasValues } from "../sql/dialect.ts";
import { read } from "../sql/read.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { addToAudit } from "./audit.ts";
import { command, type Tables } from "./command.ts";

/** The newest seed and the one it replaces. */
export const SEEDS_KEPT = 2;

type Seed = Omit<Tables["signingSeeds"]["$inferInsert"], "seq">;

/** Adds a seed and deletes those of the same origin that two newer ones replace. */
export const rotate = command(async (tx, seed: Seed, audit: AuditEntry | undefined) => {
  const { signingSeeds } = tx.tables;
  await tx.db.insert(signingSeeds).values(seed);
  await addToAudit(tx, audit);
  const isOfOrigin = hasValues(signingSeeds, { accountId: seed.accountId, origin: seed.origin });
  const seeds = tx.db.select({ seq: signingSeeds.seq }).from(signingSeeds).where(isOfOrigin);
  const kept = await seeds.orderBy(desc(signingSeeds.seq)).limit(SEEDS_KEPT);
  await tx.db.delete(signingSeeds).where(and(isOfOrigin, lt(signingSeeds.seq, kept.at(-1)?.seq ?? 0)));
});

const SEEDS = read({ accountId: "text", origin: "text" }, ({ db, tables: { signingSeeds } }, arg) => {
  const seeds = db.select().from(signingSeeds).where(hasValues(signingSeeds, arg));
  return seeds.orderBy(desc(signingSeeds.seq)).limit(SEEDS_KEPT);
});

const OVERLAP = read({ accountId: "text", origin: "text" }, ({ db, tables: { callbackOverlaps } }, arg) =>
  db.select({ until: callbackOverlaps.until }).from(callbackOverlaps).where(hasValues(callbackOverlaps, arg)),
);

/** `origin` of seeds for all origins: of calls and callbacks, or of one of them. */
const EVERYTHING = "";

const EVERY_ORIGIN = { calls: "calls", callbacks: "callbacks" } as const satisfies Record<SigningUse, string>;

/** Prefix of an origin for callbacks. An origin for calls has none. */
const CALLBACKS_TO = "callbacks ";

function placeOf(origin: string | null, use: SigningUse | null): string {
  if (origin === null) return use === null ? EVERYTHING : EVERY_ORIGIN[use];
  return use === "callbacks" ? CALLBACKS_TO + origin : origin;
}

/** The inverse of `placeOf`. */
function originAndUse(place: string): Pick<SigningSeed, "origin" | "use"> {
  if (place === EVERYTHING) return { origin: null, use: null };
  if (place === EVERY_ORIGIN.calls || place === EVERY_ORIGIN.callbacks) return { origin: null, use: place };
  if (place.startsWith(CALLBACKS_TO)) return { origin: place.slice(CALLBACKS_TO.length), use: "callbacks" };
  return { origin: place, use: "calls" };
}

// Where an account's calls and callbacks went. Everything is bounded, and none of it grows with the table.

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

/** Seeds of signing secrets. A rotation is one commit. */
export function createSigningStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): SigningStore {
  return {
    rotate: ({ use, ...seed }, audit) => writer.run(rotate, { ...seed, origin: placeOf(seed.origin, use) }, audit),
    async seeds(accountId, origin, use) {
      const places = [placeOf(origin, use), EVERY_ORIGIN[use], EVERYTHING];
      const found = await Promise.all(places.map((place) => SEEDS.all(reader, { accountId, origin: place })));
      const seeds = found.flat().toSorted((one, other) => other.seq - one.seq);
      return seeds.slice(0, SEEDS_KEPT).map(({ id, origin: place, sealedSeed, rotatedAt }) => {
        return { id, accountId, ...originAndUse(place), sealedSeed, rotatedAt };
      });
    },
    async origins(accountId) {
      const [hosts, callbacks, rotations] = await Promise.all([
        NEWEST_OF_HOSTS.all(reader, { accountId, limit: KNOWN_ORIGINS_MAX }),
        CALLBACKS.all(reader, { accountId, limit: CALLBACKS_SCANNED_MAX }),
        ROTATED.all(reader, { accountId, limit: SEEDS_LISTED_MAX }),
      ]);
      const targets = hosts.length === 0 ? [] : await TARGETS.all(reader, { ids: hosts.map(({ id }) => id) });
      const sent = callbacks.filter(({ kind }) => kind === "callback");
      // The newest of a place comes last.
      const newest = new Map(rotations.map(({ place, at }) => [place, at]));
      return {
        calls: usesOf(targets),
        callbacks: usesOf(sent).slice(0, KNOWN_ORIGINS_MAX),
        rotations: [...newest].map(([place, rotatedAt]) => ({ ...originAndUse(place), rotatedAt })),
      };
    },
    callbackOverlap: async (accountId, origin) => (await OVERLAP.get(reader, { accountId, origin }))?.until ?? null,
  };
}
