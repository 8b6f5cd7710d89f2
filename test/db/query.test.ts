import { expect, test } from "bun:test";
import { and, eq, sql } from "drizzle-orm";
import { type Args, changed, insertWhere, prepare, prepareVariants, query } from "../../db/sql/query.ts";
import { isOneOf } from "../../db/sql/dialect.ts";
import { apiKeys } from "../../db/libsql/schema.ts";
import { NOON } from "../support/factory.ts";

test("a prepared statement binds its arguments in their order, and has other values as literals", () => {
  const find = prepare((arg: Args<"keys" | "account" | "limit">) =>
    query
      .select({ id: apiKeys.id })
      .from(apiKeys)
      .where(and(eq(apiKeys.accountId, arg.account), isOneOf(apiKeys.id, arg.keys), eq(apiKeys.name, "it's")))
      .limit(arg.limit),
  );
  expect(find.bind({ limit: 3, account: "a", keys: '["k"]' })).toMatchObject({
    sql: `select "id" from "api_keys" where ("api_keys"."account_id" = ?1 and "api_keys"."id" in (select j.value from json_each(?2) j) and "api_keys"."name" = 'it''s') limit ?3`,
    args: ["a", '["k"]', 3],
  });
});

test("times are bound in milliseconds, and rows are as the table's types say", async () => {
  const use = prepare((arg: Args<"at">) => query.update(apiKeys).set({ lastUsedAt: sql`${arg.at}` }));
  expect(use.bind({ at: NOON }).args).toEqual([NOON.getTime()]);
  const isNew = sql<boolean>`${apiKeys.lastUsedAt} is null`.mapWith(Boolean).as("is_new");
  const list = prepare(() => query.select({ at: apiKeys.createdAt, end: apiKeys.revokedAt, isNew }).from(apiKeys));
  const found = [{ created_at: NOON.getTime(), revoked_at: null, is_new: 1 }];
  expect(await list.read({ read: () => Promise.resolve(found) }, {})).toEqual([{ at: NOON, end: null, isNew: true }]);
});

test("an insert with a condition gives what has no value its default", () => {
  const row = { id: "k", accountId: "a", name: "n", role: "agent", hold: "none", hash: "h", last4: "l" } as const;
  const put = prepare((arg: Args<"at">) => insertWhere(apiKeys, changed, { ...row, createdAt: arg.at }));
  expect(put.bind({ at: NOON })).toMatchObject({
    sql:
      `insert into "api_keys" ("id", "account_id", "name", "role", "hold", "hash", "last4", "created_at", "last_used_at", ` +
      `"revoked_at", "scope", "replaces", "hosts", "methods", "daily_actions", "expires_at", "created_by", "revoked_by", "created_by_id") ` +
      `select 'k', 'a', 'n', 'agent', 'none', 'h', 'l', ?1, null, null, 'own', null, null, null, null, null, null, null, null where changes() > 0`,
    args: [NOON.getTime()],
  });
});

test("in a variant what is null and words of few values are text, and what differs or is foreign is bound", () => {
  const rename = prepareVariants(
    { whileNull: ["at", "end"], always: ["role"] },
    (arg: Args<"id" | "name" | "role" | "at" | "end">) => {
      const { id, name, role, at, end } = arg;
      const values = { name: sql`${name}`, role: sql`${role}`, lastUsedAt: sql`${at}`, revokedAt: sql`${end}` };
      return query.update(apiKeys).set(values).where(eq(apiKeys.id, id));
    },
  );
  const set = (role: string, at: string, end: string, id: string) =>
    `update "api_keys" set "name" = ?1, "role" = ${role}, "last_used_at" = ${at}, "revoked_at" = ${end} where "api_keys"."id" = ${id}`;
  const key = { id: "k", name: "it's", role: "agent", at: null, end: null };
  const first = rename.bind(key);
  expect(first).toMatchObject({ sql: set("'agent'", "null", "null", "?2"), args: ["it's", "k"] });
  expect(first.source?.text.args).toHaveLength(2);
  expect(rename.bind({ ...key, name: "other" }).sql).toBe(first.sql);
  expect(rename.bind({ ...key, role: "owner", end: 7 })).toMatchObject({
    sql: set("'owner'", "null", "?2", "?3"),
    args: ["it's", 7, "k"],
  });
  for (let n = 0; n < 100; n += 1) rename.bind({ ...key, role: `role ${n}` });
  // Memory, here and in the database, must not grow with the values.
  expect(rename.bind({ ...key, role: "last" })).toMatchObject({
    sql: set("?2", "?3", "?4", "?5"),
    args: ["it's", "last", null, null, "k"],
  });
});

test("two columns of one name are refused: rows are objects", () => {
  const twice = () => prepare(() => query.select({ one: apiKeys.id, two: apiKeys.id }).from(apiKeys)).bind({});
  expect(twice).toThrow("Two columns have one name.");
});
