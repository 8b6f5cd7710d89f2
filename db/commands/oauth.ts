/** The authorization server: its clients, connections and tokens, and the keys that end with them. */
import { and, asc, desc, eq, getTableColumns, gt, inArray, isNull, lte, ne, or, sql } from "drizzle-orm";
import { auditOfSystem } from "../../src/core/audit.ts";
import {
  OAUTH_ASSERTIONS_MAX,
  OAUTH_CLIENTS_MAX,
  OAUTH_CLIENTS_PER_ACCOUNT_MAX,
  OAUTH_CONSENT_MS_MAX,
  OAUTH_INTERACTIONS_PER_ACCOUNT_MAX,
  OAUTH_TOKENS_PER_GRANT_MAX,
  OAUTH_UNUSED_CLIENT_MS,
} from "../../src/core/limits.ts";
import type { OAuthArtifact, OAuthKind, OAuthStore } from "../../src/core/oauth-store.ts";
import { oauthLock, accountLock } from "../sql/locks.ts";
import { all, countRows, findRow, get, hasRow, hasValues, prepare, qb } from "../sql/read.ts";
import { revokeAll } from "./accounts.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, PRUNE_ROWS, type Tx } from "./command.ts";
import { isOfManager } from "./makers.ts";
import { apiKeys, oauthArtifacts } from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

export const putArtifact = command<OAuthStore["put"]>(
  async (tx, artifact) => {
    const { id, kind, grantId, sealedPayload, keyId, expiresAt } = artifact;
    if (grantId !== null && grantId !== id && !(await hasRow(tx, oauthArtifacts, eq(oauthArtifacts.id, grantId)))) {
      return false;
    }
    if (kind === "Grant" && !(await mayConnect(tx, artifact))) return false;
    if (kind === "Client" && !(await hasRoom(tx, artifact))) return false;
    const insert = tx.db.insert(oauthArtifacts).values(artifact);
    if (kind === "ReplayDetection") {
      const added = await insert.onConflictDoNothing().returning();
      if (added.length === 0) return false;
    } else {
      await insert.onConflictDoUpdate({ target: oauthArtifacts.id, set: { sealedPayload, keyId, grantId, expiresAt } });
    }
    await makeRoom(tx, artifact);
    return true;
  },
  ({ kind, accountId, grantId }) => [
    oauthLock(grantId ?? (accountId === "" ? kind : accountId)),
    ...(kind === "Grant" ? [accountLock(accountId)] : []),
  ],
);

/** Whether the maker of a new connection's key still owns the account: `revokeConnections` could not see this one yet. */
async function mayConnect(tx: Tx, { accountId, keyId }: OAuthArtifact): Promise<boolean> {
  const key = await findRow(tx, apiKeys, { id: keyId ?? "", accountId });
  return key !== null && key.revokedAt === null && isOfManager(tx, key);
}

/**
 * Whether there is room for another client that registers itself. If not, deletes the oldest client that nobody has connected
 * in time: otherwise strangers could keep everybody out for a day.
 */
async function hasRoom(tx: Tx, { id, createdAt: now }: OAuthArtifact): Promise<boolean> {
  const { createdAt, expiresAt } = oauthArtifacts;
  const isOther = and(hasValues(oauthArtifacts, { accountId: "", kind: "Client" }), ne(oauthArtifacts.id, id));
  if ((await countRows(tx, oauthArtifacts, isOther)) < OAUTH_CLIENTS_MAX) return true;
  const ago = (ms: number) => new Date(now.getTime() - ms);
  // A connected client expires later, so it is not found here.
  const isUnused = and(
    gt(createdAt, ago(OAUTH_UNUSED_CLIENT_MS)),
    lte(createdAt, ago(OAUTH_CONSENT_MS_MAX)),
    lte(expiresAt, new Date(now.getTime() + OAUTH_UNUSED_CLIENT_MS - OAUTH_CONSENT_MS_MAX)),
  );
  const over = qb.select({ id: oauthArtifacts.id }).from(oauthArtifacts);
  const oldestFirst = over.where(and(isOther, or(lte(expiresAt, now), isUnused))).orderBy(createdAt);
  const oldest = await get(tx, oldestFirst.limit(1));
  if (oldest === null) return false;
  await tx.db.delete(oauthArtifacts).where(eq(oauthArtifacts.id, oldest.id));
  return true;
}

/** How many are kept per account, or of all accounts. Clients beyond their bound are refused instead. */
const KEPT_MAX: Readonly<Partial<Record<OAuthKind, number>>> = {
  Interaction: OAUTH_INTERACTIONS_PER_ACCOUNT_MAX,
  ReplayDetection: OAUTH_ASSERTIONS_MAX,
};

async function makeRoom(tx: Tx, { kind, accountId, grantId }: OAuthArtifact): Promise<void> {
  const { id, createdAt } = oauthArtifacts;
  const isOfKind = hasValues(oauthArtifacts, { accountId, kind });
  const isOfGrant = and(eq(oauthArtifacts.grantId, grantId ?? ""), ne(oauthArtifacts.kind, "Grant"));
  const max = KEPT_MAX[kind] ?? OAUTH_TOKENS_PER_GRANT_MAX;
  const counted = qb.select({ id }).from(oauthArtifacts);
  const newestFirst = counted.where(kind in KEPT_MAX ? isOfKind : isOfGrant).orderBy(desc(createdAt));
  await tx.db.delete(oauthArtifacts).where(inArray(id, newestFirst.limit(PRUNE_ROWS).offset(max)));
}

export const consume = command<OAuthStore["consume"]>(async (tx, id, at) => {
  const isUnused = and(eq(oauthArtifacts.id, id), isNull(oauthArtifacts.consumedAt));
  const used = await tx.db.update(oauthArtifacts).set({ consumedAt: at }).where(isUnused).returning();
  return used.length > 0;
});

export const removeArtifact = command<OAuthStore["remove"]>(async (tx, id) => {
  await tx.db.delete(oauthArtifacts).where(eq(oauthArtifacts.id, id));
});

export const endOAuthGrant = command<OAuthStore["endGrant"]>(
  async (tx, grantId, { at, by, audit }) => {
    const grant = await findRow(tx, oauthArtifacts, { id: grantId, kind: "Grant" });
    if (grant === null) return null;
    await tx.db.delete(oauthArtifacts).where(eq(oauthArtifacts.grantId, grantId));
    const id = grant.keyId ?? "";
    await addIfWritten(tx, revokeAll(tx, eq(apiKeys.id, id), { at, by }), audit);
    return findRow(tx, apiKeys, { id });
  },
  (grantId) => [oauthLock(grantId)],
);

export const addClient = command<OAuthStore["addClient"]>(
  async (tx, client, audit) => {
    const isClient = hasValues(oauthArtifacts, { accountId: client.accountId, kind: "Client" });
    if ((await countRows(tx, oauthArtifacts, isClient)) >= OAUTH_CLIENTS_PER_ACCOUNT_MAX) return false;
    await tx.db.insert(oauthArtifacts).values(client);
    await addToAudit(tx, audit);
    return true;
  },
  ({ accountId }) => [oauthLock(accountId)],
);

export const changeClient = command<OAuthStore["changeClient"]>(async (tx, { id, accountId, sealedPayload }, audit) => {
  const changed = tx.db
    .update(oauthArtifacts)
    .set({ sealedPayload })
    .where(hasValues(oauthArtifacts, { accountId, id, kind: "Client" }))
    .returning();
  return addIfWritten(tx, changed, audit);
});

export const removeClient = command<OAuthStore["removeClient"]>(async (tx, accountId, id, audit) => {
  const removed = tx.db
    .delete(oauthArtifacts)
    .where(hasValues(oauthArtifacts, { accountId, id, kind: "Client" }))
    .returning();
  return addIfWritten(tx, removed, audit);
});

/** Revokes the keys of all connections of a person who may no longer make any. */
export async function revokeConnections(
  tx: Tx,
  { accountId, personId, at }: Readonly<{ accountId: string; personId: string; at: Date }>,
): Promise<void> {
  const connected = qb
    .select({ id: oauthArtifacts.keyId })
    .from(oauthArtifacts)
    .where(hasValues(oauthArtifacts, { accountId, kind: "Grant" }));
  const isOfPerson = and(hasValues(apiKeys, { accountId, createdById: personId }), inArray(apiKeys.id, connected));
  await revoke(tx, isOfPerson, at);
}

async function revoke(tx: Tx, condition: ReturnType<typeof and>, at: Date): Promise<void> {
  for (const key of await revokeAll(tx, condition, { at, by: "system" })) {
    const detail = { unfinished: "keep" };
    await addToAudit(tx, auditOfSystem(key.accountId, { kind: "key_revoked", subject: key.id, detail }, at));
  }
}

export const pruneArtifacts = command<OAuthStore["prune"]>(async (tx, now) => {
  const { id, kind, keyId, grantId, consumedAt, expiresAt } = oauthArtifacts;
  const expired = qb.select({ id, kind, keyId, grantId, consumedAt }).from(oauthArtifacts).where(lte(expiresAt, now));
  const over = await all(tx, expired.limit(PRUNE_ROWS));
  if (over.length === 0) return false;
  const isUnused = (row: (typeof over)[number]) =>
    row.kind === "AuthorizationCode" ? row.consumedAt === null : row.kind === "Interaction" && row.grantId !== null;
  const unused = over.filter(isUnused);
  if (unused.length > 0) {
    const [keys, grants] = [unused.flatMap((row) => row.keyId ?? []), unused.flatMap((row) => row.grantId ?? [])];
    await revoke(tx, inArray(apiKeys.id, keys), now);
    await tx.db.delete(oauthArtifacts).where(inArray(grantId, grants));
  }
  const ids = over.map((row) => row.id);
  await tx.db.delete(oauthArtifacts).where(inArray(id, ids));
  return over.length === PRUNE_ROWS;
});

const KEY_BY_TOKEN = prepare({ id: "text", now: "time" }, (arg) => {
  const isToken = and(eq(oauthArtifacts.id, arg.id), eq(oauthArtifacts.kind, "AccessToken"));
  const until = sql<Date>`${oauthArtifacts.expiresAt}`.mapWith(oauthArtifacts.expiresAt).as("token_expires_at");
  return qb
    .select({ ...getTableColumns(apiKeys), until })
    .from(oauthArtifacts)
    .innerJoin(apiKeys, eq(apiKeys.id, oauthArtifacts.keyId))
    .where(and(isToken, gt(oauthArtifacts.expiresAt, arg.now)));
});

export function createOAuthStore({ reader, writer }: StoreAccess): OAuthStore {
  return {
    ...writer.methods({
      put: putArtifact,
      consume,
      remove: removeArtifact,
      endGrant: endOAuthGrant,
      addClient,
      changeClient,
      removeClient,
      prune: pruneArtifacts,
    }),
    find: (id) => findRow(reader, oauthArtifacts, { id }),
    async keyByToken(id, now) {
      const found = await KEY_BY_TOKEN.get(reader, { id, now });
      if (found === null) return null;
      const { until, ...key } = found;
      return { key, expiresAt: until };
    },
    connections(accountId, now) {
      const isGrant = hasValues(oauthArtifacts, { accountId, kind: "Grant" });
      const live = qb
        .select(getTableColumns(oauthArtifacts))
        .from(oauthArtifacts)
        .innerJoin(apiKeys, eq(apiKeys.id, oauthArtifacts.keyId))
        .where(and(isGrant, isNull(apiKeys.revokedAt), gt(oauthArtifacts.expiresAt, now)));
      return all(reader, live.orderBy(desc(oauthArtifacts.createdAt)));
    },
    clients(accountId) {
      const isClient = hasValues(oauthArtifacts, { accountId, kind: "Client" });
      return all(reader, qb.select().from(oauthArtifacts).where(isClient).orderBy(asc(oauthArtifacts.createdAt)));
    },
  };
}
