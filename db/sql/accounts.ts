import { and, desc, eq, isNotNull, ne, sql } from "drizzle-orm";
import type { AccountStore } from "../../src/core/account-store.ts";
import { REPLACED_KEYS_MAX } from "../../src/core/limits.ts";
import * as commands from "../commands/accounts.ts";
import type { StoreContext } from "./context.ts";
import { addedOrder, isOneOf, nullsFirst } from "./dialect.ts";
import { readUse } from "./key-days.ts";
import { isStopped } from "./pauses.ts";
import { type Args, prepare, query } from "./query.ts";
import { accounts, apiKeys, members, people } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

/** Accounts and keys. */
export function createAccountStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): AccountStore {
  const stopArgs = async () => ({
    firstAccountId: await readFirstId(reader),
    idPrefix: `pau_${crypto.randomUUID().slice(0, 8)}`,
  });
  return {
    findKey: async (accountId, id) => (await FIND_KEY.read(reader, { accountId, id }))[0] ?? null,
    first: async () => (await FIRST.read(reader, {}))[0] ?? null,
    find: async (id) => (await FIND.read(reader, { id }))[0] ?? null,
    create: (account, keys, extras) => writer.run(commands.create, { account, keys, extras }),
    async addKey(key, audit, stop) {
      const stopped = stop === undefined ? stop : { ...stop, ...(await stopArgs()) };
      return writer.run(commands.addKey, { key, audit, stop: stopped });
    },
    replacedBy: async (id) => (await REPLACED.read(reader, { id, max: REPLACED_KEYS_MAX })).map((key) => key.id),
    keyByHash: async (hash) => (await KEY_BY_HASH.read(reader, { hash }))[0] ?? null,
    revokedAmong: async (hashes) =>
      (await REVOKED_AMONG.read(reader, { hashes: JSON.stringify(hashes) })).map(({ hash }) => hash),
    keyUsed: (id, at) => writer.run(commands.useKey, { id, at }),
    keyUse: (accountId, now) => readUse({ sql: reader }, accountId, now),
    keys: (accountId, limit) => KEYS.read(reader, { accountId, limit }),
    revokeKey: (accountId, id, at, { by = null, audit, pause } = {}) =>
      writer.run(commands.revokeKey, { accountId, id, at, by, audit, pause }),
    hasHold: async () => (await HOLDS.read(reader, {})).length > 0,
    stopOthers: async (stop) => writer.run(commands.stopOthers, { stop, ...(await stopArgs()) }),
    list: (limit) => LIST.read(reader, { limit }),
    allow: (id, end) => writer.run(commands.allow, { id, ...end }),
  };
}

/** Not by time: after a clock was set back, a later sign-up could look older. */
const ADDED = sql`${accounts}.${addedOrder}`;

/** The columns of `Account`; only lists show whether it was allowed. */
const ACCOUNT = { id: accounts.id, sealedRootSecret: accounts.sealedRootSecret, createdAt: accounts.createdAt };

const FIRST = prepare(() => query.select(ACCOUNT).from(accounts).orderBy(ADDED).limit(1));

/** The id of the account that the first start created. No account is ever deleted, so it stays the same. */
export async function readFirstId(reader: Sql): Promise<string | null> {
  return (await FIRST.read(reader, {}))[0]?.id ?? null;
}

const FIND = prepare((arg: Args<"id">) => query.select(ACCOUNT).from(accounts).where(eq(accounts.id, arg.id)));

const FIND_KEY = prepare((arg: Args<"id" | "accountId">) =>
  query
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.id, arg.id), eq(apiKeys.accountId, arg.accountId))),
);

const KEY_BY_HASH = prepare((arg: Args<"hash">) => query.select().from(apiKeys).where(eq(apiKeys.hash, arg.hash)));

const REVOKED_AMONG = prepare((arg: Args<"hashes">) =>
  query
    .select({ hash: apiKeys.hash })
    .from(apiKeys)
    .where(and(isOneOf(apiKeys.hash, arg.hashes), isNotNull(apiKeys.revokedAt))),
);

const KEYS = prepare((arg: Args<"accountId" | "limit">) => {
  const ofAccount = query.select().from(apiKeys).where(eq(apiKeys.accountId, arg.accountId));
  return ofAccount.orderBy(nullsFirst(apiKeys.revokedAt), apiKeys.createdAt, apiKeys.id).limit(arg.limit);
});

/** Follows `replaces` by the primary key; bounded, even if rows were altered into a cycle. The builder has no recursion. */
const REPLACED = prepare((arg: Args<"id" | "max">) => {
  const { id, replaces } = apiKeys;
  return sql<{ readonly id: string }>`with recursive replaced (id, depth) as (
      select ${replaces}, 1 from ${apiKeys} where ${id} = ${arg.id} and ${replaces} is not null
      union all
      select ${replaces}, replaced.depth + 1 from replaced join ${apiKeys} on ${id} = replaced.id
      where ${replaces} is not null and replaced.depth < ${arg.max})
    select id from replaced`;
});

/** The id of the account that the first start made. */
const FIRST_ID = sql`(select ${sql.identifier("id")} from ${accounts} order by ${addedOrder} limit 1)`;

/** The keys of the first account that have, or had, a hold. */
const HOLDS = prepare(() =>
  query
    .select({ id: apiKeys.id })
    .from(apiKeys)
    .where(and(sql`${apiKeys.accountId} = ${FIRST_ID}`, ne(apiKeys.hold, "none")))
    .limit(1),
);

/** Stopped accounts first, then the newest. */
const LIST = prepare((arg: Args<"limit">) => {
  const emails = query.select({ email: people.email }).from(members).innerJoin(people, eq(people.id, members.personId));
  const isMember = sql`${members.accountId} = ${accounts.id}`;
  const email = emails.where(isMember).orderBy(members.joinedAt, members.personId).limit(1);
  const isStoppedNow = sql<boolean>`${isStopped(accounts.id)}`.mapWith(Boolean).as("is_stopped");
  return query
    .select({
      id: accounts.id,
      email: sql<string | null>`${email}`.as("email"),
      createdAt: accounts.createdAt,
      isFirst: sql<boolean>`${accounts.id} = ${FIRST_ID}`.mapWith(Boolean).as("is_first"),
      isStopped: isStoppedNow,
      allowedAt: accounts.allowedAt,
    })
    .from(accounts)
    .orderBy(desc(isStoppedNow), desc(ADDED))
    .limit(arg.limit);
});
