import { describe, expect, test } from "bun:test";
import { ownMs } from "../support/core.ts";
import { openKeptFile } from "../support/kept-files.ts";
import { hasPostgres } from "../support/postgres.ts";
import { openPostgresStore } from "../support/postgres-store.ts";
import { createdAction } from "./conformance/steps.ts";

describe.each([
  ["a file", openKeptFile, true],
  ["PostgreSQL", openPostgresStore, hasPostgres],
])("the lanes on %s", (_, open, isThere) => {
  test.skipIf(!isThere)("are found as quickly behind a lane of many rows as behind one of few", async () => {
    const quickestOf = async (rows: number) => {
      await using db = await open();
      const { id } = await createdAction(db.actions);
      await db.copy(id, rows);
      let least = Number.POSITIVE_INFINITY;
      for (let turn = 0; turn < 10; turn += 1) {
        const startedMs = ownMs();
        expect(await db.actions.lanes(null, 10)).toHaveLength(1);
        least = Math.min(least, ownMs() - startedMs);
      }
      return least;
    };
    const few = await quickestOf(10);
    expect(await quickestOf(40_000)).toBeLessThan(5 * few + 1);
  });
});
