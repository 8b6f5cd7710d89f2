import { inheritRejections } from "./rejections.ts";
import { and, asc, eq, isNull, sql as drizzleSql, type SQL } from "drizzle-orm";
import type {
  AccountStore,
  FirstAccountExtras,
  Revocation,
  SigningSeed,
  SigningStore,
  SealedStore,
  SealedText,
} from "../account-store.ts";
import { auditChange, auditRow } from "./audit.ts";
import { drizzleOver, statementOf, type Guard, type Sql, type Statement, type Row } from "./sql.ts";
import { addPause } from "./pauses.ts";
import { offer, createSignedUpStore, findReplaced, isFirstHold, stopOthers } from "./people.ts";
import { accounts, apiKeys } from "./schema.ts";
import type { Writer } from "./writer.ts";
import type { SigningUse } from "../../src/crypto/secrets.ts";
import type { StoreContext } from "./context.ts";
import type { LinkStore } from "../store.ts";

/** Accounts and keys, by drizzle, since they are rarely used; writes go through the writer. */
export function createAccountStore(sql: Sql, writer: Writer): AccountStore {
  const database = drizzleOver(sql);
  const keyWhere = async (condition: SQL | undefined) => {
    const [key] = await database.select().from(apiKeys).where(condition).limit(1);
    return key ?? null;
  };
  return {
    findKey: (accountId, keyId) => keyWhere(keyOf(accountId, keyId)),
    async first() {
      // By rowid: after a clock was set back, a later sign-up could look older.
      const inOrder = database
        .select(ACCOUNT)
        .from(accounts)
        .orderBy(drizzleSql`rowid`);
      const [account] = await inOrder.limit(1);
      return account ?? null;
    },
    async find(accountId) {
      const [account] = await database.select(ACCOUNT).from(accounts).where(eq(accounts.id, accountId)).limit(1);
      return account ?? null;
    },
    async create(account, keys, extras) {
      const inserts = keys.map((key) => statementOf(database.insert(apiKeys).values(key)));
      const made = statementOf(database.insert(accounts).values(account));
      await writer.write([made, ...inserts, ...(extras === undefined ? [] : extraRows(extras))]);
    },
    async addKey(key, audit, stop) {
      const stopping = stop === undefined ? [] : [stopOthers(stop), auditRow(stop.audit, isFirstHold(key.id))];
      const insert = statementOf(database.insert(apiKeys).values(key));
      const inherited = key.replaces === null ? [] : [inheritRejections(key, key.replaces)];
      await writer.write([insert, ...auditChange(audit), ...stopping, ...inherited]);
    },
    replacedBy: (keyId) => findReplaced(sql, keyId),
    ...createSignedUpStore(sql, writer),
    keyByHash: (hash) => keyWhere(eq(apiKeys.hash, hash)),
    async keyUsed(keyId, at) {
      await writer.write([statementOf(database.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, keyId)))]);
    },
    async keys(accountId, limit) {
      const ofAccount = database.select().from(apiKeys).where(eq(apiKeys.accountId, accountId));
      return ofAccount.orderBy(asc(apiKeys.revokedAt), asc(apiKeys.createdAt), asc(apiKeys.id)).limit(limit);
    },
    async revokeKey(accountId, keyId, at, { audit, pause } = {}) {
      const revoke = database
        .update(apiKeys)
        .set({ revokedAt: at })
        .where(and(keyOf(accountId, keyId), isNull(apiKeys.revokedAt)));
      const paused = pause === undefined ? [] : pauseOf(pause, isKeyOf(keyId, accountId));
      await writer.write([statementOf(revoke), ...auditChange(audit), ...paused]);
      return keyWhere(keyOf(accountId, keyId));
    },
  };
}

function keyOf(accountId: string, keyId: string) {
  return and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId));
}

/** The columns of `Account`; only lists show whether it was allowed. */
const ACCOUNT = { id: accounts.id, sealedRootSecret: accounts.sealedRootSecret, createdAt: accounts.createdAt };

function pauseOf({ pause, audit }: NonNullable<Revocation["pause"]>, guard: Guard): readonly Statement[] {
  return [addPause(pause, guard), ...auditChange(audit)];
}

function isKeyOf(keyId: string, accountId: string): Guard {
  return { sql: "EXISTS (SELECT 1 FROM api_keys WHERE id = ? AND account_id = ?)", args: [keyId, accountId] };
}

/** After the keys: an audit entry is written only where the statement before it wrote a row. */
function extraRows({ audit, link, facts }: FirstAccountExtras): readonly Statement[] {
  return [...audit.flatMap(auditChange), ...offer(link), ...Object.entries(facts).map(putFact)];
}

/** As `createFactStore` writes them. */
function putFact([name, value]: readonly [string, string]): Statement {
  return { sql: "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", args: [name, value] };
}

/** The newest seed and the one it replaces. */
const SEEDS_KEPT = 2;

/** `origin` of seeds for all origins: of calls and callbacks, or of one of them. */
const EVERYTHING = "";

const EVERY_ORIGIN = { calls: "calls", callbacks: "callbacks" } as const satisfies Record<SigningUse, string>;

/** Prefix of an origin for callbacks. An origin for calls has none. */
const CALLBACKS_TO = "callbacks ";

const ADD = `INSERT INTO signing_seeds (id, account_id, origin, sealed_seed, rotated_at) VALUES (?, ?, ?, ?, ?)`;

const FORGET = `DELETE FROM signing_seeds WHERE account_id = ? AND origin = ? AND seq <=
  (SELECT seq FROM signing_seeds WHERE account_id = ? AND origin = ? ORDER BY seq DESC LIMIT 1 OFFSET ${SEEDS_KEPT})`;

const OF_ORIGIN = `SELECT * FROM (SELECT * FROM signing_seeds WHERE account_id = ? AND origin = ? ORDER BY seq DESC LIMIT ${SEEDS_KEPT})`;

const NEWEST = `${OF_ORIGIN} UNION ALL ${OF_ORIGIN} UNION ALL ${OF_ORIGIN}`;

const OVERLAP = "SELECT until FROM callback_overlaps WHERE account_id = ? AND origin = ?";

/** Seeds of signing secrets. A rotation is one commit. */
export function createSigningStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): SigningStore {
  return {
    async rotate({ id, accountId, origin, use, sealedSeed, rotatedAt }, audit) {
      const place = [accountId, placeOf(origin, use)];
      await writer.write([
        { sql: ADD, args: [id, ...place, sealedSeed, rotatedAt.getTime()] },
        ...auditChange(audit),
        { sql: FORGET, args: [...place, ...place] },
      ]);
    },
    async seeds(accountId, origin, use) {
      const places = [placeOf(origin, use), EVERY_ORIGIN[use], EVERYTHING];
      const rows = await sql.read({ sql: NEWEST, args: places.flatMap((place) => [accountId, place]) });
      const newestFirst = rows.toSorted((one, other) => Number(other["seq"]) - Number(one["seq"]));
      return newestFirst.slice(0, SEEDS_KEPT).map(seedOf);
    },
    async callbackOverlap(accountId, origin) {
      const [row] = await sql.read({ sql: OVERLAP, args: [accountId, origin] });
      return row === undefined ? null : new Date(Number(row["until"]));
    },
  };
}

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

function seedOf(row: Row): SigningSeed {
  return {
    id: String(row["id"]),
    accountId: String(row["account_id"]),
    ...originAndUse(String(row["origin"])),
    sealedSeed: String(row["sealed_seed"]),
    rotatedAt: new Date(Number(row["rotated_at"])),
  };
}

/** All columns with sealed texts; their tables have an `id`. A test finds missing ones. */
const SEALED = [
  { table: "accounts", column: "sealed_root_secret" },
  { table: "signing_seeds", column: "sealed_seed" },
  { table: "actions", column: "sealed_headers" },
] as const;

/** All sealed texts, for a change of the master key. */
export function createSealedStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): SealedStore {
  return {
    async find(keyId, after, limit) {
      const found: SealedText[] = [];
      for (const { table, column } of SEALED.slice(Math.max(0, placeAt(after)))) {
        const isResumed = after !== null && after.table === table && after.column === column;
        const rows = await sql.read({
          sql: `SELECT id, ${column} AS sealed FROM ${table}
            WHERE id > ? AND ${column} IS NOT NULL AND substr(${column}, 1, ?) <> ? ORDER BY id LIMIT ?`,
          args: [isResumed ? after.row : "", keyId.length + 1, `${keyId}.`, limit - found.length],
        });
        for (const { id, sealed } of rows)
          found.push({ place: { table, row: String(id), column }, sealed: String(sealed) });
        if (found.length >= limit) break;
      }
      return found;
    },
    async replace(replacements) {
      const statements = replacements.map(({ place, sealed, by }) => {
        const { table, column } = columnOf(place);
        // Guarded by the old text, so that a later change is not overwritten.
        const text = `UPDATE ${table} SET ${column} = ? WHERE id = ? AND ${column} = ?`;
        return { sql: text, args: [by, place.row, sealed] };
      });
      await writer.write(statements);
    },
  };
}

function placeAt(place: SealedText["place"] | null): number {
  return SEALED.findIndex(({ table, column }) => table === place?.table && column === place.column);
}

/** From the list above: names of tables and columns never come from an argument. */
function columnOf(place: SealedText["place"]): (typeof SEALED)[number] {
  const known = SEALED[placeAt(place)];
  if (known === undefined) throw new Error(`${place.table}.${place.column} holds no sealed texts.`);
  return known;
}

/** A link that is stored again for a repeated mail keeps its expiry; its hash changes with the master key. */
const KEEP = `INSERT INTO approval_links (action_id, run, decision, hash, expires_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (action_id, run, decision) DO UPDATE SET hash = excluded.hash RETURNING expires_at`;

const FIND = "SELECT hash, expires_at FROM approval_links WHERE action_id = ? AND run = ? AND decision = ?";

export function createLinkStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): LinkStore {
  return {
    async keep(links, expiresAt) {
      const done = await writer.write(
        links.map(({ actionId, run, decision, hash }) => ({
          sql: KEEP,
          args: [actionId, run, decision, hash, expiresAt.getTime()],
        })),
      );
      const kept = done.flatMap(({ rows }) => rows).map((row) => Number(row["expires_at"]));
      return new Date(Math.min(...kept));
    },
    async forgetAll() {
      await writer.write([{ sql: "DELETE FROM approval_links", args: [] }]);
    },
    async find(link) {
      const { actionId, run, decision } = link;
      const [row] = await sql.read({ sql: FIND, args: [actionId, run, decision] });
      if (row === undefined) return null;
      return { actionId, run, decision, hash: String(row["hash"]), expiresAt: new Date(Number(row["expires_at"])) };
    },
  };
}
