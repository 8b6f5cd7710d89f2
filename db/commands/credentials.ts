/** Credentials that agents name and never see, and agents' requests for them. */
import {
  and,
  desc,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNull,
  lt,
  lte,
  notExists,
  or,
  sql,
  type SQL,
} from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import {
  type Credential,
  type CredentialRequest,
  type CredentialRequestStatus,
  type CredentialRequestStore,
  type CredentialStore,
  type DeclinedRequest,
  type SealedCredential,
  statusOfRequest,
} from "../../src/core/credential.ts";
import {
  CREDENTIAL_ALERTS_KEPT_MS,
  CREDENTIAL_ECHOES_MAX,
  CREDENTIAL_KEYS_MAX,
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
  CREDENTIALS_MAX,
  DAY_MS,
} from "../../src/core/limits.ts";
import { accountLock } from "../sql/locks.ts";
import { AFTER_ALL_IDS, all, countRows, findRow, get, hasRow, hasValues, qb } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, deleteSome, type Tx } from "./command.ts";
import { addNotifications, pruneNotifications } from "./outbox.ts";
import { CREDENTIALS_VERSION, readVersion, renewVersion } from "./facts.ts";
import { apiKeys, credentialRequests as requests, credentials, outbox } from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

type Row = typeof credentials.$inferSelect;

/** See `CredentialStore.add`. Callers hold `accountLock`. */
async function insertCredential(tx: Tx, row: Row, audit: AuditEntry) {
  const { accountId, name } = row;
  if (await hasRow(tx, credentials, hasValues(credentials, { accountId, name }))) return "taken";
  if ((await countRows(tx, credentials, eq(credentials.accountId, accountId))) >= CREDENTIALS_MAX) return "full";
  await tx.db.insert(credentials).values(row);
  await addToAudit(tx, audit, CREDENTIALS_VERSION);
  return "written";
}

export const addCredential = command(insertCredential, ({ accountId }) => [accountLock(accountId)]);

export const changeCredential = command<CredentialStore["change"]>(
  async (tx, { accountId, id, revision }, { secret, ...patch }, audit) => {
    const changed = tx.db
      .update(credentials)
      .set({ ...patch, ...secret, revision: revision + 1 })
      .where(hasValues(credentials, { accountId, id, revision }))
      .returning();
    return addIfWritten(tx, changed, audit, CREDENTIALS_VERSION);
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const removeCredential = command<CredentialStore["remove"]>(async (tx, accountId, id, audit) => {
  const removed = tx.db.delete(credentials).where(hasValues(credentials, { accountId, id })).returning();
  return addIfWritten(tx, removed, audit, CREDENTIALS_VERSION);
});

/** Lets a key use credentials. If a list of keys is full, revoked keys are removed from it. */
export const allowCredentials = command<CredentialStore["allow"]>(
  async (tx, accountId, keyId, ids) => {
    if (ids.length === 0) return;
    const isOne = and(eq(credentials.accountId, accountId), inArray(credentials.id, [...ids]));
    const { id, keys, revision } = credentials;
    for (const row of await all(tx, qb.select({ id, keys, revision }).from(credentials).where(isOne))) {
      if (row.keys.includes(keyId)) continue;
      const kept = row.keys.length < CREDENTIAL_KEYS_MAX ? row.keys : await liveKeys(tx, row.keys);
      await tx.db
        .update(credentials)
        .set({ keys: [...kept, keyId], revision: row.revision + 1 })
        .where(eq(credentials.id, row.id));
    }
    await renewVersion(tx, CREDENTIALS_VERSION);
  },
  (accountId) => [accountLock(accountId)],
);

async function liveKeys(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  const isLive = and(inArray(apiKeys.id, [...keys]), isNull(apiKeys.revokedAt));
  const found = await all(tx, qb.select({ id: apiKeys.id }).from(apiKeys).where(isLive));
  const live = new Set(found.map(({ id }) => id));
  return keys.filter((id) => live.has(id));
}

export const use = command<CredentialStore["use"]>(async (tx, { accountId, id, revision }, at, audit) => {
  const used = tx.db
    .update(credentials)
    .set({ lastUsedAt: at })
    .where(hasValues(credentials, { accountId, id, revision }))
    .returning();
  return addIfWritten(tx, used, audit);
});

/** Stores an alert once: later, its first row shows that it was stored. */
export const addAlert = command<CredentialStore["addAlert"]>(
  async (tx, { accountId, id, expiresAt }, rows, now) => {
    const [first] = rows;
    const isIt = hasValues(credentials, { accountId, id, enabled: true, expiresAt });
    if (first === undefined || !(await hasRow(tx, credentials, isIt))) return false;
    const isAlert = hasValues(outbox, { actionId: id, revision: 1, event: first.message.event });
    if (await hasRow(tx, outbox, isAlert)) return false;
    await addNotifications(tx, { actionId: id, accountId }, rows, now);
    return true;
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const pruneAlerts = command<CredentialStore["pruneAlerts"]>((tx, now) =>
  pruneNotifications(tx, "crd_", lte(outbox.createdAt, new Date(now.getTime() - CREDENTIAL_ALERTS_KEPT_MS))),
);

export const noteEcho = command<CredentialStore["noteEcho"]>(
  async (tx, accountId, id, host, audit) => {
    const row = await findRow(tx, credentials, { accountId, id });
    if (row === null || row.echoes.includes(host) || row.echoes.length >= CREDENTIAL_ECHOES_MAX) return false;
    await tx.db
      .update(credentials)
      .set({ echoes: [...row.echoes, host] })
      .where(eq(credentials.id, id));
    await addToAudit(tx, audit);
    return true;
  },
  (accountId) => [accountLock(accountId)],
);

/** Only `find` reads the sealed secret. */
export function createCredentialStore({ reader, writer }: StoreAccess): CredentialStore {
  const { accountId: owner, name } = credentials;
  return {
    ...writer.methods({
      add: addCredential,
      change: changeCredential,
      remove: removeCredential,
      allow: allowCredentials,
      use,
      addAlert,
      pruneAlerts,
      noteEcho,
    }),
    version: () => readVersion(reader, CREDENTIALS_VERSION),
    async list(accountId) {
      const isOfAccount = accountId === null ? undefined : eq(owner, accountId);
      const rows = await all(reader, qb.select().from(credentials).where(isOfAccount).orderBy(owner, name));
      return rows.map(({ sealedSecret: _sealed, ...credential }): Credential => credential);
    },
    find: (accountId, id): Promise<SealedCredential | null> => findRow(reader, credentials, { accountId, id }),
  };
}

export const ask = command<CredentialRequestStore["ask"]>(
  async (tx, row, declinedSince, notices, audit) => {
    const { accountId, keyId, createdAt: now } = row;
    const dayAgo = new Date(now.getTime() - DAY_MS);
    const isRecent = or(
      isNull(requests.decision),
      gt(requests.decidedAt, declinedSince),
      gt(requests.createdAt, dayAgo),
    );
    const isOwn = and(hasValues(requests, { keyId, accountId }), isRecent);
    const own = await all(tx, qb.select().from(requests).where(isOwn).orderBy(desc(requests.id)));
    const open = own.filter(({ decision, expiresAt }) => decision === null && expiresAt > now);
    const isDeclined = (one: CredentialRequest) =>
      one.decision === "declined" && (one.decidedAt ?? one.createdAt) > declinedSince && asksSame(one, row);
    const matched = open.find(({ host }) => host === row.host) ?? own.find(isDeclined);
    if (matched !== undefined) return { kind: "matched", id: matched.id };
    if (open.length >= CREDENTIAL_REQUESTS_PER_KEY_MAX) return { kind: "full", of: "key" };
    const today = own.filter(({ createdAt }) => createdAt > dayAgo).map(({ createdAt }) => createdAt.getTime());
    if (today.length >= CREDENTIAL_REQUESTS_PER_DAY_MAX)
      return { kind: "daily", retryAt: new Date(Math.min(...today) + DAY_MS) };
    const openOfAccount = listed().where(isOpen(accountId, now)).limit(CREDENTIAL_REQUESTS_PENDING_MAX);
    if ((await all(tx, openOfAccount)).length >= CREDENTIAL_REQUESTS_PENDING_MAX)
      return { kind: "full", of: "account" };
    await tx.db.insert(requests).values(row);
    await addNotifications(tx, { actionId: row.id, accountId }, notices, now);
    await addToAudit(tx, audit);
    return { kind: "written" };
  },
  ({ accountId }) => [accountLock(accountId)],
);

/** Whether two requests ask for the same thing, whatever their reasons. */
function asksSame(one: CredentialRequest, other: CredentialRequest): boolean {
  const asked = ({ host, paths, methods }: CredentialRequest) => JSON.stringify([host, paths, methods]);
  return asked(one) === asked(other);
}

/** The condition that a request is undecided, and neither it nor its key has expired. */
function isOpen(accountId: string, now: Date): SQL | undefined {
  return and(
    eq(requests.accountId, accountId),
    isNull(requests.decision),
    gt(requests.expiresAt, now),
    isNull(apiKeys.revokedAt),
    or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, now)),
  );
}

/** The condition that a request has a status. Must agree with `statusOfRequest`. */
function hasStatus(
  status: CredentialRequestStatus,
  { accountId, now }: { readonly accountId: string; readonly now: Date },
): SQL | undefined {
  const keyEnds = [apiKeys.revokedAt, apiKeys.expiresAt];
  if (status === "pending") return isOpen(accountId, now);
  if (status === "granted" || status === "declined") return eq(requests.decision, status);
  if (status === "cancelled") {
    const isKeyOver = or(...keyEnds.map((end) => and(lte(end, now), lte(end, requests.expiresAt))));
    return and(isNull(requests.decision), isKeyOver);
  }
  const wasKeyIn = keyEnds.map((end) => or(isNull(end), gt(end, requests.expiresAt)));
  return and(isNull(requests.decision), lte(requests.expiresAt, now), ...wasKeyIn);
}

/** Grants a request. `granted`: the request's audit entry; `audit`: the credential's. */
export const grant = command<CredentialRequestStore["grant"]>(
  async (tx, id, credential, audit, granted) => {
    const { accountId, name, createdAt: at, createdBy: by } = credential;
    if (!(await isPending(tx, { accountId, id, at }))) return "gone";
    const outcome = await insertCredential(tx, credential, audit);
    if (outcome !== "written") return outcome;
    await tx.db
      .update(requests)
      .set({ decision: "granted", decidedAt: at, decidedBy: by, credential: name })
      .where(eq(requests.id, id));
    await addToAudit(tx, granted);
    return outcome;
  },
  (_id, { accountId }) => [accountLock(accountId)],
);

export const decline = command<CredentialRequestStore["decline"]>(
  async (tx, { accountId, id, at, by, reason }, audit) => {
    if (!(await isPending(tx, { accountId, id, at }))) return false;
    const declined = tx.db
      .update(requests)
      .set({ decision: "declined", decidedAt: at, decidedBy: by, decisionReason: reason })
      .where(eq(requests.id, id))
      .returning();
    return addIfWritten(tx, declined, audit);
  },
  ({ accountId }) => [accountLock(accountId)],
);

async function isPending(tx: Tx, { accountId, id, at }: Pick<DeclinedRequest, "accountId" | "id" | "at">) {
  const row = await get(tx, listed().where(hasValues(requests, { accountId, id })));
  return row !== null && statusOfRequest(row, at) === "pending";
}

/** Deletes old requests with their notifications. */
export const pruneRequests = command<CredentialRequestStore["prune"]>(async (tx, until) => {
  const hasMore = await deleteSome(tx, [requests.id], lte(requests.expiresAt, until));
  const kept = qb.select({ id: requests.id }).from(requests).where(eq(requests.id, outbox.actionId));
  return (await pruneNotifications(tx, "crq_", notExists(kept))) || hasMore;
});

/** Selects requests with what tells whether their keys are live. */
function listed() {
  const { role, revokedAt, expiresAt } = apiKeys;
  const ofKey = {
    keyRole: role,
    keyRevokedAt: sql<Date | null>`${revokedAt}`.mapWith(revokedAt).as("key_revoked_at"),
    // Renamed, since another column has its name.
    keyExpiresAt: sql<Date | null>`${expiresAt}`.mapWith(expiresAt).as("key_expires_at"),
  };
  return qb
    .select({ ...getTableColumns(requests), ...ofKey })
    .from(requests)
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId));
}

export function createCredentialRequestStore({ reader, writer }: StoreAccess): CredentialRequestStore {
  return {
    ...writer.methods({ ask, grant, decline, prune: pruneRequests }),
    find: (accountId, id) => get(reader, listed().where(hasValues(requests, { accountId, id }))),
    list(accountId, { keyId, status, now, before, limit }) {
      const isOfPage = and(
        eq(requests.accountId, accountId),
        keyId === null ? undefined : eq(requests.keyId, keyId),
        status === null ? undefined : hasStatus(status, { accountId, now }),
        lt(requests.id, before ?? AFTER_ALL_IDS),
      );
      return all(reader, listed().where(isOfPage).orderBy(desc(requests.id)).limit(limit));
    },
    pending(accountId, now) {
      const open = listed().where(isOpen(accountId, now));
      return all(reader, open.orderBy(requests.expiresAt, requests.id).limit(CREDENTIAL_REQUESTS_PENDING_MAX));
    },
  };
}
