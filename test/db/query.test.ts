import { expect, test } from "bun:test";
import { and, eq, sql } from "drizzle-orm";
import { type Args, prepare, query } from "../../db/sql/query.ts";
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

test("two columns of one name are refused: rows are objects", () => {
  const twice = () => prepare(() => query.select({ one: apiKeys.id, two: apiKeys.id }).from(apiKeys)).bind({});
  expect(twice).toThrow("Two columns have one name.");
});
