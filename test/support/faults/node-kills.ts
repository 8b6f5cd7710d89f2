import { Cluster, type Width } from "../cluster/cluster.ts";
import { type FaultReport, quantile, withMore } from "./report.ts";

const IN_FLIGHT_MIN = 4;

export interface NodeKills {
  readonly databaseUrl: string;
  readonly nodes: number;
  readonly kills: number;
  /** Actions in all; the kills are spread over them. */
  readonly actions: number;
  readonly width: Width;
}

/** Random nodes are killed under load, one after the other, and started again. */
export async function nodeKills({ databaseUrl, nodes, kills, actions, width }: NodeKills): Promise<FaultReport> {
  const { chance } = width;
  const delay = () => 20 + chance() * 40;
  await using cluster = await Cluster.start({
    databaseUrl,
    nodes,
    witness: { delay, status: () => (chance() < 0.02 ? 500 : 200) },
    follows: true,
    load: { ...width, retries: 5, held: 0.1, twice: 0.1, callbacks: 0.3, count: actions },
    env: { DISPATCH_PER_HOST: "128" },
  });
  const startedMs = performance.now();
  cluster.load.begin();
  if (kills > 0) await cluster.allClaim();
  const restarts: number[] = [];
  const inFlight: number[] = [];
  for (let kill = 1; kill <= kills; kill += 1) {
    const share = (actions * kill) / (kills + 1);
    while (cluster.load.acknowledged.size < share) await Bun.sleep(5);
    inFlight.push(await cluster.busy(IN_FLIGHT_MIN));
    const victim = cluster.node(Math.floor(chance() * nodes));
    await victim.end("SIGKILL");
    await Bun.sleep(chance() * 500);
    victim.start();
    restarts.push(await victim.ready());
  }
  await cluster.load.done();
  const seconds = (performance.now() - startedMs) / 1_000;
  const report = await cluster.judge();
  const perSecond = Math.round(actions / seconds);
  const restartMs = Math.round(quantile(restarts, 0.5));
  return withMore(
    report,
    { nodes, kills, perSecond, inFlight: Math.min(...inFlight), restartMs },
    { "every action was acknowledged": report.figures["acknowledged"] === actions },
  );
}
