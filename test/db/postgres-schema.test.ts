import { expect, test } from "bun:test";
import { is } from "drizzle-orm";
import { getTableConfig as postgresConfig, PgTable } from "drizzle-orm/pg-core";
import { getTableConfig as sqliteConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import * as sqlite from "../../db/libsql/schema.ts";
import * as postgres from "../../db/postgres/schema.ts";

/** What only PostgreSQL has: rows are added in an order without a column in SQLite, and several nodes need the rest. */
const OWN_TABLES = ["jobs", "nodes", "positions"];
const OWN_COLUMNS = ["accounts.seq bigserial, never null"];

interface Described {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly notNull: boolean; getSQLType(): string }[];
  readonly indexes: readonly { readonly config: { readonly name?: string | undefined; readonly unique?: boolean } }[];
  readonly checks: readonly { readonly name: string }[];
}

const TYPES: Readonly<Record<string, string>> = { 'text collate "C"': "text", bigint: "integer", smallint: "integer" };

/** Columns with their types and whether they may be null, indexes and checks: a line each. */
function linesOf({ name, columns, indexes, checks }: Described): readonly string[] {
  return [
    ...columns.map((column) => {
      const type = TYPES[column.getSQLType()] ?? column.getSQLType();
      const isNumber = type === "bigserial" && name !== "accounts";
      return `${name}.${column.name} ${isNumber ? "integer" : type}${column.notNull ? ", never null" : ""}`;
    }),
    ...indexes.map(({ config }) => `${name}: ${config.unique === true ? "unique " : ""}index ${config.name}`),
    ...checks.map((check) => `${name}: check ${check.name}`),
  ];
}

test("SQLite and PostgreSQL have the same tables, columns, indexes and checks", () => {
  const inSqlite = Object.values(sqlite).flatMap((one) => (is(one, SQLiteTable) ? [sqliteConfig(one)] : []));
  const inPostgres = Object.values(postgres).flatMap((one) => (is(one, PgTable) ? [postgresConfig(one)] : []));
  const shared = inPostgres.filter(({ name }) => !OWN_TABLES.includes(name));
  expect(inPostgres.length).toBe(shared.length + OWN_TABLES.length);
  expect(inSqlite.length).toBeGreaterThan(15);
  const lines = [...inSqlite.flatMap(linesOf), ...OWN_COLUMNS].toSorted();
  expect(shared.flatMap(linesOf).toSorted()).toEqual(lines);
});
