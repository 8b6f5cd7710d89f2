import { and, eq, exists, gt, inArray } from "drizzle-orm";
import type { NotificationKind } from "../../src/core/notification.ts";
import { pauseLocks } from "../sql/locks.ts";
import { command, listCommand } from "./command.ts";

/** What waits in lanes: actions, and each kind of notification. */
export type QueueName = "action" | NotificationKind;

interface LaneOfClaim {
  readonly accountId: string;
  readonly host: string;
  readonly keyId: string;
  /** How many of its rows may be claimed. */
  readonly limit: number;
}

/** Times in milliseconds. The rest is as in `Claim` of `src/core/store.ts`. */
export interface ClaimOfQueue {
  readonly queue: QueueName;
  readonly lanes: readonly LaneOfClaim[];
  readonly bytesMax: number;
  /** Bytes of the largest row that may be claimed: each lane ends before its first larger one. */
  readonly rowBytesMax: number;
  readonly now: number;
  readonly leaseUntil: number;
  /** The node that claims. */
  readonly by: string;
}

export interface Claimed {
  /** In the order of their turns. `fence` is the revision of an action and the attempts of a notification, after the claim. */
  readonly rows: readonly { readonly id: string; readonly fence: number }[];
  /** The earliest row that stays pending, of each lane that has one and is not paused. */
  readonly next: readonly (Omit<LaneOfClaim, "limit"> & { readonly dueAt: number; readonly bytes: number })[];
}

/**
 * Makes due rows active with a lease: of each lane the earliest, one of each lane in turn, as many as fit into the bytes; the
 * first always fits. Each database has its own way.
 */
export const claim = listCommand(
  (tx, claims: readonly ClaimOfQueue[]): Promise<readonly Claimed[]> => tx.claim(claims),
  {
    locks: ({ lanes }) => pauseLocks(new Set(lanes.map(({ accountId }) => accountId))),
    size: ({ lanes }) => ({ rows: lanes.length, bytes: 0 }),
    turn: "claim",
  },
);

/**
 * Ends those of the actions whose timeline knows a later revision than they have, as after a part of a backup was restored: what
 * they are was once decided otherwise, and no claim of them can be written.
 */
export const endSetBack = command(async ({ db, tables: { actions, timeline } }, ids: readonly string[], at: Date) => {
  const isLater = and(eq(timeline.actionId, actions.id), gt(timeline.revision, actions.revision));
  const later = db.select({ seq: timeline.seq }).from(timeline).where(isLater);
  await db
    .update(actions)
    .set({ status: "failed", dueAt: null, finishedAt: at, lastError: SET_BACK, errorSource: "dispatch" })
    .where(and(inArray(actions.id, [...ids]), eq(actions.status, "pending"), exists(later)));
});

const SET_BACK = "The stored action is older than its timeline, so it is not sent.";
