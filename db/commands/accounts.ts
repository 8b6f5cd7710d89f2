import { and, eq, gt, isNull, ne, sql } from "drizzle-orm";
import type { Account, AccountStop, ApiKey, FirstAccountExtras, HoldStop } from "../../src/core/account-store.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import type { Pause, PauseEnd } from "../../src/core/pause.ts";
import { rejectionWindowStart } from "../../src/core/rejection-count.ts";
import type { Actor } from "../../src/core/roles.ts";
import { hasValues } from "../sql/dialect.ts";
import { firstStartLock, holdLock, pauseLock, stopLock } from "../sql/locks.ts";
import { read, type Reader } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, hasRow, type Tables, type Tx } from "./command.ts";
import { setFact } from "./facts.ts";
import { endGrantsOf } from "./grants.ts";
import { findInForce } from "./in-force.ts";

/** Accounts and keys. */

interface CreateArgs {
  readonly account: Account;
  readonly keys: readonly ApiKey[];
  /** Of the first account only. */
  readonly extras: FirstAccountExtras | undefined;
}

/** Adds an account with its keys. False: it has extras, and there is an account already: nodes may start at the same time. */
export const create = command(
  async (tx, { account, keys, extras }: CreateArgs) => {
    const { accounts, apiKeys, welcomeLinks } = tx.tables;
    if (extras !== undefined && (await hasRow(tx, accounts))) return false;
    await tx.db.insert(accounts).values(account);
    for (const key of keys) await tx.db.insert(apiKeys).values(key);
    if (extras === undefined) return true;
    for (const entry of extras.audit) await addToAudit(tx, entry);
    await tx.db.insert(welcomeLinks).values(extras.link);
    for (const [name, value] of Object.entries(extras.facts)) await setFact(tx, name, value);
    return true;
  },
  ({ extras }) => (extras === undefined ? [] : [firstStartLock]),
);

interface StopArgs {
  /** The account that is never stopped; null: there is none yet. */
  readonly firstAccountId: string | null;
  /** What the ids of the pauses begin with: a new random value. */
  readonly idPrefix: string;
}

/** Stops every account that was not allowed, except the first; returns how many were not stopped before. */
async function stopAll(tx: Tx, { at, reason }: AccountStop, { firstAccountId, idPrefix }: StopArgs): Promise<number> {
  const { accounts, pauses } = tx.tables;
  const others = tx.db
    .select({
      id: sql<string>`${idPrefix} || substr(${accounts.id}, 5)`.as("id"),
      accountId: sql<string>`${accounts.id}`.as("account_id"),
      kind: sql<"sign_up">`'sign_up'`.as("kind"),
      subject: sql<string>`${accounts.id}`.as("subject"),
      reason: sql<string>`${reason}`.as("reason"),
      cancels: sql<boolean>`0`.as("cancels"),
      createdAt: sql<Date>`${at.getTime()}`.as("created_at"),
      createdBy: sql<"system">`'system'`.as("created_by"),
      endedAt: sql<null>`null`.as("ended_at"),
      endedBy: sql<Actor>`null`.as("ended_by"),
    })
    .from(accounts)
    .where(and(isNull(accounts.allowedAt), ne(accounts.id, firstAccountId ?? "")));
  const stopped = await tx.db.insert(pauses).select(others).onConflictDoNothing().returning({ id: pauses.id });
  return stopped.length;
}

export const stopOthers = command(
  (tx, { stop, ...more }: StopArgs & { readonly stop: AccountStop }) => stopAll(tx, stop, more),
  () => [stopLock],
);

interface AddKeyArgs {
  readonly key: ApiKey;
  readonly audit: AuditEntry | undefined;
  readonly stop: (HoldStop & StopArgs) | undefined;
}

/** Adds a key; with the first hold of the first account, every account that was not allowed is stopped. */
export const addKey = command(
  async (tx, { key, audit, stop }: AddKeyArgs) => {
    const { apiKeys } = tx.tables;
    const isHold = and(eq(apiKeys.accountId, key.accountId), ne(apiKeys.hold, "none"));
    const isFirstHold =
      key.accountId === stop?.firstAccountId && key.hold !== "none" && !(await hasRow(tx, apiKeys, isHold));
    await tx.db.insert(apiKeys).values(key);
    await addToAudit(tx, audit);
    if (stop !== undefined) {
      await stopAll(tx, stop, stop);
      if (isFirstHold) await addToAudit(tx, stop.audit);
    }
    if (key.replaces !== null) await inheritRejections(tx, key, key.replaces);
  },
  // No claim of an account that is stopped may go on by what it saw before.
  ({ stop }) => (stop === undefined ? [] : [stopLock, holdLock]),
);

/** Rows per statement: each value is an argument, and a statement may have 32,766. */
const INHERITED_ROWS = 500;

/** What counts for a key counts for the one that replaces it, or a rotation would end every count. */
async function inheritRejections(tx: Tx, { id, accountId, createdAt }: ApiKey, replaced: string): Promise<void> {
  const { rejections } = tx.tables;
  const isOfKey = hasValues(rejections, { accountId, keyId: replaced });
  const isCounted = and(isOfKey, gt(rejections.at, rejectionWindowStart(createdAt)));
  const found = await tx.db.select().from(rejections).where(isCounted).orderBy(rejections.at);
  const rows = found.map((row) => ({ ...row, seq: undefined, keyId: id }));
  while (rows.length > 0) await tx.db.insert(rejections).values(rows.splice(0, INHERITED_ROWS));
}

interface RevokeArgs {
  readonly accountId: string;
  readonly id: string;
  readonly at: Date;
  readonly by: Actor | null;
  readonly audit: AuditEntry | undefined;
  readonly pause: { readonly pause: Pause; readonly audit: AuditEntry } | undefined;
}

/** Revokes a key, and pauses what it left unfinished, however many pauses are in force; returns the key, null: no such key. */
export const revokeKey = command(
  async (tx, { accountId, id, at, by, audit, pause }: RevokeArgs) => {
    const { apiKeys } = tx.tables;
    const isKey = hasValues(apiKeys, { id, accountId });
    const revoked = await tx.db
      .update(apiKeys)
      .set({ revokedAt: at, revokedBy: by })
      .where(and(isKey, isNull(apiKeys.revokedAt)))
      .returning({ id: apiKeys.id });
    await addIfWritten(tx, revoked, audit);
    const [key] = await tx.db.select().from(apiKeys).where(isKey);
    if (key === undefined) return null;
    await endGrantsOf(tx, { accountId, makerId: id, at, by: by ?? "anonymous" });
    if (pause !== undefined && (await pauseKey(tx, pause.pause))) await addToAudit(tx, pause.audit);
    return key;
  },
  ({ accountId, pause }) => (pause === undefined ? [] : [pauseLock(accountId)]),
);

/** A pause that is in force already cancels from now on if this one does. Returns whether anything was written. */
async function pauseKey(tx: Tx, pause: Pause): Promise<boolean> {
  const { pauses } = tx.tables;
  const found = await findInForce(tx, pause);
  if (found === undefined) await tx.db.insert(pauses).values(pause);
  else if (pause.cancels && !found.cancels)
    await tx.db.update(pauses).set({ cancels: true }).where(eq(pauses.id, found.id));
  else return false;
  return true;
}

export const useKey = command(async ({ db, tables: { apiKeys } }, { id, at }: Readonly<{ id: string; at: Date }>) => {
  await db.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, id));
});

/** Allows an account and ends its stop; returns whether there is such an account. */
export const allow = command(async (tx, { id, at, by, audit }: PauseEnd & { readonly id: string }) => {
  const { accounts, pauses } = tx.tables;
  const allowed = await tx.db
    .update(accounts)
    .set({ allowedAt: at, allowedBy: by })
    .where(and(eq(accounts.id, id), isNull(accounts.allowedAt)))
    .returning({ id: accounts.id });
  await addIfWritten(tx, allowed, audit);
  const stop = await findInForce(tx, { accountId: id, kind: "sign_up", subject: id });
  if (stop !== undefined) await tx.db.update(pauses).set({ endedAt: at, endedBy: by }).where(eq(pauses.id, stop.id));
  return allowed.length > 0 || hasRow(tx, accounts, eq(accounts.id, id));
});

/** The columns of `Account`; only lists show whether it was allowed. */
export const accountColumns = ({ accounts: { id, sealedRootSecret, createdAt } }: Tables) => {
  return { id, sealedRootSecret, createdAt };
};

/** Not by time: after a clock was set back, a later sign-up could look older. */
export const FIRST = read({}, ({ db, tables, addedOrder }) =>
  db.select(accountColumns(tables)).from(tables.accounts).orderBy(addedOrder).limit(1),
);

/** The id of the account that the first start created. No account is ever deleted, so it stays the same. */
export async function readFirstId(reader: Reader): Promise<string | null> {
  return (await FIRST.get(reader, {}))?.id ?? null;
}
