import { and, desc, eq, getTableName, gt, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SealedStore, SealedText, SigningSeed, SigningStore, SigningUse } from "../../src/core/account-store.ts";
import type { FactStore } from "../../src/core/store.ts";
import * as commands from "../commands/secrets.ts";
import type { StoreContext } from "./context.ts";
import { readCalledBackOrigins, readCalledOrigins, readRotations } from "./origins.ts";
import { type Args, prepare, query } from "./query.ts";
import { accounts, actions, callbackOverlaps, channels, facts, signingSeeds } from "../libsql/schema.ts";

/** The newest seed and the one it replaces. */
const SEEDS_KEPT = 2;

const SEEDS = prepare((arg: Args<"accountId" | "origin">) =>
  query
    .select()
    .from(signingSeeds)
    .where(and(eq(signingSeeds.accountId, arg.accountId), eq(signingSeeds.origin, arg.origin)))
    .orderBy(desc(signingSeeds.seq))
    .limit(SEEDS_KEPT),
);

const OVERLAP = prepare((arg: Args<"accountId" | "origin">) =>
  query
    .select({ until: callbackOverlaps.until })
    .from(callbackOverlaps)
    .where(and(eq(callbackOverlaps.accountId, arg.accountId), eq(callbackOverlaps.origin, arg.origin))),
);

/** Seeds of signing secrets. A rotation is one commit. */
export function createSigningStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): SigningStore {
  return {
    rotate: ({ use, ...seed }, audit) =>
      writer.run(commands.rotate, { seed: { ...seed, origin: placeOf(seed.origin, use) }, audit }),
    async seeds(accountId, origin, use) {
      const places = [placeOf(origin, use), EVERY_ORIGIN[use], EVERYTHING];
      const found = await Promise.all(places.map((place) => SEEDS.read(reader, { accountId, origin: place })));
      const seeds = found.flat().toSorted((one, other) => other.seq - one.seq);
      return seeds.slice(0, SEEDS_KEPT).map(({ id, origin: place, sealedSeed, rotatedAt }) => {
        return { id, accountId, ...originAndUse(place), sealedSeed, rotatedAt };
      });
    },
    async origins(accountId) {
      const [calls, callbacks, rotations] = await Promise.all([
        readCalledOrigins({ sql: reader }, accountId),
        readCalledBackOrigins({ sql: reader }, accountId),
        readRotations({ sql: reader }, accountId),
      ]);
      const newest = [...rotations].map(([place, rotatedAt]) => ({ ...originAndUse(place), rotatedAt }));
      return { calls, callbacks, rotations: newest };
    },
    callbackOverlap: async (accountId, origin) => (await OVERLAP.read(reader, { accountId, origin }))[0]?.until ?? null,
  };
}

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

/** A column with sealed texts. */
function sealedColumn(table: SQLiteTable, id: SQLiteColumn, column: SQLiteColumn) {
  return {
    table: getTableName(table),
    column: column.name,
    find: prepare((arg: Args<"after" | "prefix" | "limit">) => {
      const isOther = sql`${column} is not null and substr(${column}, 1, length(${arg.prefix})) <> ${arg.prefix}`;
      const sealed = query.select({ row: sql<string>`${id}`.as("row"), sealed: sql<string>`${column}`.as("sealed") });
      return sealed
        .from(table)
        .where(and(gt(id, arg.after), isOther))
        .orderBy(id)
        .limit(arg.limit);
    }),
  };
}

/** All columns with sealed texts. A test finds missing ones. */
const SEALED = [
  sealedColumn(accounts, accounts.id, accounts.sealedRootSecret),
  sealedColumn(signingSeeds, signingSeeds.id, signingSeeds.sealedSeed),
  sealedColumn(actions, actions.id, actions.sealedHeaders),
  sealedColumn(channels, channels.id, channels.sealedConfig),
] as const;

/** All sealed texts, for a change of the master key. */
export function createSealedStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): SealedStore {
  return {
    async find(keyId, after, limit) {
      const found: SealedText[] = [];
      const from = after === null ? 0 : SEALED.indexOf(columnOf(after));
      for (const [at, { table, column, find }] of SEALED.slice(from).entries()) {
        const values = { after: after !== null && at === 0 ? after.row : "", prefix: `${keyId}.` };
        const rows = await find.read(reader, { ...values, limit: limit - found.length });
        for (const { row, sealed } of rows) found.push({ place: { table, row, column }, sealed });
        if (found.length >= limit) break;
      }
      return found;
    },
    replace: (replacements) => writer.run(commands.reseal, { replacements }),
  };
}

function columnOf({ table, column }: SealedText["place"]): (typeof SEALED)[number] {
  const known = SEALED.find((sealed) => sealed.table === table && sealed.column === column);
  if (known === undefined) throw new Error(`${table}.${column} holds no sealed texts.`);
  return known;
}

const READ_FACT = prepare((arg: Args<"name">) => query.select().from(facts).where(eq(facts.name, arg.name)));

export function createFactStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): FactStore {
  return {
    read: async (name) => (await READ_FACT.read(reader, { name }))[0]?.value ?? null,
    write: (name, value) => writer.run(commands.writeFacts, { [name]: value }),
    writeAll: (values) => writer.run(commands.writeFacts, values),
  };
}
