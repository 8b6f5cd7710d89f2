import { boundOf, Cluster } from "../../test/support/cluster/cluster.ts";
import { longestCreate, refusalOf, worksAfter } from "./probe.ts";
import { isInside } from "../../test/support/namespace.ts";
import { OwnServers } from "../parts/own-server.ts";
import { nft, packetsDropped, reportFromInside } from "./inside.ts";
import { LEASE_MS, resends } from "./node-frozen.ts";
import { type FaultReport, withMore } from "../../test/support/faults/report.ts";

const RUN_MS_MAX = 240_000;
/** Another way to the same server: only one node goes by it. */
const WAY = "127.0.0.2";
const CUT_MS = LEASE_MS + 6_000;
const BACK_MS_MAX = 20_000;
const HELD_UP_MS_MAX = 6_000;

export interface NodeCutOff {
  readonly nodes: number;
  readonly clients: number;
  readonly pauseMs: number;
  readonly isAlone: boolean;
}

/**
 * One node's packets to the database and back are dropped, without a word, for longer than its leases last, in a network of
 * our own. It goes on reaching targets.
 */
export async function nodeCutOff(cut: NodeCutOff): Promise<FaultReport> {
  return reportFromInside(import.meta.path, JSON.stringify(cut), RUN_MS_MAX);
}

async function inside({ nodes, clients, pauseMs, isAlone }: NodeCutOff): Promise<FaultReport> {
  await using servers = await OwnServers.start({ listen_addresses: `127.0.0.1,${WAY}` });
  const way = new URL(servers.url);
  way.hostname = WAY;
  await using cluster = await Cluster.start({
    databaseUrl: servers.url,
    nodes,
    nodeOf: (index) => (index === 0 ? { databaseUrl: way.href } : {}),
    witness: { delay: () => 200 + Math.random() * 200 },
    follows: true,
    load: { chance: Math.random, clients, pauseMs, retries: 4, held: 0.1, twice: 0.2, callbacks: 0.2 },
  });
  cluster.load.begin();
  await cluster.allClaim();
  await cluster.busy(2);
  await Bun.sleep(500);
  nft("add table inet cut; add chain inet cut i { type filter hook input priority 0; }");
  nft(`add rule inet cut i ip daddr ${WAY} counter drop; add rule inet cut i ip saddr ${WAY} counter drop`);
  const cutMs = performance.now();
  const cut = cluster.node(0);
  const heldUp = longestCreate(cluster.node(1), cluster.witness.targetUrl, Bun.sleep(CUT_MS));
  const refusal = await refusalOf(cut);
  const heldUpMs = await heldUp;
  const dropped = packetsDropped("cut");
  nft("delete table inet cut");
  const backMs = await worksAfter(cut, cluster.witness.targetUrl);
  await Bun.sleep(1_000);
  const report = await cluster.judge();
  // Only now: on a busy machine some are sent again after the node is back.
  const again = resends(cluster, cutMs);
  const fenced = cut.logged("action.fenced");
  return withMore(
    report,
    {
      dropped,
      heldByIt: again.length,
      resentMs: Math.round(Math.max(0, ...again)),
      fenced,
      refused: `${refusal.status} in ${Math.round(refusal.tookMs)} ms`,
      backMs: Math.round(backMs),
      heldUpMs: Math.round(heldUpMs),
    },
    {
      "packets were dropped": dropped > 0,
      "it held something": again.length + fenced > 0,
      "and is in the timeline": report.figures["untold"] === 0,
      "it says 503 meanwhile": refusal.status === 503 && Number(refusal.retryAfter) > 0,
      "the others go on meanwhile": heldUpMs < boundOf({ isAlone }, HELD_UP_MS_MAX),
      "it works soon after": backMs < boundOf({ isAlone }, BACK_MS_MAX),
    },
  );
}

if (isInside() && import.meta.main) {
  console.log(JSON.stringify(await inside(JSON.parse(process.argv[2] ?? "") as NodeCutOff)));
  process.exit(0);
}
