import { and, count, desc, eq, exists, getTableColumns, isNotNull, isNull, ne, notExists, sql } from "drizzle-orm";
import type { Actor } from "../../src/core/roles.ts";
import { CALLBACK_HOSTS_MAX, REPLACED_KEYS_MAX } from "../../src/core/limits.ts";
import type { PauseEnd } from "../../src/core/pause.ts";
import type {
  Account,
  AccountStop,
  AccountStore,
  ApiKey,
  FirstAccountExtras,
  CallbackHostStore,
} from "../../src/core/account-store.ts";
import { auditChange, entryValues, insertEntry } from "./audit.ts";
import type { StoreContext } from "./context.ts";
import { addedOrder, isOneOf, nullsFirst, randomHex } from "./dialect.ts";
import { callbackHostLock, firstStartLock, holdLock, pauseLock, stopLock } from "./locks.ts";
import { isStopped, pauseRevoked } from "./pauses.ts";
import { readUse } from "./key-days.ts";
import { allOf, type Args, changed, insertWhere, prepare, query, valuesOf } from "./query.ts";
import { inheritRejections } from "./approvals.ts";
import { accounts, apiKeys, callbackHosts, members, pauses, people, welcomeLinks } from "../libsql/schema.ts";
import { putFirstFact } from "./secrets.ts";
import type { Lock, Sql, Statement } from "./sql.ts";

/** Accounts and keys. */
export function createAccountStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): AccountStore {
  /** Whether the first statement wrote a row. */
  const isWritten = async (statements: readonly Statement[], locks: readonly Lock[] = []) =>
    (await writer.write(statements, locks))[0]?.changes === 1;
  const findKey = async (accountId: string, id: string) => (await FIND_KEY.read(reader, { accountId, id }))[0] ?? null;
  return {
    findKey,
    first: async () => (await FIRST.read(reader, {}))[0] ?? null,
    find: async (id) => (await FIND.read(reader, { id }))[0] ?? null,
    async create(account, keys, extras) {
      if (extras !== undefined) return isWritten(firstRows(account, keys, extras), [firstStartLock]);
      return isWritten([ADD_ACCOUNT.bind({ ...account }), ...keys.map((key) => ADD_KEY.bind(keyValues(key)))]);
    },
    async addKey(key, audit, stop) {
      const stopped =
        stop === undefined ? [] : [stopOthers(stop), FIRST_HOLD.bind({ ...entryValues(stop.audit), key: key.id })];
      const inherited = key.replaces === null ? [] : [inheritRejections(key, key.replaces)];
      // Accounts are stopped with the first hold, and no claim of them may go on by what it saw before.
      const locks = stop === undefined ? [] : [stopLock, holdLock];
      await writer.write([ADD_KEY.bind(keyValues(key)), ...auditChange(audit), ...stopped, ...inherited], locks);
    },
    replacedBy: async (id) => (await REPLACED.read(reader, { id, max: REPLACED_KEYS_MAX })).map((key) => key.id),
    keyByHash: async (hash) => (await KEY_BY_HASH.read(reader, { hash }))[0] ?? null,
    revokedAmong: async (hashes) =>
      (await REVOKED_AMONG.read(reader, { hashes: JSON.stringify(hashes) })).map(({ hash }) => hash),
    async keyUsed(id, at) {
      await writer.write([USE_KEY.bind({ id, at })]);
    },
    keyUse: (accountId, now) => readUse({ sql: reader }, accountId, now),
    keys: (accountId, limit) => KEYS.read(reader, { accountId, limit }),
    async revokeKey(accountId, id, at, { by = null, audit, pause } = {}) {
      const paused = pause === undefined ? [] : [pauseRevoked(pause.pause), ...auditChange(pause.audit)];
      const locks = pause === undefined ? [] : [pauseLock(accountId)];
      await writer.write([REVOKE_KEY.bind({ accountId, id, at, by }), ...auditChange(audit), ...paused], locks);
      return findKey(accountId, id);
    },
    hasHold: async () => (await HOLDS.read(reader, {})).length > 0,
    async stopOthers(stop) {
      const [stopped] = await writer.write([stopOthers(stop)], [stopLock]);
      return stopped?.changes ?? 0;
    },
    list: (limit) => LIST.read(reader, { limit }),
    async allow(accountId, end) {
      const [allowed] = await writer.write(allow(accountId, end));
      return allowed?.changes === 1 || (await FIND.read(reader, { id: accountId })).length > 0;
    },
  };
}

/** The first statement writes one row unless there is an account already: nodes may start at the same time. */
function firstRows(
  account: Account,
  keys: readonly ApiKey[],
  { audit, link, facts }: FirstAccountExtras,
): readonly Statement[] {
  return [
    ADD_FIRST.bind({ ...account }),
    ...keys.map((key) => ADD_KEY_OF_SIGN_UP.bind(keyValues(key))),
    ...audit.flatMap(auditChange),
    INVITE.bind({ ...link }),
    ...Object.entries(facts).map(([name, value]) => putFirstFact(name, value)),
  ];
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

const isKey = (arg: Args<"id" | "accountId">) => and(eq(apiKeys.id, arg.id), eq(apiKeys.accountId, arg.accountId));

const FIND_KEY = prepare((arg: Args<"id" | "accountId">) => query.select().from(apiKeys).where(isKey(arg)));

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

const ADD_ACCOUNT = prepare((arg: Args<keyof typeof ACCOUNT>) =>
  query.insert(accounts).values(valuesOf(arg, ["id", "sealedRootSecret", "createdAt"])),
);

const ADD_FIRST = prepare((arg: Args<keyof typeof ACCOUNT>) =>
  insertWhere(
    accounts,
    notExists(query.select({ id: accounts.id }).from(accounts)),
    valuesOf(arg, ["id", "sealedRootSecret", "createdAt"]),
  ),
);

// Safe: an object's own keys.
const KEY = Object.keys(getTableColumns(apiKeys)) as (keyof ApiKey)[];

function keyValues({ hosts, methods, ...key }: ApiKey) {
  return { ...key, hosts: hosts && JSON.stringify(hosts), methods: methods && JSON.stringify(methods) };
}

const ADD_KEY = prepare((arg: Args<keyof ApiKey>) => query.insert(apiKeys).values(valuesOf(arg, KEY)));

const USE_KEY = prepare((arg: Args<"id" | "at">) =>
  query
    .update(apiKeys)
    .set({ lastUsedAt: sql`${arg.at}` })
    .where(eq(apiKeys.id, arg.id)),
);

const REVOKE_KEY = prepare((arg: Args<"id" | "accountId" | "at" | "by">) =>
  query
    .update(apiKeys)
    .set({ revokedAt: sql`${arg.at}`, revokedBy: sql`${arg.by}` })
    .where(and(isKey(arg), isNull(apiKeys.revokedAt))),
);

const LINK = ["hash", "personId", "accountId", "createdAt", "expiresAt"] as const;

const INVITE = prepare((arg: Args<(typeof LINK)[number]>) => insertWhere(welcomeLinks, changed, valuesOf(arg, LINK)));

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
const holds = () => query.select({ id: apiKeys.id }).from(apiKeys).where(isHoldOfFirst);

const isHoldOfFirst = and(sql`${apiKeys.accountId} = ${FIRST_ID}`, ne(apiKeys.hold, "none"));

const HOLDS = prepare(() => holds().limit(1));

/** Written if this key is the first one of the first account with a hold. */
const FIRST_HOLD = insertEntry((arg: Args<"key">) => {
  const own = query.select({ id: apiKeys.id }).from(apiKeys);
  const isFirst = notExists(
    query
      .select({ id: apiKeys.id })
      .from(apiKeys)
      .where(and(ne(apiKeys.id, arg.key), isHoldOfFirst)),
  );
  return allOf(exists(own.where(and(eq(apiKeys.id, arg.key), isHoldOfFirst))), isFirst);
});

const STOP = prepare((arg: Args<"reason" | "at">) =>
  query
    .insert(pauses)
    .select(
      query
        .select({
          id: sql<string>`'pau_' || ${randomHex}`.as("id"),
          accountId: sql<string>`${accounts.id}`.as("account_id"),
          kind: sql<"sign_up">`'sign_up'`.as("kind"),
          subject: sql<string>`${accounts.id}`.as("subject"),
          reason: sql<string>`${arg.reason}`.as("reason"),
          cancels: sql<boolean>`0`.as("cancels"),
          createdAt: sql<Date>`${arg.at}`.as("created_at"),
          createdBy: sql<"system">`'system'`.as("created_by"),
          endedAt: sql<null>`null`.as("ended_at"),
          endedBy: sql<Actor>`null`.as("ended_by"),
        })
        .from(accounts)
        .where(and(isNull(accounts.allowedAt), sql`${accounts.id} <> ${FIRST_ID}`)),
    )
    .onConflictDoNothing(),
);

/** Stops every account that was not allowed, except the first. */
function stopOthers({ at, reason }: AccountStop): Statement {
  return STOP.bind({ at, reason });
}

const ALLOW = prepare((arg: Args<"id" | "at" | "by">) =>
  query
    .update(accounts)
    .set({ allowedAt: sql`${arg.at}`, allowedBy: sql`${arg.by}` })
    .where(and(eq(accounts.id, arg.id), isNull(accounts.allowedAt))),
);

const END_STOP = prepare((arg: Args<"id" | "at" | "by">) => {
  const isOfAccount = and(eq(pauses.accountId, arg.id), eq(pauses.kind, "sign_up"), eq(pauses.subject, arg.id));
  const end = { endedAt: sql`${arg.at}`, endedBy: sql`${arg.by}` };
  return query
    .update(pauses)
    .set(end)
    .where(and(isOfAccount, isNull(pauses.endedAt)));
});

/** The first statement writes one row unless the account is allowed already. */
function allow(id: string, { at, by, audit }: PauseEnd): readonly Statement[] {
  return [ALLOW.bind({ id, at, by }), ...auditChange(audit), END_STOP.bind({ id, at, by })];
}

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

const ADD_KEY_OF_SIGN_UP = prepare((arg: Args<keyof ApiKey>) => insertWhere(apiKeys, changed, valuesOf(arg, KEY)));

const HOSTS = prepare((arg: Args<"accountId">) => {
  const { host, createdAt } = callbackHosts;
  return query
    .select({ host, createdAt })
    .from(callbackHosts)
    .where(eq(callbackHosts.accountId, arg.accountId))
    .orderBy(host);
});

const isHost = (arg: Args<"accountId" | "host">) =>
  and(eq(callbackHosts.accountId, arg.accountId), eq(callbackHosts.host, arg.host));

const FIND_HOST = prepare((arg: Args<"accountId" | "host">) => query.select().from(callbackHosts).where(isHost(arg)));

/** The limit is part of the statement, so racing inserts can't exceed it. */
const ADD_HOST = prepare((arg: Args<"accountId" | "host" | "createdAt">) => {
  const listed = query.select({ n: count() }).from(callbackHosts).where(eq(callbackHosts.accountId, arg.accountId));
  const values = valuesOf(arg, ["accountId", "host", "createdAt"]);
  return insertWhere(callbackHosts, sql`${listed} < ${CALLBACK_HOSTS_MAX}`, values).onConflictDoNothing();
});

const REMOVE_HOST = prepare((arg: Args<"accountId" | "host">) => query.delete(callbackHosts).where(isHost(arg)));

/** Hosts that callbacks of keys with a hold may go to. */
export function createCallbackHostStore({
  sql: reader,
  writer,
}: Pick<StoreContext, "sql" | "writer">): CallbackHostStore {
  return {
    list: (accountId) => HOSTS.read(reader, { accountId }),
    async add(accountId, host, createdAt) {
      const [added] = await writer.write(
        [ADD_HOST.bind({ accountId, host, createdAt })],
        [callbackHostLock(accountId)],
      );
      if (added?.changes === 1) return "added";
      return (await FIND_HOST.read(reader, { accountId, host })).length === 0 ? "full" : "added";
    },
    async remove(accountId, host) {
      const [removed] = await writer.write([REMOVE_HOST.bind({ accountId, host })]);
      return removed?.changes === 1;
    },
  };
}
