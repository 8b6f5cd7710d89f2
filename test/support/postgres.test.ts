import { describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { createDatabase, dropDatabase, hasPostgres } from "./postgres.ts";

/** A connection that is closed at the end of its block. */
function open(url: string): SQL {
  return new SQL(url, { max: 1 });
}

describe.skipIf(!hasPostgres)("PostgreSQL of the tests", () => {
  test("every call gives an empty database of its own", async () => {
    const [one, other] = await Promise.all([createDatabase(), createDatabase()]);
    await using first = open(one);
    await using second = open(other);
    await first`CREATE TABLE t (n int)`;
    const tables: readonly unknown[] = await second`SELECT 1 FROM pg_tables WHERE tablename = 't'`;
    expect(one).not.toBe(other);
    expect(tables).toHaveLength(0);
    const [encoding]: readonly unknown[] = await second`SHOW server_encoding`;
    expect(encoding).toEqual({ server_encoding: "UTF8" });
  });

  test("a template is filled once and copied", async () => {
    let filled = 0;
    const template = {
      name: `a table ${crypto.randomUUID()}`,
      async prepare(url: string) {
        filled += 1;
        await using sql = open(url);
        await sql`CREATE TABLE t AS SELECT 7 AS n`;
      },
    };
    const urls = await Promise.all([createDatabase(template), createDatabase(template), createDatabase(template)]);
    for (const url of urls) {
      await using sql = open(url);
      const rows: readonly unknown[] = await sql`SELECT n FROM t`;
      expect([...rows]).toEqual([{ n: 7 }]);
    }
    expect(filled).toBe(1);
  });

  test("a database is dropped under whoever is connected to it", async () => {
    const url = await createDatabase();
    const sql = open(url);
    await sql`SELECT 1`;
    await dropDatabase(url);
    expect(await sql`SELECT 1`.then(String, () => "gone")).toBe("gone");
    await sql.close();
  });
});
