import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { canFakeTime } from "../support/faults/clock-jump.ts";
import { databaseFailsOver, databaseStopped } from "../support/faults/database-away.ts";
import { nodeClocks } from "../support/faults/node-clocks.ts";
import { nodeCutOff } from "../support/faults/node-cut-off.ts";
import { nodeFrozen } from "../support/faults/node-frozen.ts";
import { nodeKills } from "../support/faults/node-kills.ts";
import type { FaultReport } from "../support/faults/report.ts";
import { isPossible } from "../support/namespace.ts";
import { createDatabase, hasPostgres, isOwnServer } from "../support/postgres.ts";

/**
 * Faults of several nodes on one PostgreSQL at a small width; `npm run faults` has them at their full one. They wait for
 * leases to end for most of the time, so they run beside each other; `npm test` has the first, `npm run test:long` all.
 */
setDefaultTimeout(120_000);
const isShort = process.env["LONG_TESTS"] === undefined;
const WIDTH = { clients: 4, pauseMs: 100, chance: Math.random, isAlone: false };

function held({ figures, problems }: FaultReport): void {
  console.log(JSON.stringify(figures));
  expect(problems).toEqual([]);
}

describe.skipIf(!hasPostgres)("several nodes on one database", () => {
  test.concurrent("nodes are killed", async () => {
    held(await nodeKills({ databaseUrl: await createDatabase(), nodes: 2, kills: 1, actions: 100, width: WIDTH }));
  });

  test.concurrent.skipIf(isShort)("a node is frozen past its lease", async () => {
    held(await nodeFrozen({ databaseUrl: await createDatabase(), nodes: 2, times: 1, width: WIDTH }));
  });

  test.concurrent.skipIf(isShort || !isOwnServer)("the database is stopped and started", async () => {
    held(await databaseStopped({ nodes: 2, awayMs: 2_000, times: 1, width: WIDTH }));
  });

  test.concurrent.skipIf(isShort || !isOwnServer)("the database fails over", async () => {
    held(await databaseFailsOver({ nodes: 2, awayMs: 500, width: WIDTH }));
  });

  test.concurrent.skipIf(isShort || !isOwnServer || !isPossible() || Bun.which("nft") === null)(
    "a node is cut off from the database",
    async () => {
      held(await nodeCutOff({ nodes: 2, ...WIDTH }));
    },
  );

  test.concurrent.skipIf(isShort || !canFakeTime())("the nodes' clocks differ, and one jumps", async () => {
    held(await nodeClocks({ databaseUrl: await createDatabase(), nodes: 2, eachMs: 1_000, width: WIDTH }));
  });
});
