import { Cluster } from "../../test/support/cluster/cluster.ts";
import { readRows } from "../../test/support/cluster/rows.ts";
import { type FaultReport, quantile, withMore } from "../../test/support/faults/report.ts";

const GRACE_MS = 15_000;
const RECOVERY_MS = 6_000;
const CLIENTS = 32;
/** Below the deadline: what is held must not end by it. */
const HOLD_MS_MAX = 3_000;
/** Of the attempts that a dead process had under way; others end by their deadline. */
const INTERRUPTED = "interrupted";

export interface NodeDeath {
  readonly databaseUrl: string;
  readonly nodes: number;
  readonly attemptTimeoutMs: number;
}

/** How long it takes until another node makes the calls again that a node had under way when it was killed. */
export async function nodeDeath({ databaseUrl, nodes, attemptTimeoutMs }: NodeDeath): Promise<FaultReport> {
  const killed = Promise.withResolvers<void>();
  let holds = false;
  await using cluster = await Cluster.start({
    databaseUrl,
    nodes,
    env: { ATTEMPT_TIMEOUT_MS: String(attemptTimeoutMs) },
    witness: { delay: ({ attempt }) => (holds && attempt === 1 ? killed.promise : 0) },
    load: { chance: Math.random, clients: CLIENTS, retries: 3, held: 0, twice: 0, callbacks: 0 },
  });
  cluster.load.begin();
  await cluster.allClaim();
  holds = true;
  await Bun.sleep(Math.min(HOLD_MS_MAX, attemptTimeoutMs / 2));
  const killedMs = performance.now();
  await cluster.node(0).end("SIGKILL");
  holds = false;
  killed.resolve();
  const report = await cluster.judge();
  await using reader = readRows(databaseUrl);
  const { timeline } = await reader.history();
  const interrupted = new Set(
    timeline.flatMap(({ action_id: id, type, detail }) =>
      type === "attempt" && detail.includes(INTERRUPTED) ? [id] : [],
    ),
  );
  const times = cluster.witness.arrivals.flatMap(({ id, attempt, atMs }) =>
    attempt === 2 && interrupted.has(id) ? [atMs - killedMs] : [],
  );
  const resentP50Ms = Math.round(quantile(times, 0.5));
  const resentMaxMs = Math.round(Math.max(...times));
  return withMore(
    report,
    { attemptTimeoutMs, heldByIt: times.length, resentP50Ms, resentMaxMs },
    {
      "it held something": times.length > 0,
      "what it held is sent again once its lease is over":
        Math.max(...times) < attemptTimeoutMs + GRACE_MS + RECOVERY_MS,
    },
  );
}
