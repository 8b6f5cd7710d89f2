import { and, desc, eq, getTableName, gt, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { SealedStore, SealedText, SigningSeed, SigningStore, SigningUse } from "../../src/core/account-store.ts";
import type { FactStore } from "../../src/core/store.ts";
import * as commands from "../commands/secrets.ts";
import type { Tables } from "../commands/command.ts";
import type { StoreContext } from "./context.ts";
import { readCalledBackOrigins, readCalledOrigins, readRotations } from "./origins.ts";
import { read } from "./read.ts";
import { tables as sqliteTables } from "../libsql/schema.ts";

/** The newest seed and the one it replaces. */
const SEEDS_KEPT = 2;

const SEEDS = read({ accountId: "text", origin: "text" }, ({ db, tables: { signingSeeds } }, arg) =>
  db
    .select()
    .from(signingSeeds)
    .where(and(eq(signingSeeds.accountId, arg.accountId), eq(signingSeeds.origin, arg.origin)))
    .orderBy(desc(signingSeeds.seq))
    .limit(SEEDS_KEPT),
);

const OVERLAP = read({ accountId: "text", origin: "text" }, ({ db, tables: { callbackOverlaps } }, arg) =>
  db
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
      const found = await Promise.all(places.map((place) => SEEDS.all(reader, { accountId, origin: place })));
      const seeds = found.flat().toSorted((one, other) => other.seq - one.seq);
      return seeds.slice(0, SEEDS_KEPT).map(({ id, origin: place, sealedSeed, rotatedAt }) => {
        return { id, accountId, ...originAndUse(place), sealedSeed, rotatedAt };
      });
    },
    async origins(accountId) {
      const [calls, callbacks, rotations] = await Promise.all([
        readCalledOrigins(reader, accountId),
        readCalledBackOrigins(reader, accountId),
        readRotations(reader, accountId),
      ]);
      const newest = [...rotations].map(([place, rotatedAt]) => ({ ...originAndUse(place), rotatedAt }));
      return { calls, callbacks, rotations: newest };
    },
    callbackOverlap: async (accountId, origin) => (await OVERLAP.get(reader, { accountId, origin }))?.until ?? null,
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

interface SealedColumn {
  readonly id: SQLiteColumn;
  readonly sealed: SQLiteColumn;
}

/** A column with sealed texts. */
function sealedColumn(of: (tables: Tables) => SealedColumn) {
  const { sealed: named } = of(sqliteTables);
  return {
    table: getTableName(named.table),
    column: named.name,
    find: read({ after: "text", prefix: "text", limit: "number" }, ({ db, tables }, arg) => {
      const { id, sealed } = of(tables);
      const isOther = sql`${sealed} is not null and substr(${sealed}, 1, length(${arg.prefix})) <> ${arg.prefix}`;
      return db
        .select({ row: sql<string>`${id}`.as("row"), sealed: sql<string>`${sealed}`.as("sealed") })
        .from(sealed.table)
        .where(and(gt(id, arg.after), isOther))
        .orderBy(id)
        .limit(arg.limit);
    }),
  };
}

/** All columns with sealed texts. A test finds missing ones. */
const SEALED = [
  sealedColumn(({ accounts: { id, sealedRootSecret: sealed } }) => ({ id, sealed })),
  sealedColumn(({ signingSeeds: { id, sealedSeed: sealed } }) => ({ id, sealed })),
  sealedColumn(({ actions: { id, sealedHeaders: sealed } }) => ({ id, sealed })),
  sealedColumn(({ channels: { id, sealedConfig: sealed } }) => ({ id, sealed })),
] as const;

/** All sealed texts, for a change of the master key. */
export function createSealedStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): SealedStore {
  return {
    async find(keyId, after, limit) {
      const found: SealedText[] = [];
      const from = after === null ? 0 : SEALED.indexOf(columnOf(after));
      for (const [at, { table, column, find }] of SEALED.slice(from).entries()) {
        const values = { after: after !== null && at === 0 ? after.row : "", prefix: `${keyId}.` };
        const rows = await find.all(reader, { ...values, limit: limit - found.length });
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

const READ_FACT = read({ name: "text" }, ({ db, tables: { facts } }, arg) =>
  db.select().from(facts).where(eq(facts.name, arg.name)),
);

export function createFactStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): FactStore {
  return {
    read: async (name) => (await READ_FACT.get(reader, { name }))?.value ?? null,
    write: (name, value) => writer.run(commands.writeFacts, { [name]: value }),
    writeAll: (values) => writer.run(commands.writeFacts, values),
  };
}
