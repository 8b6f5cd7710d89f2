/**
 * Runs every fault of machines, disks, clocks and networks against the service at full size, and reports the results.
 * Exits with 1 when any promise was broken. Needs root, strace, nftables, libfaketime and PostgreSQL for all of it.
 *
 *   bun bench/faults.ts [--only kills,power] [--seconds 1800] [--actions 100000] [--seed 1]
 */
import { parseArgs } from "node:util";
import { answeredWhileFull, LEASE_MS } from "./faults/answered-full.ts";
import { clockJumps } from "./faults/clock-jump.ts";
import { diskErrors } from "../test/support/faults/disk-errors.ts";
import { diskFull } from "../test/support/faults/disk-full.ts";
import { fullAtNextStart } from "../test/support/faults/full-at-start.ts";
import { herd } from "./faults/herd.ts";
import { lateRequests } from "./faults/late-requests.ts";
import { databaseFailsOver, databaseStopped } from "./faults/database-away.ts";
import { databaseLocked } from "./faults/locked.ts";
import { mixedFaults } from "./faults/mixed.ts";
import { nodeClocks } from "./faults/node-clocks.ts";
import { nodeCutOff } from "./faults/node-cut-off.ts";
import { nodeDeath } from "./faults/node-death.ts";
import { nodeFrozen } from "./faults/node-frozen.ts";
import { nodeKills } from "../test/support/faults/node-kills.ts";
import { outOfMemory } from "../test/support/faults/out-of-memory.ts";
import { packetsLost } from "./faults/packets.ts";
import { powerCuts } from "../test/support/faults/power-cut.ts";
import { broken, type FaultReport } from "../test/support/faults/report.ts";
import { startsCut } from "../test/support/faults/start-cut.ts";
import { killAt, STOP_POINTS } from "../test/support/faults/stop-points.ts";
import { createDatabase, hasPostgres } from "../test/support/postgres.ts";
import { mulberry } from "./parts/chance.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    seconds: { type: "string", default: "1800" },
    actions: { type: "string", default: "100000" },
    seed: { type: "string", default: String(Date.now() % 1e6) },
  },
});
const seed = Number(values.seed);
const chance = mulberry(seed);

const KILLS_EACH = 10;
const CUTS = 30;
const HERD = 100_000;

const NODES = 4;
const NODE_KILLS = 10;
const FREEZES = 5;
const DATABASE_STOPS = 3;
const DATABASE_AWAY_MS = 10_000;
const STARTS_CUT = 12;
const WIDTH = { clients: 32, pauseMs: 0, chance, isAlone: true };

const FAULTS: Readonly<Record<string, () => Promise<FaultReport>>> = {
  "F2 stop points": killEverywhere,
  "F3 power cuts": () => powerCuts(CUTS, chance),
  "F4 fsync": () => diskErrors({ call: "fsync", error: "EIO", from: 5, count: 3, isAlone: true }),
  "F4 no room": () => diskErrors({ call: "pwrite64", error: "ENOSPC", from: 50, count: 20, isAlone: true }),
  "F4 write": () => diskErrors({ call: "pwrite64", error: "EIO", from: 50, count: 20, isAlone: true }),
  "F5 full": () => diskFull("while it runs"),
  "F5 full at the start": () => diskFull("at the start"),
  "F5 full when it starts again": () => fullAtNextStart("SIGTERM"),
  "F5 answered while full": () => answeredWhileFull(2 * LEASE_MS),
  "F6 locked": () => databaseLocked(2_000),
  "F9 clock -1h": () => clockJumps("-1h"),
  "F9 clock +1h": () => clockJumps("+1h"),
  "F21 herd": () => herd(HERD, true),
  "F22 memory": () => outOfMemory(400),
  ...(hasPostgres ? nodesFaults() : {}),
  "packets lost": () => packetsLost(200),
  "B124 late requests": lateRequests,
  "F27 all of it": () => mixedFaults(Number(values.seconds) * 1_000, chance),
};

console.log(`seed ${seed}`);
const wanted = values.only?.toLowerCase().split(",") ?? [""];
for (const [name, run] of Object.entries(FAULTS)) {
  if (!wanted.some((part) => name.toLowerCase().includes(part))) continue;
  const startedMs = performance.now();
  const { figures, problems } = await run();
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  console.log(`${name}: ${problems.length === 0 ? "held" : "BROKE"} (${seconds} s) ${JSON.stringify(figures)}`);
  for (const problem of problems) console.log(`  not so: ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
}
process.exit();

/** Each stop point `KILLS_EACH` times, with three attempts allowed and with one. */
async function killEverywhere(): Promise<FaultReport> {
  const reports: FaultReport[] = [];
  for (let time = 0; time < KILLS_EACH; time += 1) {
    for (const point of STOP_POINTS) reports.push(...(await Promise.all([killAt(point, 3), killAt(point, 1)])));
  }
  const twice = reports.filter(({ figures }) => Number(figures["sends"]) > 1 || Number(figures["calls"]) > 1).length;
  return {
    figures: { kills: reports.length, doubled: twice },
    problems: [...reports.flatMap(({ problems }) => problems), ...broken({ "it was killed": reports.length > 0 })],
  };
}

/** Faults of several nodes on one PostgreSQL. */
function nodesFaults(): Readonly<Record<string, () => Promise<FaultReport>>> {
  const withDatabase = (run: (databaseUrl: string) => Promise<FaultReport>) => async () => run(await createDatabase());
  return {
    "nodes killed": withDatabase((databaseUrl) =>
      nodeKills({ databaseUrl, nodes: NODES, kills: NODE_KILLS, actions: Number(values.actions), width: WIDTH }),
    ),
    "node dead, short deadline": withDatabase((databaseUrl) =>
      nodeDeath({ databaseUrl, nodes: NODES, attemptTimeoutMs: 1_000 }),
    ),
    "node dead, default deadline": withDatabase((databaseUrl) =>
      nodeDeath({ databaseUrl, nodes: NODES, attemptTimeoutMs: 30_000 }),
    ),
    "node frozen": withDatabase((databaseUrl) =>
      nodeFrozen({ databaseUrl, nodes: NODES, times: FREEZES, width: WIDTH }),
    ),
    "node cut off": () => nodeCutOff({ nodes: NODES, ...WIDTH }),
    "nodes' clocks": withDatabase((databaseUrl) => nodeClocks({ databaseUrl, nodes: 3, eachMs: 10_000, width: WIDTH })),
    "database stopped": () =>
      databaseStopped({ nodes: NODES, awayMs: DATABASE_AWAY_MS, times: DATABASE_STOPS, width: WIDTH }),
    "database cut off at each step of a start": () => startsCut(STARTS_CUT),
    "database failed over": () => databaseFailsOver({ nodes: NODES, awayMs: 2_000, width: WIDTH }),
  };
}
