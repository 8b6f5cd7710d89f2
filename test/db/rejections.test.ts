import { expect, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { migrate } from "../../db/libsql/migrate.ts";
import { cancel } from "../../src/core/changes.ts";
import { REJECTION_WINDOW_MS, REJECTIONS_PER_KEY_MAX } from "../../src/core/limits.ts";
import { ACCOUNT, aDecision, anAction, creationOf, KEY, later, NOON, writeOf } from "../support/factory.ts";
import { storeOver, temporaryFolder } from "../support/store.ts";
import { runStatements } from "../../db/commands/command.ts";

test("a key with as many rejections as are kept may ask for nothing more, until the oldest counts no more", async () => {
  await using folder = await temporaryFolder();
  const sql = openFile(folder.file);
  await migrate(sql, NOON);
  await runStatements(sql, [
    {
      sql: `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO rejections (account_id, key_id, digest, kind, at, action_id, run, actor)
        SELECT ?, ?, 'other ' || i, 'rejected', ? + i, 'act_x', 1, 'key:boss' FROM n`,
      args: [REJECTIONS_PER_KEY_MAX - 1, ACCOUNT, KEY, NOON.getTime()],
    },
  ]);
  const { actions, rejections } = storeOver(sql);
  const rejection = { kind: "asked", digest: "d", similar: "s", by: "key:ci", reason: "why" } as const;
  const ask = (at: Date) => actions.create({ ...creationOf(anAction({ approve: true, createdAt: at })), rejection });
  const now = later(REJECTION_WINDOW_MS - 1);
  expect(await ask(now)).toMatchObject({ kind: "rejected_before", rejections: { fullSince: NOON } });
  const count = await rejections.count({ accountId: ACCOUNT, keyId: KEY, digest: "d" }, now);
  expect(count).toEqual({ rejectedAt: null, repeatedAt: [], fullSince: NOON });

  // Neither is one more kept: an owner's own request is rejected all the same.
  const held = anAction({ approve: true });
  await actions.create({ ...creationOf(held), rejection: null });
  const change = writeOf(cancel(held, aDecision(now)), now);
  expect(await actions.apply({ ...change, rejection: { ...rejection, kind: "rejected" } })).toBe(true);
  expect(await sql.read({ sql: "SELECT count(*) AS n FROM rejections", args: [] })).toEqual([
    { n: REJECTIONS_PER_KEY_MAX },
  ]);

  expect(await ask(later(REJECTION_WINDOW_MS))).toMatchObject({ kind: "created" });
  expect(await rejections.prune(later(REJECTION_WINDOW_MS * 2))).toBe(true);
  await sql.close();
});
