import { and, asc, eq, inArray, isNull, lte, ne, sql } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import type { AlertRow, Credential, CredentialStore, SealedCredential } from "../../src/core/credential.ts";
import {
  CREDENTIAL_ALERTS_KEPT_MS,
  CREDENTIAL_ECHOES_MAX,
  CREDENTIAL_KEYS_MAX,
  CREDENTIALS_MAX,
} from "../../src/core/limits.ts";
import type { StoreContext } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { accountLock } from "../sql/locks.ts";
import { read } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, countRows, deleteSome, hasRow, type Tables, type Tx } from "./command.ts";
import { CREDENTIALS_VERSION, readFact, setFact } from "./facts.ts";

type Row = Tables["credentials"]["$inferSelect"];

interface Written {
  readonly audit: AuditEntry;
  /** A new random value. */
  readonly version: string;
}

interface Place {
  readonly accountId: string;
  readonly id: string;
}

interface Revision extends Place {
  readonly revision: number;
}

export interface NewCredential extends Written {
  readonly row: Row;
}

/** Whoever calls it holds `accountLock`. */
export async function addCredential(tx: Tx, { row, audit, version }: NewCredential) {
  const { credentials } = tx.tables;
  const { accountId, name } = row;
  if (await hasRow(tx, credentials, hasValues(credentials, { accountId, name }))) return "taken";
  if ((await countRows(tx, credentials, eq(credentials.accountId, accountId))) >= CREDENTIALS_MAX) return "full";
  await tx.db.insert(credentials).values(row);
  await addToAudit(tx, audit);
  await setFact(tx, CREDENTIALS_VERSION, version);
  return "written";
}

/** See `CredentialStore.add`. */
export const add = command(addCredential, ({ row }) => [accountLock(row.accountId)]);

type Change = Partial<Omit<Row, "id" | "accountId" | "name" | "revision">>;

/** See `CredentialStore.change`. */
export const change = command(
  async (tx, { accountId, id, revision, patch, audit, version }: Written & Revision & { readonly patch: Change }) => {
    const { credentials } = tx.tables;
    const changed = await tx.db
      .update(credentials)
      .set({ ...patch, revision: revision + 1 })
      .where(hasValues(credentials, { accountId, id, revision }))
      .returning({ id: credentials.id });
    if (!(await addIfWritten(tx, changed, audit))) return false;
    await setFact(tx, CREDENTIALS_VERSION, version);
    return true;
  },
  ({ accountId }) => [accountLock(accountId)],
);

/** See `CredentialStore.remove`. */
export const remove = command(async (tx, { accountId, id, audit, version }: Written & Place) => {
  const { credentials } = tx.tables;
  const removed = await tx.db
    .delete(credentials)
    .where(hasValues(credentials, { accountId, id }))
    .returning({ id: credentials.id });
  if (!(await addIfWritten(tx, removed, audit))) return false;
  await setFact(tx, CREDENTIALS_VERSION, version);
  return true;
});

interface Allowed {
  readonly accountId: string;
  readonly keyId: string;
  readonly ids: readonly string[];
  readonly version: string;
}

/** See `CredentialStore.allow`. Keys that were revoked leave a list that is full. */
export const allow = command(
  async (tx, { accountId, keyId, ids, version }: Allowed) => {
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
    await setFact(tx, CREDENTIALS_VERSION, version);
  },
  ({ accountId }) => [accountLock(accountId)],
);

async function liveOf({ db, tables: { apiKeys } }: Tx, keys: readonly string[]): Promise<readonly string[]> {
  const isLive = and(inArray(apiKeys.id, [...keys]), isNull(apiKeys.revokedAt));
  const live = new Set((await db.select({ id: apiKeys.id }).from(apiKeys).where(isLive)).map(({ id }) => id));
  return keys.filter((id) => live.has(id));
}

/** See `CredentialStore.use`. */
export const use = command(
  async (tx, { accountId, id, revision, at, audit }: Revision & Readonly<{ at: number; audit: AuditEntry }>) => {
    const { credentials } = tx.tables;
    const used = await tx.db
      .update(credentials)
      .set({ lastUsedAt: new Date(at) })
      .where(hasValues(credentials, { accountId, id, revision }))
      .returning({ id: credentials.id });
    return addIfWritten(tx, used, audit);
  },
);

interface Told extends Place {
  readonly expiresAt: number;
  readonly rows: readonly AlertRow[];
  readonly at: number;
}

/** See `CredentialStore.tell`. The first row is the mark that it was told. */
export const tell = command(
  async (tx, { accountId, id, expiresAt, rows, at }: Told) => {
    const { credentials, outbox } = tx.tables;
    const [first] = rows;
    const isIt = hasValues(credentials, { accountId, id, enabled: true, expiresAt: new Date(expiresAt) });
    if (first === undefined || !(await hasRow(tx, credentials, isIt))) return false;
    const about = { actionId: id, revision: 1 };
    if (await hasRow(tx, outbox, hasValues(outbox, { ...about, event: first.message.event }))) return false;
    const now = new Date(at);
    const due = { status: "pending", attempts: 0, dueAt: now, scheduledAt: now, createdAt: now } as const;
    await tx.db
      .insert(outbox)
      .values(rows.map(({ message, ...row }) => ({ ...row, ...message, ...about, accountId, run: 1, ...due })));
    return true;
  },
  ({ accountId }) => [accountLock(accountId)],
);

/** See `CredentialStore.pruneAlerts`. */
export const pruneAlerts = command(async (tx, { now }: Readonly<{ now: Date }>) => {
  const { outbox } = tx.tables;
  const isAlert = sql`${outbox.actionId} >= 'crd_' and ${outbox.actionId} < 'crd\`'`;
  const isOld = lte(outbox.createdAt, new Date(now.getTime() - CREDENTIAL_ALERTS_KEPT_MS));
  return (await deleteSome(tx, outbox.id, and(isAlert, isOld, ne(outbox.status, "active")))) > 0;
});

/** See `CredentialStore.noteEcho`. */
export const noteEcho = command(
  async (tx, { accountId, id, host, audit }: Place & Readonly<{ host: string; audit: AuditEntry }>) => {
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
  ({ accountId }) => [accountLock(accountId)],
);

const ALL = read({}, ({ db, tables: { credentials } }) =>
  db.select().from(credentials).orderBy(asc(credentials.accountId), asc(credentials.name)),
);

const OF_ACCOUNT = read({ accountId: "text" }, ({ db, tables: { credentials } }, arg) =>
  db.select().from(credentials).where(hasValues(credentials, arg)).orderBy(asc(credentials.name)),
);

const FIND = read({ accountId: "text", id: "text" }, ({ db, tables: { credentials } }, arg) =>
  db.select().from(credentials).where(hasValues(credentials, arg)),
);

/** Credentials that agents name and never see. Only `find` reads what is sealed. */
export function createCredentialStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): CredentialStore {
  const version = () => crypto.randomUUID();
  const unsealed = ({ sealedSecret: _sealed, ...credential }: Row): Credential => credential;
  return {
    version: async () => (await readFact(reader, CREDENTIALS_VERSION)) ?? "",
    list: async (accountId) =>
      (await (accountId === null ? ALL.all(reader, {}) : OF_ACCOUNT.all(reader, { accountId }))).map(unsealed),
    find: (accountId, id): Promise<SealedCredential | null> => FIND.get(reader, { accountId, id }),
    add: (row, audit) => writer.run(add, { row, audit, version: version() }),
    change({ accountId, id, revision }, { secret, ...patch }, audit) {
      const all = { ...patch, ...secret };
      return writer.run(change, { accountId, id, revision, patch: all, audit, version: version() });
    },
    remove: (accountId, id, audit) => writer.run(remove, { accountId, id, audit, version: version() }),
    allow: (accountId, keyId, ids) => writer.run(allow, { accountId, keyId, ids, version: version() }),
    use: ({ accountId, id, revision }, at, audit) =>
      writer.run(use, { accountId, id, revision, at: at.getTime(), audit }),
    tell: ({ accountId, id, expiresAt }, rows, at) =>
      writer.run(tell, { accountId, id, expiresAt: expiresAt.getTime(), rows, at: at.getTime() }),
    pruneAlerts: (now) => writer.run(pruneAlerts, { now }),
    noteEcho: (accountId, id, host, audit) => writer.run(noteEcho, { accountId, id, host, audit }),
  };
}
