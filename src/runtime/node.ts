import { type ServerSetting, VERSION } from "../config/config.ts";
import { FIRST_KEYS_LEASE_MS, JOB_LEASE_MS } from "../core/limits.ts";
import {
  type MembershipDeps,
  NodeMembership,
  type NodeShare,
  callersOfRate,
  shareOfHost,
  shareOfRate,
} from "./membership.ts";
import { type ClusterStore, type FactStore, StoreUnavailable } from "../core/store.ts";
import type { AppContext } from "./app-context.ts";
import { createJobLeases, inTurn, type JobLeases, type RecoveryLease } from "./jobs.ts";
import { NodeClock } from "./node-clock.ts";

/** The job of showing the first keys. */
const FIRST_KEYS = "first keys";

/** This process as one of several on the same database. */
export type Node = Awaited<ReturnType<typeof createNode>>;

/**
 * Reads the database's clock and follows it, by the `machine`'s clocks. The other nodes count this one only after `membership.start`. Rejects if the
 * database is unavailable.
 */
export async function createNode(
  id: string,
  cluster: ClusterStore,
  { clock: machine, log }: Pick<AppContext, "clock" | "log">,
  onBack: MembershipDeps["onBack"],
) {
  const onError = (error: unknown) => {
    // `Outage` reports that the store is unavailable.
    if (!(error instanceof StoreUnavailable)) log.warn("clock.not_read", { node: id });
  };
  const clock = await NodeClock.start({ cluster, machine, onError });
  const startedMs = clock.monotonicMs();
  const self = { id, startedAt: clock.now(), version: VERSION };
  const membership = new NodeMembership({ cluster, self, clock, log, onBack });
  const jobs: JobLeases = createJobLeases({ cluster, nodeId: id, clock });
  const share: NodeShare = {
    mayClaim: () => membership.mayClaim(),
    isSettled: (name) => membership.isSettled(name),
    slotsFor: (name, slots, perSecond) =>
      shareOfHost(name, slots, id, membership.nodes, perSecond === null ? undefined : callersOfRate(perSecond)),
    rateFor: (name, perSecond, slots) => shareOfRate(name, { perSecond, slots }, id, membership.nodes),
  };
  return {
    id,
    /** The clock for everything that is written or compared. */
    clock,
    membership,
    jobs,
    share,
    /**
     * The right to end what dead nodes left active in this queue, whose leases last `leaseMs`. No node has it for that long
     * after the database's clock was set: otherwise, rows of live nodes would be ended, too. For leases from before it was set back,
     * a node that has just started waits as well, since it doesn't know when that was. A node that can't read that clock doesn't have it.
     */
    recoveryLease: (queue: string, leaseMs: number): RecoveryLease => ({
      async take() {
        // It may have been set since it was last read.
        if (!(await clock.read()) || clock.wasSet(leaseMs)) return false;
        return cluster.takeJob(`recovery: ${queue}`, id, JOB_LEASE_MS);
      },
      isOver: (leaseUntil) =>
        (leaseUntil !== null && leaseUntil <= clock.now()) || clock.monotonicMs() - startedMs > leaseMs,
      release: () => cluster.releaseJob(`recovery: ${queue}`, id),
    }),
    /**
     * Creates or reads the first keys, in turn with other nodes that start. Null: there are none to show, or another node is
     * about to show them.
     */
    showFirst: <Keys>(begin: () => Promise<Keys | null>): Promise<Keys | null> =>
      inTurn("start", { cluster, nodeId: id, clock }, async () => {
        const keys = await begin();
        return keys !== null && (await cluster.takeJob(FIRST_KEYS, id, FIRST_KEYS_LEASE_MS)) ? keys : null;
      }),
    /** Call it last, when nothing is in flight any more. */
    async stop(): Promise<void> {
      // If the keys were not shown, the next start shows them.
      await cluster.releaseJob(FIRST_KEYS, id).catch(() => {});
      await membership.stop();
      clock.stop();
    },
  };
}

const SETTINGS_FACT = "node-settings";

/** What may differ from node to node; a wrong key opens nothing. */
const OWN_SETTING = /^(?:HOST|PORT|METRICS_PORT|DATABASE_URL|SECRET_KEY|LOG_LEVEL|LOG_FORMAT)$/;

/** Compares the settings with those of the node that started before, and keeps them for the next; of a secret, only that it is set. */
export async function differingSettings(
  facts: FactStore,
  settings: readonly Pick<ServerSetting, "name" | "value" | "isSet">[],
): Promise<readonly string[]> {
  const shared = settings.filter(({ name, isSet }) => isSet && !OWN_SETTING.test(name));
  const own = shared.map(({ name, value }) => `${name}=${value}`);
  const before = await facts.read(SETTINGS_FACT);
  if (before !== own.join("\n")) await facts.write({ [SETTINGS_FACT]: own.join("\n") });
  const differing = new Set(own).symmetricDifference(new Set(before?.split("\n").filter(Boolean) ?? own));
  const names = new Set(Array.from(differing, (line) => line.slice(0, line.indexOf("="))));
  return Array.from(
    names,
    (name) => `${name} is not as on the node that started before. Nodes of one database need the same.`,
  );
}
