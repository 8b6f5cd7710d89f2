import { expect, test } from "bun:test";
import { and, eq, lt, sql } from "drizzle-orm";
import { sqliteDialect, postgresDialect, type Row, type Statement } from "../../db/sql/dialect.ts";
import { all, prepare, qb } from "../../db/sql/read.ts";
import { apiKeys } from "../../db/tables.ts";
import { NOON } from "../support/factory.ts";

/** A connection that keeps what it is asked, and answers with these rows. */
function reading(dialect: typeof sqliteDialect, rows: readonly Row[] = []) {
  const asked: Statement[] = [];
  const answer = (statement: Statement) => {
    asked.push(statement);
    return Promise.resolve(rows);
  };
  return { reader: { dialect, read: answer }, asked };
}

const FIND = prepare({ keys: "list", account: "text", before: "time", limit: "number" }, (arg, { isOneOf }) =>
  qb
    .select({ id: apiKeys.id })
    .from(apiKeys)
    .where(
      and(
        eq(apiKeys.accountId, arg.account),
        isOneOf(apiKeys.id, arg.keys),
        sql`${apiKeys.createdAt} < ${arg.before} and ${apiKeys.accountId} <> ${arg.account}`,
        eq(apiKeys.name, "it's"),
      ),
    )
    .limit(arg.limit),
);

const VALUES = { limit: 9, account: "a", keys: ["k", 'a"b\\c', [1]], before: NOON };

test("a read has its arguments in the order of their places, each once, and other values as literals", async () => {
  const sqlite = reading(sqliteDialect);
  await FIND.all(sqlite.reader, VALUES);
  expect(sqlite.asked).toEqual([
    {
      sql: `select "id" from "api_keys" where ("api_keys"."account_id" = ?1 and "api_keys"."id" in (select j.value from json_each(?2) j) and "api_keys"."created_at" < ?3 and "api_keys"."account_id" <> ?1 and "api_keys"."name" = 'it''s') limit ?4`,
      args: ["a", String.raw`["k","a\"b\\c",[1]]`, NOON.getTime(), 9],
    },
  ]);
});

test("a read has the words of its database", async () => {
  const postgres = reading(postgresDialect);
  await FIND.all(postgres.reader, VALUES);
  expect(postgres.asked).toEqual([
    {
      sql: `select "id" from "api_keys" where ("api_keys"."account_id" = $1::text and "api_keys"."id" = any($2::text[]) and "api_keys"."created_at" < $3::bigint and "api_keys"."account_id" <> $1::text and "api_keys"."name" = 'it''s') limit $4::bigint`,
      args: ["a", String.raw`{"k","a\"b\\c","[1]"}`, NOON.getTime(), 9],
    },
  ]);
});

test.each([sqliteDialect, postgresDialect])("rows are as the types of the table say", async (dialect) => {
  const list = prepare({}, () => {
    const isNew = sql<boolean>`${apiKeys.lastUsedAt} is null`.mapWith(Boolean).as("is_new");
    return qb.select({ at: apiKeys.createdAt, end: apiKeys.revokedAt, isNew }).from(apiKeys);
  });
  const found = [{ created_at: NOON.getTime(), revoked_at: null, is_new: 1 }];
  expect(await list.all(reading(dialect, found).reader, {})).toEqual([{ at: NOON, end: null, isNew: true }]);
  expect(await list.get(reading(dialect, found).reader, {})).toEqual({ at: NOON, end: null, isNew: true });
  expect(await list.raw(reading(dialect, found).reader, {})).toEqual(found);
  expect(await list.get(reading(dialect).reader, {})).toBeNull();
});

test("two columns of one name are refused: rows are objects", () => {
  const twice = prepare({}, () => qb.select({ one: apiKeys.id, two: apiKeys.id }).from(apiKeys));
  expect(() => twice.raw(reading(sqliteDialect).reader, {})).toThrow("Two columns have one name.");
});

test("a query of values has each in its place, as its column is stored", async () => {
  const { reader, asked } = reading(postgresDialect);
  const { isOneOf } = postgresDialect;
  const isOne = and(isOneOf(apiKeys.id, ["k", 'a"b']), lt(apiKeys.createdAt, NOON), sql`${apiKeys.name} <> ${"it's"}`);
  await all(reader, qb.select({ id: apiKeys.id }).from(apiKeys).where(isOne).limit(7));
  expect(asked).toEqual([
    {
      sql: `select "id" from "api_keys" where ("api_keys"."id" = any($1) and "api_keys"."created_at" < $2 and "api_keys"."name" <> $3) limit $4`,
      args: [String.raw`{"k","a\"b"}`, NOON.getTime(), "it's", 7],
      isVaried: false,
    },
  ]);
});
