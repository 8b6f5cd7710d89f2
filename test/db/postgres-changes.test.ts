import { describe, expect, test } from "bun:test";
import { openPostgres } from "../../db/postgres/connection.ts";
import { NOON } from "../support/factory.ts";
import { hasPostgres } from "../support/postgres.ts";
import { openMigrated, openPostgresStore } from "../support/postgres-store.ts";
import { storeOver } from "../support/store.ts";
import { testChangesOfStore } from "./conformance/suite.ts";

describe.skipIf(!hasPostgres)("the store on PostgreSQL", () => {
  testChangesOfStore(openPostgresStore);

  test("each step of pruning the audit log deletes as many entries, though commits that failed have left out numbers", async () => {
    await using db = await openMigrated();
    await db.client.query(`insert into audit (seq, at, account_id, actor, kind, subject, client, detail)
      select n * 9, n, 'acc_a', 'system', 'paused', n, '', '{}' from generate_series(1, 1200) n`);
    const sql = openPostgres(db.url);
    const { audit } = storeOver(sql, { isOnlyProcess: false });
    const steps = [await audit.prune(NOON), await audit.prune(NOON), await audit.prune(NOON)];
    await sql.close();
    expect(steps).toEqual([true, true, false]);
    expect((await db.client.query("select subject from audit")).rows).toEqual([{ subject: "1200" }]);
  });
});
