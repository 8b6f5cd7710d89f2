import { and, eq, inArray, isNull, lte, ne, sql } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import type { Credential, CredentialStore, SealedCredential } from "../../src/core/credential.ts";
import {
  CREDENTIAL_ALERTS_KEPT_MS,
  CREDENTIAL_ECHOES_MAX,
  CREDENTIAL_KEYS_MAX,
  CREDENTIALS_MAX,
} from "../../src/core/limits.ts";
import type { Connection } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { accountLock } from "../sql/locks.ts";
import { all, get } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, countRows, deleteSome, hasRow, type Tables, type Tx } from "./command.ts";
import { addNotifications } from "./outbox.ts";
import { CREDENTIALS_VERSION, readFact, renewVersion } from "./facts.ts";

type Row = Tables["credentials"]["$inferSelect"];

/** See `CredentialStore.add`. Whoever calls it holds `accountLock`. */
export async function addCredential(tx: Tx, row: Row, audit: AuditEntry) {
  const { credentials } = tx.tables;
  const { accountId, name } = row;
  if (await hasRow(tx, credentials, hasValues(credentials, { accountId, name }))) return "taken";
  if ((await countRows(tx, credentials, eq(credentials.accountId, accountId))) >= CREDENTIALS_MAX) return "full";
  await tx.db.insert(credentials).values(row);
  await addToAudit(tx, audit);
  await renewVersion(tx, CREDENTIALS_VERSION);
  return "written";
}

export const add = command(addCredential, ({ accountId }) => [accountLock(accountId)]);

export const change = command<CredentialStore["change"]>(
  async (tx, { accountId, id, revision }, { secret, ...patch }, audit) => {
    const { credentials } = tx.tables;
    const changed = await tx.db
      .update(credentials)
      .set({ ...patch, ...secret, revision: revision + 1 })
      .where(hasValues(credentials, { accountId, id, revision }))
      .returning({ id: credentials.id });
    if (changed.length > 0) await renewVersion(tx, CREDENTIALS_VERSION);
    return addIfWritten(tx, changed, audit);
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const remove = command<CredentialStore["remove"]>(async (tx, accountId, id, audit) => {
  const { credentials } = tx.tables;
  const removed = await tx.db
    .delete(credentials)
    .where(hasValues(credentials, { accountId, id }))
    .returning({ id: credentials.id });
  if (removed.length > 0) await renewVersion(tx, CREDENTIALS_VERSION);
  return addIfWritten(tx, removed, audit);
});

/** Keys that were revoked leave a list that is full. */
export const allow = command<CredentialStore["allow"]>(
  async (tx, accountId, keyId, ids) => {
    const { credentials } = tx.tables;
    if (ids.length === 0) return;
    const isOne = and(eq(credentials.accountId, accountId), inArray(credentials.id, [...ids]));
    const { id, keys, revision } = credentials;
    for (const row of await tx.db.select({ id, keys, revision }).from(credentials).where(isOne)) {
      if (row.keys.includes(keyId)) continue;
      const kept = row.keys.length < CREDENTIAL_KEYS_MAX ? row.keys : await liveOf(tx, row.keys);
      await tx.db
        .update(credentials)
        .set({ keys: [...kept, keyId], revision: row.revision + 1 })
        .where(eq(credentials.id, row.id));
    }
    await renewVersion(tx, CREDENTIALS_VERSION);
  },
  (accountId) => [accountLock(accountId)],
);

async function liveOf({ db, tables: { apiKeys } }: Tx, keys: readonly string[]): Promise<readonly string[]> {
  const isLive = and(inArray(apiKeys.id, [...keys]), isNull(apiKeys.revokedAt));
  const live = new Set((await db.select({ id: apiKeys.id }).from(apiKeys).where(isLive)).map(({ id }) => id));
  return keys.filter((id) => live.has(id));
}

export const use = command<CredentialStore["use"]>(async (tx, { accountId, id, revision }, at, audit) => {
  const { credentials } = tx.tables;
  const used = await tx.db
    .update(credentials)
    .set({ lastUsedAt: at })
    .where(hasValues(credentials, { accountId, id, revision }))
    .returning({ id: credentials.id });
  return addIfWritten(tx, used, audit);
});

/** The first row is the mark that it was told. */
export const tell = command<CredentialStore["tell"]>(
  async (tx, { accountId, id, expiresAt }, rows, now) => {
    const { credentials, outbox } = tx.tables;
    const [first] = rows;
    const isIt = hasValues(credentials, { accountId, id, enabled: true, expiresAt });
    if (first === undefined || !(await hasRow(tx, credentials, isIt))) return false;
    const isTold = hasValues(outbox, { actionId: id, revision: 1, event: first.message.event });
    if (await hasRow(tx, outbox, isTold)) return false;
    await addNotifications(tx, { actionId: id, accountId }, rows, now);
    return true;
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const pruneAlerts = command<CredentialStore["pruneAlerts"]>(async (tx, now) => {
  const { outbox } = tx.tables;
  const isAlert = sql`${outbox.actionId} >= 'crd_' and ${outbox.actionId} < 'crd\`'`;
  const isOld = lte(outbox.createdAt, new Date(now.getTime() - CREDENTIAL_ALERTS_KEPT_MS));
  return (await deleteSome(tx, outbox.id, and(isAlert, isOld, ne(outbox.status, "active")))) > 0;
});

export const noteEcho = command<CredentialStore["noteEcho"]>(
  async (tx, accountId, id, host, audit) => {
    const { credentials } = tx.tables;
    const isIt = hasValues(credentials, { accountId, id });
    const [row] = await tx.db.select({ echoes: credentials.echoes }).from(credentials).where(isIt);
    if (row === undefined || row.echoes.includes(host) || row.echoes.length >= CREDENTIAL_ECHOES_MAX) return false;
    await tx.db
      .update(credentials)
      .set({ echoes: [...row.echoes, host] })
      .where(isIt);
    await addToAudit(tx, audit);
    return true;
  },
  (accountId) => [accountLock(accountId)],
);

/** Credentials that agents name and never see. Only `find` reads what is sealed. */
export function createCredentialStore({ reader, writer }: Connection): CredentialStore {
  const { db, tables } = reader.dialect;
  const { credentials } = tables;
  const { accountId: owner, name } = credentials;
  return {
    ...writer.methods({ add, change, remove, allow, use, tell, pruneAlerts, noteEcho }),
    version: async () => (await readFact(reader, CREDENTIALS_VERSION)) ?? "",
    async list(accountId) {
      const isOfAccount = accountId === null ? undefined : eq(owner, accountId);
      const rows = await all(reader, db.select().from(credentials).where(isOfAccount).orderBy(owner, name));
      return rows.map(({ sealedSecret: _sealed, ...credential }): Credential => credential);
    },
    find: (accountId, id): Promise<SealedCredential | null> =>
      get(reader, db.select().from(credentials).where(hasValues(credentials, { accountId, id }))),
  };
}
