import {
  and,
  desc,
  eq,
  getTableColumns,
  gt,
  isNull,
  lt,
  lte,
  ne,
  notExists,
  or,
  type Placeholder,
  type SQL,
  sql,
} from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import {
  type AskedCredential,
  type CredentialRequest,
  type CredentialRequestStore,
  type DeclinedRequest,
  type RequestNotice,
  statusOfRequest,
} from "../../src/core/credential-request.ts";
import {
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
  DAY_MS,
} from "../../src/core/limits.ts";
import type { StoreContext } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { accountLock } from "../sql/locks.ts";
import { read } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, deleteSome, type Tables, type Tx } from "./command.ts";
import { addCredential, type NewCredential } from "./credentials.ts";

interface AskArgs {
  readonly row: CredentialRequest;
  readonly declinedSince: Date;
  readonly notices: readonly RequestNotice[];
  readonly audit: AuditEntry;
}

/** See `CredentialRequestStore.ask`. */
export const ask = command(
  async (tx, { row, declinedSince, notices, audit }: AskArgs): Promise<AskedCredential> => {
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
    const due = { status: "pending", attempts: 0, dueAt: now, scheduledAt: now, createdAt: now } as const;
    for (const { message, ...notice } of notices) {
      const about = { actionId: row.id, accountId, run: 1, revision: 1 };
      await tx.db.insert(tx.tables.outbox).values({ ...notice, ...message, ...about, ...due });
    }
    await addToAudit(tx, audit);
    return { kind: "written" };
  },
  ({ row }) => [accountLock(row.accountId)],
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
function isOpen(
  { apiKeys, credentialRequests: requests }: Tables,
  accountId: string | Placeholder,
  now: Date | Placeholder,
): SQL | undefined {
  return and(
    eq(requests.accountId, accountId),
    isNull(requests.decision),
    gt(requests.expiresAt, now),
    isNull(apiKeys.revokedAt),
    or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, now)),
  );
}

interface GrantArgs extends NewCredential {
  readonly id: string;
  /** Of the grant, beside that of the credential. */
  readonly granted: AuditEntry;
}

/** See `CredentialRequestStore.grant`. */
export const grant = command(
  async (tx, { id, granted, ...added }: GrantArgs) => {
    const { credentialRequests: requests } = tx.tables;
    const { accountId, name, createdAt: at, createdBy: by } = added.row;
    if (!(await isPending(tx, { accountId, id, at }))) return "gone";
    const outcome = await addCredential(tx, added);
    if (outcome !== "written") return outcome;
    await tx.db
      .update(requests)
      .set({ decision: "granted", decidedAt: at, decidedBy: by, credential: name })
      .where(eq(requests.id, id));
    await addToAudit(tx, granted);
    return outcome;
  },
  ({ row }) => [accountLock(row.accountId)],
);

/** See `CredentialRequestStore.decline`. */
export const decline = command(
  async (tx, { accountId, id, at, by, reason, audit }: DeclinedRequest & { readonly audit: AuditEntry }) => {
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
  const { apiKeys, credentialRequests: requests } = tx.tables;
  const [row] = await tx.db
    .select(listedColumns(tx.tables))
    .from(requests)
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))
    .where(hasValues(requests, { accountId, id }));
  return row !== undefined && statusOfRequest(row, at) === "pending";
}

/** See `CredentialRequestStore.prune`. Their notifications go too; an attempt that is under way ends first. */
export const prune = command(async (tx, { until }: Readonly<{ until: Date }>) => {
  const { credentialRequests: requests, outbox } = tx.tables;
  const pruned = await deleteSome(tx, requests.id, lte(requests.expiresAt, until));
  const kept = tx.db.select({ id: requests.id }).from(requests).where(eq(requests.id, outbox.actionId));
  const isRequest = sql`${outbox.actionId} >= 'crq_' and ${outbox.actionId} < 'crq\`'`;
  const isOver = and(isRequest, ne(outbox.status, "active"), notExists(kept));
  return pruned + (await deleteSome(tx, outbox.id, isOver)) > 0;
});

function listedColumns({ apiKeys, credentialRequests }: Tables) {
  const { role, revokedAt, expiresAt } = apiKeys;
  const ofKey = {
    keyRole: role,
    keyRevokedAt: sql<Date | null>`${revokedAt}`.mapWith(revokedAt).as("key_revoked_at"),
    // Another column has its name.
    keyExpiresAt: sql<Date | null>`${expiresAt}`.mapWith(expiresAt).as("key_expires_at"),
  };
  return { ...getTableColumns(credentialRequests), ...ofKey };
}

const FIND = read({ accountId: "text", id: "text" }, ({ db, tables }, arg) => {
  const { apiKeys, credentialRequests: requests } = tables;
  return db
    .select(listedColumns(tables))
    .from(requests)
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))
    .where(hasValues(requests, arg));
});

const list = (of: "account" | "key") =>
  read({ accountId: "text", keyId: "text?", before: "text", limit: "number" }, ({ db, tables }, arg) => {
    const { apiKeys, credentialRequests: requests } = tables;
    const isOf = of === "key" ? eq(requests.keyId, arg.keyId) : undefined;
    return db
      .select(listedColumns(tables))
      .from(requests)
      .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))
      .where(and(eq(requests.accountId, arg.accountId), isOf, lt(requests.id, arg.before)))
      .orderBy(desc(requests.id))
      .limit(arg.limit);
  });

const LIST = { account: list("account"), key: list("key") };

const PENDING = read({ accountId: "text", now: "time", limit: "number" }, ({ db, tables }, arg) => {
  const { apiKeys, credentialRequests: requests } = tables;
  return db
    .select(listedColumns(tables))
    .from(requests)
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))
    .where(isOpen(tables, arg.accountId, arg.now))
    .orderBy(requests.expiresAt, requests.id)
    .limit(arg.limit);
});

const AFTER_ALL_IDS = "\u{10ffff}";

/** Requests of keys for credentials that somebody else fills in. */
export function createCredentialRequestStore({
  sql: reader,
  writer,
}: Pick<StoreContext, "sql" | "writer">): CredentialRequestStore {
  return {
    ask: (row, declinedSince, notices, audit) => writer.run(ask, { row, declinedSince, notices, audit }),
    find: (accountId, id) => FIND.get(reader, { accountId, id }),
    list: (accountId, { keyId, before, limit }) =>
      LIST[keyId === null ? "account" : "key"].all(reader, {
        accountId,
        keyId,
        before: before ?? AFTER_ALL_IDS,
        limit,
      }),
    pending: (accountId, now) => PENDING.all(reader, { accountId, now, limit: CREDENTIAL_REQUESTS_PENDING_MAX }),
    grant: (id, row, audit, granted) => writer.run(grant, { id, row, audit, granted, version: crypto.randomUUID() }),
    decline: (request, audit) => writer.run(decline, { ...request, audit }),
    prune: (until) => writer.run(prune, { until }),
  };
}
