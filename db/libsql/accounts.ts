import { and, asc, eq, isNull, sql as drizzleSql, type SQL } from "drizzle-orm";
import type { AccountStore, FirstAccountExtras, Revocation } from "../../src/ports/accounts.ts";
import { auditChange, auditRow } from "./audit.ts";
import { drizzleOver, statementOf } from "./builder.ts";
import type { Guard } from "./guard.ts";
import { addPause } from "./pauses.ts";
import { offer } from "./people-writes.ts";
import { accounts, apiKeys } from "./schema.ts";
import type { Sql, Statement } from "./sql.ts";
import { createSignedUpStore, findReplaced, isFirstHold, stopOthers } from "./stopped-accounts.ts";
import type { Writer } from "./writer.ts";

/** Accounts and keys: read and written rarely, so through drizzle; writes take the common road of the writer. */
export function createAccountStore(sql: Sql, writer: Writer): AccountStore {
  const database = drizzleOver(sql);
  const keyWhere = async (condition: SQL | undefined) => {
    const [key] = await database.select().from(apiKeys).where(condition).limit(1);
    return key ?? null;
  };
  return {
    findKey: (accountId, keyId) => keyWhere(keyOf(accountId, keyId)),
    async first() {
      // In the order of the rows: a clock that was set back would make somebody's sign-up the first.
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
      await writer.write([statementOf(database.insert(apiKeys).values(key)), ...auditChange(audit), ...stopping]);
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

/** What everybody needs of an account; whether it was allowed only the list tells. */
const ACCOUNT = { id: accounts.id, sealedRootSecret: accounts.sealedRootSecret, createdAt: accounts.createdAt };

function pauseOf({ pause, audit }: NonNullable<Revocation["pause"]>, guard: Guard): readonly Statement[] {
  return [addPause(pause, guard), ...auditChange(audit)];
}

function isKeyOf(keyId: string, accountId: string): Guard {
  return { sql: "EXISTS (SELECT 1 FROM api_keys WHERE id = ? AND account_id = ?)", args: [keyId, accountId] };
}

/** Behind the keys: an entry of the audit log is written where the statement before it wrote something. */
function extraRows({ audit, link, facts }: FirstAccountExtras): readonly Statement[] {
  return [...audit.flatMap(auditChange), ...offer(link), ...Object.entries(facts).map(putFact)];
}

/** As the store writes its facts. */
function putFact([name, value]: readonly [string, string]): Statement {
  return { sql: "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", args: [name, value] };
}
