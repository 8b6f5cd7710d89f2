import { describe, expect, test } from "bun:test";
import { hasPostgres } from "../support/postgres.ts";
import { openPostgresStore } from "../support/postgres-store.ts";
import { aCreation, NOON } from "../support/factory.ts";
import { claimDue, claimOf } from "./conformance/steps.ts";
import { testQueueOfStore } from "./conformance/suite.ts";

describe.skipIf(!hasPostgres)("the store on PostgreSQL", () => {
  testQueueOfStore(openPostgresStore);

  test("a claim reads rows that are due from the time that it is given", async () => {
    await using db = await openPostgresStore();
    const { action } = aCreation();
    await db.actions.create(aCreation());
    const from = (dueFromMs: number) => {
      const { lanes, ...claim } = claimOf(action);
      return { ...claim, lanes: lanes.map((lane) => ({ ...lane, dueFromMs })) };
    };
    expect(await claimDue(db.actions, action, from(NOON.getTime() + 1))).toEqual([]);
    expect(await claimDue(db.actions, action, from(NOON.getTime()))).toHaveLength(1);
  });
});
