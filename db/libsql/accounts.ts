import { and, asc, eq, isNull, sql as drizzleSql } from "drizzle-orm";
import type { AccountStore } from "../../src/ports/accounts.ts";
import { drizzleOver, statementOf } from "./builder.ts";
import { accounts, apiKeys } from "./schema.ts";
import type { Sql } from "./sql.ts";
import type { Writer } from "./writer.ts";

/** Accounts and keys: read and written rarely, so through drizzle; writes take the common road of the writer. */
export function createAccountStore(sql: Sql, writer: Writer): AccountStore {
  const database = drizzleOver(sql);
  return {
    async first() {
      // In the order of the rows: a clock that was set back would make somebody's sign-up the first.
      const [account] = await database
        .select()
        .from(accounts)
        .orderBy(drizzleSql`rowid`)
        .limit(1);
      return account ?? null;
    },
    async find(accountId) {
      const [account] = await database.select().from(accounts).where(eq(accounts.id, accountId)).limit(1);
      return account ?? null;
    },
    async create(account, keys) {
      const inserts = [
        database.insert(accounts).values(account),
        ...keys.map((key) => database.insert(apiKeys).values(key)),
      ];
      await writer.write(inserts.map(statementOf));
    },
    async addKey(key) {
      await writer.write([statementOf(database.insert(apiKeys).values(key))]);
    },
    async keyByHash(hash) {
      const [key] = await database.select().from(apiKeys).where(eq(apiKeys.hash, hash)).limit(1);
      return key ?? null;
    },
    async keyUsed(keyId, at) {
      await writer.write([statementOf(database.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, keyId)))]);
    },
    async keys(accountId, limit) {
      const ofAccount = database.select().from(apiKeys).where(eq(apiKeys.accountId, accountId));
      return ofAccount.orderBy(asc(apiKeys.revokedAt), asc(apiKeys.createdAt), asc(apiKeys.id)).limit(limit);
    },
    async revokeKey(accountId, keyId, at) {
      const itsOwn = and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId));
      const revoke = database
        .update(apiKeys)
        .set({ revokedAt: at })
        .where(and(itsOwn, isNull(apiKeys.revokedAt)));
      await writer.write([statementOf(revoke)]);
      const [key] = await database.select().from(apiKeys).where(itsOwn).limit(1);
      return key ?? null;
    },
  };
}
