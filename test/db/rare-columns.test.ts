import { expect, test } from "bun:test";
import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { migrate } from "../../db/libsql/migrate.ts";
import type { Statement } from "../../db/sql/sql.ts";
import type { Action } from "../../src/core/action.ts";
import { aCreation, NOON } from "../support/factory.ts";
import { storeOver, temporaryFolder } from "../support/store.ts";

/** The statements of one create. */
async function statementsOf(action: Partial<Action>): Promise<readonly Statement[]> {
  await using folder = await temporaryFolder();
  const sql = openFile(join(folder.path, "outgate.db"));
  await migrate(sql, NOON);
  const written: Statement[] = [];
  const store = storeOver({
    ...sql,
    transact: (work) => {
      written.push(...work.statements);
      return sql.transact(work);
    },
  });
  await store.actions.create(aCreation(action));
  await store.close();
  return written;
}

test("a create that sets no rare column binds nothing for them, and writes no other row for them", async () => {
  const plain = await statementsOf({});
  const titled = await statementsOf({ title: "A title" });
  const noted = await statementsOf({ extras: { metadata: { a: "b" } } });
  const inserts = (statements: readonly Statement[]) => statements.filter(({ sql }) => sql.includes('into "actions"'));
  const [usual, rare] = [inserts(plain), inserts(titled)];
  expect([usual.length, rare.length]).toEqual([1, 1]);
  // Title, extras and expiry.
  expect(rare[0]?.args.length).toBe((usual[0]?.args.length ?? 0) + 3);
  expect(plain).toHaveLength(titled.length);
  expect(noted).toHaveLength(titled.length + 1);
});
