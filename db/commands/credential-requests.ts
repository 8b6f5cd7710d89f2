import { and, desc, eq, getTableColumns, gt, isNull, lt, lte, ne, notExists, or, type SQL, sql } from "drizzle-orm";
import {
  type CredentialRequest,
  type CredentialRequestStatus,
  type CredentialRequestStore,
  type DeclinedRequest,
  statusOfRequest,
} from "../../src/core/credential-request.ts";
import {
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
  DAY_MS,
} from "../../src/core/limits.ts";
import type { Connection } from "../sql/context.ts";
import { AFTER_ALL_IDS, hasValues } from "../sql/dialect.ts";
import { accountLock } from "../sql/locks.ts";
import { all, get } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, deleteSome, type Tables, type Tx } from "./command.ts";
import { addNotifications } from "./outbox.ts";
import { addCredential } from "./credentials.ts";

export const ask = command<CredentialRequestStore["ask"]>(
  async (tx, row, declinedSince, notices, audit) => {
    const { credentialRequests: requests } = tx.tables;
    const { accountId, keyId, createdAt: now } = row;
    const dayAgo = new Date(now.getTime() - DAY_MS);
    const isRecent = or(
      isNull(requests.decision),
      gt(requests.decidedAt, declinedSince),
      gt(requests.createdAt, dayAgo),
    );
    const own = await tx.db
      .select()
      .from(requests)
      .where(and(eq(requests.keyId, keyId), eq(requests.accountId, accountId), isRecent))
      .orderBy(desc(requests.id));
    const open = own.filter(({ decision, expiresAt }) => decision === null && expiresAt > now);
    const isDeclined = (one: CredentialRequest) =>
      one.decision === "declined" && (one.decidedAt ?? one.createdAt) > declinedSince && asksSame(one, row);
    const matched = open.find(({ host }) => host === row.host) ?? own.find(isDeclined);
    if (matched !== undefined) return { kind: "matched", id: matched.id };
    if (open.length >= CREDENTIAL_REQUESTS_PER_KEY_MAX) return { kind: "full", of: "key" };
    const today = own.filter(({ createdAt }) => createdAt > dayAgo).map(({ createdAt }) => createdAt.getTime());
    if (today.length >= CREDENTIAL_REQUESTS_PER_DAY_MAX)
      return { kind: "daily", retryAt: new Date(Math.min(...today) + DAY_MS) };
    if ((await openOf(tx, accountId, now)) >= CREDENTIAL_REQUESTS_PENDING_MAX) return { kind: "full", of: "account" };
    await tx.db.insert(requests).values(row);
    await addNotifications(tx, { actionId: row.id, accountId }, notices, now);
    await addToAudit(tx, audit);
    return { kind: "written" };
  },
  ({ accountId }) => [accountLock(accountId)],
);

/** Whether a request asks for what another one asked for, in whatever words. */
function asksSame(one: CredentialRequest, other: CredentialRequest): boolean {
  const asked = ({ host, paths, methods }: CredentialRequest) => JSON.stringify([host, paths, methods]);
  return asked(one) === asked(other);
}

async function openOf({ db, tables }: Tx, accountId: string, now: Date): Promise<number> {
  const { apiKeys, credentialRequests: requests } = tables;
  const rows = await db
    .select({ id: requests.id })
    .from(requests)
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))
    .where(isOpen(tables, accountId, now))
    .limit(CREDENTIAL_REQUESTS_PENDING_MAX);
  return rows.length;
}

/** Nobody has decided, it has not expired, and its key has not ended. */
function isOpen({ apiKeys, credentialRequests: requests }: Tables, accountId: string, now: Date): SQL | undefined {
  return and(
    eq(requests.accountId, accountId),
    isNull(requests.decision),
    gt(requests.expiresAt, now),
    isNull(apiKeys.revokedAt),
    or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, now)),
  );
}

/** What `statusOfRequest` says. */
function hasStatus(
  tables: Tables,
  status: CredentialRequestStatus,
  { accountId, now }: { readonly accountId: string; readonly now: Date },
): SQL | undefined {
  const { apiKeys, credentialRequests: requests } = tables;
  const keyEnds = [apiKeys.revokedAt, apiKeys.expiresAt];
  if (status === "pending") return isOpen(tables, accountId, now);
  if (status === "granted" || status === "declined") return eq(requests.decision, status);
  if (status === "cancelled") {
    const isKeyOver = or(...keyEnds.map((end) => and(lte(end, now), lte(end, requests.expiresAt))));
    return and(isNull(requests.decision), isKeyOver);
  }
  const wasKeyIn = keyEnds.map((end) => or(isNull(end), gt(end, requests.expiresAt)));
  return and(isNull(requests.decision), lte(requests.expiresAt, now), ...wasKeyIn);
}

/** `granted` is its entry of the audit log, beside that of the credential. */
export const grant = command<CredentialRequestStore["grant"]>(
  async (tx, id, credential, audit, granted) => {
    const { credentialRequests: requests } = tx.tables;
    const { accountId, name, createdAt: at, createdBy: by } = credential;
    if (!(await isPending(tx, { accountId, id, at }))) return "gone";
    const outcome = await addCredential(tx, credential, audit);
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
    const { credentialRequests: requests } = tx.tables;
    if (!(await isPending(tx, { accountId, id, at }))) return false;
    const declined = await tx.db
      .update(requests)
      .set({ decision: "declined", decidedAt: at, decidedBy: by, decisionReason: reason })
      .where(eq(requests.id, id))
      .returning({ id: requests.id });
    return addIfWritten(tx, declined, audit);
  },
  ({ accountId }) => [accountLock(accountId)],
);

async function isPending(tx: Tx, { accountId, id, at }: Pick<DeclinedRequest, "accountId" | "id" | "at">) {
  const [row] = await listed(tx).where(hasValues(tx.tables.credentialRequests, { accountId, id }));
  return row !== undefined && statusOfRequest(row, at) === "pending";
}

/** Their notifications go too; an attempt that is under way ends first. */
export const prune = command<CredentialRequestStore["prune"]>(async (tx, until) => {
  const { credentialRequests: requests, outbox } = tx.tables;
  const pruned = await deleteSome(tx, requests.id, lte(requests.expiresAt, until));
  const kept = tx.db.select({ id: requests.id }).from(requests).where(eq(requests.id, outbox.actionId));
  const isRequest = sql`${outbox.actionId} >= 'crq_' and ${outbox.actionId} < 'crq\`'`;
  const isOver = and(isRequest, ne(outbox.status, "active"), notExists(kept));
  return pruned + (await deleteSome(tx, outbox.id, isOver)) > 0;
});

interface Selects extends Pick<Tx, "tables"> {
  readonly db: Pick<Tx["db"], "select">;
}

/** Requests with their keys. */
function listed({ db, tables: { apiKeys, credentialRequests: requests } }: Selects) {
  const { role, revokedAt, expiresAt } = apiKeys;
  const ofKey = {
    keyRole: role,
    keyRevokedAt: sql<Date | null>`${revokedAt}`.mapWith(revokedAt).as("key_revoked_at"),
    // Another column has its name.
    keyExpiresAt: sql<Date | null>`${expiresAt}`.mapWith(expiresAt).as("key_expires_at"),
  };
  return db
    .select({ ...getTableColumns(requests), ...ofKey })
    .from(requests)
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId));
}

/** Requests of keys for credentials that somebody else fills in. */
export function createCredentialRequestStore({ reader, writer }: Connection): CredentialRequestStore {
  const { dialect } = reader;
  const { credentialRequests: requests } = dialect.tables;
  return {
    ...writer.methods({ ask, grant, decline, prune }),
    find: (accountId, id) => get(reader, listed(dialect).where(hasValues(requests, { accountId, id }))),
    list(accountId, { keyId, status, now, before, limit }) {
      const isOfPage = and(
        eq(requests.accountId, accountId),
        keyId === null ? undefined : eq(requests.keyId, keyId),
        status === null ? undefined : hasStatus(dialect.tables, status, { accountId, now }),
        lt(requests.id, before ?? AFTER_ALL_IDS),
      );
      return all(reader, listed(dialect).where(isOfPage).orderBy(desc(requests.id)).limit(limit));
    },
    pending(accountId, now) {
      const open = listed(dialect).where(isOpen(dialect.tables, accountId, now));
      return all(reader, open.orderBy(requests.expiresAt, requests.id).limit(CREDENTIAL_REQUESTS_PENDING_MAX));
    },
  };
}
