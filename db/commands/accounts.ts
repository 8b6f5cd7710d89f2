/** Accounts and their keys, and the stop of accounts that nobody has allowed. */
import {
  and,
  type Column,
  desc,
  eq,
  exists,
  gt,
  gte,
  isNotNull,
  isNull,
  ne,
  notExists,
  type SQL,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { AccountStop, AccountStore, ApiKey } from "../../src/core/account-store.ts";
import { firstActionId } from "../../src/core/ids.ts";
import { utcDay } from "../../src/core/key-limits.ts";
import { DAY_MS, KEY_ACTIONS_COUNTED_MAX, KEYS_LISTED_MAX, REPLACED_KEYS_MAX } from "../../src/core/limits.ts";
import type { Pause } from "../../src/core/pause.ts";
import { rejectionWindowStart } from "../../src/core/rejections.ts";
import type { Actor } from "../../src/core/roles.ts";
import type { Reader } from "../sql/dialect.ts";
import { accountLock, firstStartLock, pauseLock, rulesLock, stopLock } from "../sql/locks.ts";
import { all, findRow, get, hasRow, hasValues, prepare, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { accounts, actions, apiKeys, keyDays, members, pauses, people, rejections, welcomeLinks } from "../tables.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, insertList, type Tx, valuesOf } from "./command.ts";
import { setFact } from "./facts.ts";
import { endGrantsOf } from "./grants.ts";
import { isOfManager } from "./makers.ts";
import { findInForce } from "./pauses.ts";

export const createAccount = command<AccountStore["create"]>(
  async (tx, account, keys, extras) => {
    if (extras !== undefined && (await hasRow(tx, accounts))) return false;
    await tx.db.insert(accounts).values(account);
    for (const key of keys) await tx.db.insert(apiKeys).values(key);
    if (extras === undefined) return true;
    for (const entry of extras.audit) await addToAudit(tx, entry);
    await tx.db.insert(welcomeLinks).values(extras.link);
    for (const [name, value] of Object.entries(extras.facts)) await setFact(tx, name, value);
    return true;
  },
  (_account, _keys, extras) => (extras === undefined ? [] : [firstStartLock]),
);

const PAUSES = insertList(pauses);

/** The pause by which an account is stopped. */
const STOP = qb
  .select({ id: pauses.id })
  .from(pauses)
  .where(and(eq(pauses.accountId, accounts.id), eq(pauses.kind, "sign_up"), isNull(pauses.endedAt)));

/** Stops every account that was not allowed, except the first. Returns how many it stopped. */
async function stopAll(tx: Tx, { at, reason }: AccountStop): Promise<number> {
  const first = await readFirst(tx);
  const isOther = and(isNull(accounts.allowedAt), ne(accounts.id, first?.id ?? ""), notExists(STOP));
  const others = await all(tx, qb.select({ id: accounts.id }).from(accounts).where(isOther));
  const stopped = { kind: "sign_up", reason, cancels: false, createdAt: at, createdBy: "system" };
  const added = others.map(({ id }) =>
    valuesOf(PAUSES.columns, { ...stopped, id: `pau_${crypto.randomUUID()}`, accountId: id, subject: id }),
  );
  await tx.lists.insert(PAUSES, added);
  return others.length;
}

export const stopOthers = command<AccountStore["stopOthers"]>(stopAll, () => [stopLock]);

export const addKey = command<AccountStore["addKey"]>(
  async (tx, key, audit, stop, checksMaker = false) => {
    if (checksMaker && !(await isOfManager(tx, key))) return false;
    const first = stop === undefined ? null : await readFirst(tx);
    const isHold = hasHoldIn(key.accountId);
    const isFirstHold = key.accountId === first?.id && key.hold !== "none" && !(await hasRow(tx, apiKeys, isHold));
    const added = await tx.db.insert(apiKeys).values(key).onConflictDoNothing().returning();
    if (added.length === 0) return false;
    await addToAudit(tx, audit);
    if (stop !== undefined) {
      await stopAll(tx, stop);
      if (isFirstHold) await addToAudit(tx, stop.audit);
    }
    if (key.replaces !== null) await inheritRejections(tx, key, key.replaces);
    return true;
  },
  // Claims share `stopLock`, so that none goes on with what it read before the stop.
  ({ accountId }, _audit, stop, checksMaker = false) => [
    ...(stop === undefined ? [] : [stopLock]),
    ...(checksMaker ? [accountLock(accountId)] : []),
  ],
);

/** The condition that a key is of this account and has a hold. */
export function hasHoldIn(accountId: string | undefined): SQL | undefined {
  return and(eq(apiKeys.accountId, accountId ?? ""), ne(apiKeys.hold, "none"));
}

/** Rows per statement. Each value is an argument, and a statement may have 32,766. */
const INHERITED_ROWS = 500;

/** Copies the rejections of a key to the key that replaces it: rotating a key must not reset its counts. */
async function inheritRejections(tx: Tx, { id, accountId, createdAt }: ApiKey, replaced: string): Promise<void> {
  const isOfKey = hasValues(rejections, { accountId, keyId: replaced });
  const isCounted = and(isOfKey, gt(rejections.at, rejectionWindowStart(createdAt)));
  const found = await all(tx, qb.select().from(rejections).where(isCounted).orderBy(rejections.at));
  const rows = found.map((row) => ({ ...row, seq: undefined, keyId: id }));
  while (rows.length > 0) await tx.db.insert(rejections).values(rows.splice(0, INHERITED_ROWS));
}

/** Revokes a key and pauses what it left unfinished, even beyond `PAUSES_MAX`. Returns the key, or null if there is none. */
export const revokeKey = command<AccountStore["revokeKey"]>(
  async (tx, accountId, id, at, { by = null, audit, pause } = {}) => {
    await addIfWritten(tx, revokeAll(tx, hasValues(apiKeys, { id, accountId }), { at, by }), audit);
    const key = await findRow(tx, apiKeys, { id, accountId });
    if (key === null) return null;
    await endGrantsOf(tx, { accountId, makerId: id, at, by: by ?? "anonymous" });
    if (pause !== undefined && (await pauseKey(tx, pause.pause))) await addToAudit(tx, pause.audit);
    return key;
  },
  (accountId, _id, _at, { pause } = {}) => [
    accountLock(accountId),
    rulesLock(accountId),
    ...(pause === undefined ? [] : [pauseLock(accountId)]),
  ],
);

/** Revokes the live ones of these keys and returns them. */
export async function revokeAll(
  { db }: Tx,
  condition: SQL | undefined,
  { at, by }: Readonly<{ at: Date; by: Actor | null }>,
) {
  const isLive = and(condition, isNull(apiKeys.revokedAt));
  return db.update(apiKeys).set({ revokedAt: at, revokedBy: by }).where(isLive).returning();
}

/** Adds a pause of a key. If one is in force, that one cancels from now on if this one does. Returns whether it wrote. */
async function pauseKey(tx: Tx, pause: Pause): Promise<boolean> {
  const found = await findInForce(tx, pause);
  if (found === null) await tx.db.insert(pauses).values(pause);
  else if (pause.cancels && !found.cancels)
    await tx.db.update(pauses).set({ cancels: true }).where(eq(pauses.id, found.id));
  else return false;
  return true;
}

export const keyUsed = command<AccountStore["keyUsed"]>(async ({ db }, id, at) => {
  await db.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, id));
});

export const allowAccount = command<AccountStore["allow"]>(
  async (tx, id, { at, by, audit }) => {
    const allowed = tx.db
      .update(accounts)
      .set({ allowedAt: at, allowedBy: by })
      .where(and(eq(accounts.id, id), isNull(accounts.allowedAt)))
      .returning();
    const isAllowed = await addIfWritten(tx, allowed, audit);
    const stop = await findInForce(tx, { accountId: id, kind: "sign_up", subject: id });
    if (stop !== null) await tx.db.update(pauses).set({ endedAt: at, endedBy: by }).where(eq(pauses.id, stop.id));
    return isAllowed || hasRow(tx, accounts, eq(accounts.id, id));
  },
  () => [stopLock],
);

/** The columns of `Account`. Only lists show whether it was allowed. */
const ACCOUNT = {
  id: accounts.id,
  sealedRootSecret: accounts.sealedRootSecret,
  createdAt: accounts.createdAt,
};

const FIND = prepare({ id: "text" }, (arg) => qb.select(ACCOUNT).from(accounts).where(eq(accounts.id, arg.id)));

const KEY_BY_HASH = prepare({ hash: "text" }, (arg) => qb.select().from(apiKeys).where(eq(apiKeys.hash, arg.hash)));

/** The account that the first start created. Not found by time, since with a clock set back a later one could look older. */
export function readFirst(reader: Reader) {
  return get(reader, qb.select(ACCOUNT).from(accounts).orderBy(reader.dialect.addedOrder).limit(1));
}

/** The email address of the person who joined an account first. */
export function firstEmail(accountId: Column) {
  const first = alias(members, "first_members");
  const emails = qb.select({ email: people.email }).from(first).innerJoin(people, eq(people.id, first.personId));
  const ofAccount = emails.where(eq(first.accountId, accountId)).orderBy(first.joinedAt, first.personId);
  return sql<string | null>`${ofAccount.limit(1)}`.as("first_email");
}

export function createAccountStore({ reader, writer }: StoreAccess): AccountStore {
  const { isOneOf, addedOrder } = reader.dialect;
  /** The order of the index by account. */
  const inOrder = [sql`${apiKeys.revokedAt} nulls first`, apiKeys.createdAt, apiKeys.id];
  return {
    ...writer.methods({ create: createAccount, addKey, stopOthers, keyUsed, revokeKey, allow: allowAccount }),
    findKey: (accountId, id) => findRow(reader, apiKeys, { accountId, id }),
    first: () => readFirst(reader),
    find: (id) => FIND.get(reader, { id }),
    /** Ends even if rows were altered into a cycle. Drizzle's builder can't express the recursion. */
    async replacedBy(keyId) {
      const { id, replaces } = apiKeys;
      const keys = await all(
        reader,
        sql<{ readonly id: string; readonly depth: number }>`with recursive replaced (id, depth) as (
          select ${replaces}, 1 from ${apiKeys} where ${id} = ${keyId} and ${replaces} is not null
          union all
          select ${replaces}, replaced.depth + 1 from replaced join ${apiKeys} on ${id} = replaced.id
          where ${replaces} is not null and replaced.depth < ${REPLACED_KEYS_MAX})
        select id, depth from replaced`,
      );
      return keys.toSorted((one, other) => one.depth - other.depth).map((key) => key.id);
    },
    keyByHash: (hash) => KEY_BY_HASH.get(reader, { hash }),
    async revokedAmong(hashes) {
      const isRevoked = and(isOneOf(apiKeys.hash, hashes), isNotNull(apiKeys.revokedAt));
      const revoked = await all(reader, qb.select({ hash: apiKeys.hash }).from(apiKeys).where(isRevoked));
      return revoked.map(({ hash }) => hash);
    },
    async keyUse(accountId, now) {
      const day = utcDay(now);
      // Repeats the condition of the partial index by key.
      const isOfKey = sql`${actions.accountId} = ${apiKeys.accountId} and ${actions.keyId} = ${apiKeys.id}
        and ${actions.keyId} <> ''`;
      const newest = qb.select({ id: actions.id }).from(actions).where(isOfKey).orderBy(desc(actions.id)).limit(1);
      const isToday = and(eq(keyDays.keyId, apiKeys.id), eq(keyDays.day, day));
      const counted = qb.select({ created: keyDays.created }).from(keyDays).where(isToday);
      const since = (from: Date) => {
        const isRecent = and(isOfKey, gte(actions.id, firstActionId(from)));
        const rows = qb.select({ id: actions.id }).from(actions).where(isRecent);
        return qb.$count(rows.limit(KEY_ACTIONS_COUNTED_MAX).as("counted"));
      };
      const rows = await all(
        reader,
        qb
          .select({
            id: apiKeys.id,
            lastActionId: sql<string | null>`${newest}`.as("last_action_id"),
            actionsToday: sql<number>`case when ${apiKeys.dailyActions} is null then ${since(new Date(day * DAY_MS))}
              else coalesce(${counted}, 0) end`.as("actions_today"),
            actionsLastDay: sql<number>`${since(new Date(now.getTime() - DAY_MS))}`.as("actions_last_day"),
          })
          .from(apiKeys)
          .where(eq(apiKeys.accountId, accountId))
          .orderBy(...inOrder)
          .limit(KEYS_LISTED_MAX),
      );
      const ids = rows.flatMap(({ lastActionId }) => lastActionId ?? []);
      const { id, createdAt, method, url, status, responseCode } = actions;
      const last = qb.select({ id, createdAt, method, url, status, responseCode }).from(actions);
      const found = ids.length === 0 ? [] : await all(reader, last.where(isOneOf(id, ids)));
      const calls = new Map(found.map((call) => [call.id, call]));
      return new Map(
        rows.map(({ id: keyId, lastActionId, ...counts }) => [
          keyId,
          { ...counts, lastCall: lastActionId === null ? null : (calls.get(lastActionId) ?? null) },
        ]),
      );
    },
    keys(accountId, limit) {
      const ofAccount = qb.select().from(apiKeys).where(eq(apiKeys.accountId, accountId));
      return all(reader, ofAccount.orderBy(...inOrder).limit(limit));
    },
    hasHold: async () => hasRow(reader, apiKeys, hasHoldIn((await readFirst(reader))?.id)),
    async list(limit) {
      const firstId = (await readFirst(reader))?.id;
      const isStoppedNow = sql<boolean>`${exists(STOP)}`.mapWith(Boolean).as("is_stopped");
      const listed = qb
        .select({
          id: accounts.id,
          email: firstEmail(accounts.id),
          createdAt: accounts.createdAt,
          isStopped: isStoppedNow,
          allowedAt: accounts.allowedAt,
        })
        .from(accounts)
        .orderBy(desc(isStoppedNow), sql`${accounts}.${addedOrder} desc`)
        .limit(limit);
      return (await all(reader, listed)).map((row) => ({ ...row, isFirst: row.id === firstId }));
    },
  };
}
