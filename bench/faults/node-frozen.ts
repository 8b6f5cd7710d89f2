import { boundOf, Cluster, type Width } from "../../test/support/cluster/cluster.ts";
import { longestCreate, worksAfter } from "./probe.ts";
import { type FaultReport, withMore } from "../../test/support/faults/report.ts";

/** A lease in this cluster (deadline and grace), and the look for expired ones. */
export const LEASE_MS = 16_000;
const RECOVERED_MS = LEASE_MS + 6_000;
/** What the others may be held up by, at most: a node that stands still must not hold locks that they need. */
const HELD_UP_MS_MAX = 6_000;
const CALLS_OF_VICTIM = 8;
const CALL_MS_MIN = 200;
const CATCH_UP_MS = 1_000;
/** So that a fast machine creates no more than such a slow target can take: the rest would still be sent when it is judged. */
const [SLOTS, PAUSE_MS] = ["256", 50];

export interface NodeFrozen {
  readonly databaseUrl: string;
  readonly nodes: number;
  readonly times: number;
  readonly width: Width;
}

/**
 * A node is stopped for longer than its leases last, with calls under way and writes on their way, and continued: others
 * have ended what it held, and what it knows by now is kept without a further call.
 */
export async function nodeFrozen({ databaseUrl, nodes, times, width }: NodeFrozen): Promise<FaultReport> {
  const { chance } = width;
  await using cluster = await Cluster.start({
    databaseUrl,
    nodes,
    nodeOf: () => ({ env: { DISPATCH_PER_HOST: SLOTS } }),
    witness: { delay: () => CALL_MS_MIN + chance() * 200 },
    follows: true,
    load: { ...width, pauseMs: PAUSE_MS, retries: 4, held: 0.1, twice: 0.2, callbacks: 0.2 },
  });
  const heldUp: number[] = [];
  const resent: number[] = [];
  let held = 0;
  cluster.load.begin();
  await cluster.allClaim();
  for (let time = 0; time < times; time += 1) {
    const index = Math.floor(chance() * nodes);
    const [victim, other] = [cluster.node(index), cluster.node((index + 1) % nodes)];
    // A node claims what it is asked to create, so that these are its own.
    await Promise.all(Array.from({ length: CALLS_OF_VICTIM }, () => worksAfter(victim, cluster.witness.targetUrl)));
    await Bun.sleep(chance() * CALL_MS_MIN);
    victim.signal("SIGSTOP");
    const frozenMs = performance.now();
    heldUp.push(await longestCreate(other, cluster.witness.targetUrl, Bun.sleep(RECOVERED_MS)));
    const again = resends(cluster, frozenMs);
    held += again.length;
    resent.push(...again);
    victim.signal("SIGCONT");
    await Bun.sleep(CATCH_UP_MS);
  }
  const report = await cluster.judge();
  const fenced = cluster.nodes.reduce((sum, node) => sum + node.logged("action.fenced"), 0);
  const resentMs = Math.round(Math.max(0, ...resent));
  const heldUpMs = Math.round(Math.max(...heldUp));
  return withMore(
    report,
    { frozen: times, heldByIt: held, resentMs, fenced, heldUpMs },
    {
      "it held something": held + fenced > 0,
      "the others go on meanwhile": heldUpMs < boundOf(width, HELD_UP_MS_MAX),
      "what it knew came late": fenced > 0,
      "and is in the timeline": report.figures["untold"] === 0,
    },
  );
}

/** How long after a node's end each call that it had under way was made again. */
export function resends({ witness }: Pick<Cluster, "witness">, sinceMs: number): readonly number[] {
  return [...Map.groupBy(witness.arrivals, ({ id }) => id).values()].flatMap(([first, second]) =>
    first !== undefined && second !== undefined && first.atMs < sinceMs && second.atMs > sinceMs
      ? [second.atMs - sinceMs]
      : [],
  );
}
