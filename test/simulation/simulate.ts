import { KEEP_ALIVE_MS } from "../../src/core/limits.ts";
import { Clients } from "./clients.ts";
import { CLEAR_WAY, createCluster } from "./connection.ts";
import { calm, fail, isWell, type Machine } from "./faults.ts";
import { checkEnd } from "./invariants.ts";
import { Process } from "./process.ts";
import { Target } from "./target.ts";
import { type SeedDatabase, type Violation, World } from "./world.ts";

export interface Simulated {
  readonly seed: number;
  /** Line by line what happened. */
  readonly story: string;
  /** Empty: every promise was kept. */
  readonly violations: readonly Violation[];
}

/** How long clients act and things begin to fail. */
const ACT_MS = 20_000;
/** How long everything may take to end after that, in rounds in which whatever waits for a client is decided. */
const [ROUND_MS, ROUNDS_MAX] = [20_000, 25];
const CATCH_UP_MS = KEEP_ALIVE_MS + 1_000;

/** Lives one seed through: the story is the same each time. */
export async function simulate(seed: number, database: SeedDatabase): Promise<Simulated> {
  const world = await World.open(seed, database);
  const { random, clock } = world;
  const cluster = random.chance(0.5) ? createCluster(world) : null;
  const machines: Machine[] = [];
  const processes = () => machines.flatMap(({ process }) => (process === null || process.isDead ? [] : [process]));
  const clients = new Clients(world, processes);
  const target = new Target(world, clients, cluster === null);
  const start = (machine: Machine) => {
    machine.starts += 1;
    const { name, way } = machine;
    const restart = () => void clock.after(random.between(100, 5_000), () => start(machine));
    const parts = { world, way, sender: target.senderOf, cluster, onEnd: restart };
    machine.process = new Process({ ...parts, name: name + machine.starts });
    world.keep(machine.process.begin());
  };
  world.tell("world", `seed ${seed}: ${cluster === null ? "one process" : "two nodes on one database"}`);
  for (const name of cluster === null ? ["A"] : ["A", "B"]) {
    const machine = { name, way: { ...CLEAR_WAY }, process: null, starts: 0 };
    machines.push(machine);
    start(machine);
  }
  const any = (times: number, run: () => void) => {
    for (let n = 0; n < times; n += 1) clock.after(random.between(3_000, ACT_MS), run);
  };
  any(random.between(6, 20), () => clients.act());
  any(random.between(0, 7), () => fail(world, random, machines));
  await world.run(ACT_MS);
  world.tell("world", "nothing new fails any more");
  calm(world, machines);
  const isOver = () => machines.every(isWell) && world.look(UNFINISHED).length === 0;
  const newest = () => world.look("SELECT max(seq) AS seq FROM timeline")[0]?.["seq"];
  let hasEnded = false;
  for (let round = 0; round < ROUNDS_MAX && !hasEnded && world.violations.length === 0; round += 1) {
    world.keep(clients.tidyUp());
    if (!(await world.run(ROUND_MS, isOver))) continue;
    // What a client has asked for may still be on its way, and readers of the stream catch up.
    const before = newest();
    await world.run(CATCH_UP_MS);
    hasEnded = isOver() && newest() === before;
  }
  if (!hasEnded && world.violations.length === 0)
    world.violate("everything ends", JSON.stringify(world.look(UNFINISHED)));
  if (world.violations.length === 0) await checkEnd(world, clients, target);
  for (const process of processes()) process.kill("the end");
  return { seed, story: world.story, violations: world.violations };
}

const UNFINISHED = `SELECT title AS name, status FROM actions WHERE status IN ('pending', 'active', 'awaiting_approval')
  UNION ALL SELECT kind || ' of ' || action_id, status FROM outbox WHERE status IN ('pending', 'active')`;
