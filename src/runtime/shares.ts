/** What this process may do beside the others on the same database. */
export interface NodeShare {
  /** Whether it may claim rows now. */
  readonly mayClaim: () => boolean;
  /** How many of the slots of a host are this process's; the name is any text that identifies the host. */
  readonly slotsOf: (name: string, slots: number) => number;
  /** How much of a host's calls per second is this process's, where it has slots of this host: an equal part. */
  readonly rateOf: (perSecond: number, slots: number) => number;
}

/** The share of the only process of a database. */
export const WHOLE_SHARE: NodeShare = {
  mayClaim: () => true,
  slotsOf: (_name, slots) => slots,
  rateOf: (perSecond) => perSecond,
};

/**
 * How many of the slots of a host one of several nodes has. Each has as many as go into all evenly; of those that are left
 * over the nodes with the highest rank for this name have one each, so that all together have exactly `slots`, and with
 * fewer slots than nodes only some nodes call the host. When a node comes, no other one's share grows, and when one goes
 * none shrinks (rendezvous hashing): nodes that don't know of the change yet never have more than all slots together
 * with those that do.
 */
export function shareOfHost(name: string, slots: number, self: string, nodes: readonly string[]): number {
  if (nodes.length <= 1) return slots;
  const each = Math.floor(slots / nodes.length);
  const left = slots - each * nodes.length;
  if (left === 0) return each;
  const own = rankOf(self, name);
  const before = nodes.filter((node) => node !== self && isBefore([rankOf(node, name), node], [own, self])).length;
  return each + (before < left ? 1 : 0);
}

/** The part of a rate that each node has that calls the host: with fewer slots than nodes only as many nodes do. */
export function shareOfRate(perSecond: number, slots: number, nodes: number): number {
  return perSecond / Math.max(1, Math.min(slots, nodes));
}

type Ranked = readonly [rank: bigint, node: string];

function isBefore([rank, node]: Ranked, [otherRank, otherNode]: Ranked): boolean {
  return rank === otherRank ? node < otherNode : rank < otherRank;
}

/** A hash with a fixed definition: nodes of different versions have to agree. */
function rankOf(node: string, name: string): bigint {
  return Bun.hash.xxHash64(`${node} ${name}`);
}
