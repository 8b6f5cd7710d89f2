import { expect, setDefaultTimeout, test } from "bun:test";
import { nodeKills } from "../support/faults/node-kills.ts";
import { createDatabase, hasPostgres } from "../support/postgres.ts";

setDefaultTimeout(120_000);

/** At a small width; `npm run faults` has it at its full one, and the other faults of several nodes. */
test.skipIf(!hasPostgres)("nodes on one database are killed, and nothing is lost or sent twice", async () => {
  const width = { clients: 4, pauseMs: 100, chance: Math.random, isAlone: false };
  const { figures, problems } = await nodeKills({
    databaseUrl: await createDatabase(),
    nodes: 2,
    kills: 1,
    actions: 100,
    width,
  });
  console.log(JSON.stringify(figures));
  expect(problems).toEqual([]);
});
