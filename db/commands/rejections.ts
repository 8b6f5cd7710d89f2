import { and, count, desc, gt, inArray, lte, sql } from "drizzle-orm";
import { REJECTIONS_PER_KEY_MAX, REPEATS_PER_REJECTION_MAX } from "../../src/core/limits.ts";
import { type RejectionCount, rejectionWindowStart } from "../../src/core/rejection-count.ts";
import type { RejectionStore } from "../../src/core/rejections.ts";
import { hasValues } from "../sql/dialect.ts";
import { type Args, read } from "../sql/read.ts";
import { command, PRUNE_ROWS, type Tables } from "./command.ts";

/** Requests that people rejected within the last day, and how they are counted. */

/** A key, and since when its rejections count, in milliseconds. */
const KEY = { accountId: "text", keyId: "text", rejectedAfter: "number" } as const;

/** A request of it. */
export const REQUEST = { ...KEY, digest: "text" } as const;

/** The entries of a key that count. */
export function isOfKey({ rejections }: Tables, { accountId, keyId, rejectedAfter }: Args<keyof typeof KEY>) {
  return and(hasValues(rejections, { accountId, keyId }), gt(rejections.at, rejectedAfter));
}

/** The newest of a request. */
const ofRequest = (kind: "rejected" | "asked", limit: number) =>
  read(REQUEST, ({ db, tables }, arg) => {
    const { rejections } = tables;
    const isRequest = and(hasValues(rejections, { digest: arg.digest, kind }), isOfKey(tables, arg));
    return db.select({ at: rejections.at }).from(rejections).where(isRequest).orderBy(desc(rejections.at)).limit(limit);
  });

export const REJECTED = ofRequest("rejected", 1);
export const REPEATED = ofRequest("asked", REPEATS_PER_REJECTION_MAX);

/** Of the entries of a key up to the limit, the oldest first. */
export const COUNT_OF_KEY = read(KEY, ({ db, tables }, arg) => {
  const { rejections } = tables;
  const ofKey = db.select({ at: rejections.at }).from(rejections).where(isOfKey(tables, arg));
  const counted = ofKey.orderBy(rejections.at).limit(REJECTIONS_PER_KEY_MAX).as("counted");
  const since = sql<Date | null>`min(${counted.at})`.mapWith(rejections.at).as("since");
  return db.select({ count: count().as("count"), since }).from(counted);
});

interface Counted {
  readonly count: number;
  readonly since: Date | null;
}

/** The count of a request by the rows of the three reads above. */
export function rejectionCount(
  [rejected]: readonly { readonly at: Date }[],
  repeated: readonly { readonly at: Date }[],
  [key]: readonly Counted[],
): RejectionCount {
  return {
    rejectedAt: rejected?.at ?? null,
    repeatedAt: repeated.map(({ at }) => at),
    fullSince: key !== undefined && key.count >= REJECTIONS_PER_KEY_MAX ? key.since : null,
  };
}

export const prune = command<RejectionStore["prune"]>(async ({ db, tables: { rejections } }, now) => {
  const until = rejectionWindowStart(now);
  const old = db.select({ seq: rejections.seq }).from(rejections).where(lte(rejections.at, until));
  const some = old.orderBy(rejections.at).limit(PRUNE_ROWS);
  const pruned = await db.delete(rejections).where(inArray(rejections.seq, some)).returning({ seq: rejections.seq });
  return pruned.length === PRUNE_ROWS;
});
