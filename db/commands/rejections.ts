import { and, count, desc, eq, gt, inArray, lte, ne, sql } from "drizzle-orm";
import {
  EARLIER_REJECTIONS_SHOWN_MAX,
  REJECTIONS_PER_KEY_MAX,
  REPEATS_PER_REJECTION_MAX,
  SIMILAR_REJECTIONS_COUNTED_MAX,
} from "../../src/core/limits.ts";
import {
  type RejectedRequest,
  type RejectionCount,
  type RejectionStore,
  rejectionWindowStart,
} from "../../src/core/rejections.ts";
import { all, type Args, countRows, get, hasValues, membersIn, prepare, qb } from "../sql/read.ts";
import type { Reader } from "../sql/sql.ts";
import { command, deleteSome } from "./command.ts";
import { rejections, timeline } from "../libsql/schema.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** A key, and the time from which on its rejections count, in milliseconds. */
const KEY = { accountId: "text", keyId: "text", rejectedAfter: "number" } as const;

/** A request of a key. */
const REQUEST = { ...KEY, digest: "text" } as const;

/** The condition that an entry is of this key and still counts. */
function isOfKey({ accountId, keyId, rejectedAfter }: Args<keyof typeof KEY>) {
  return and(hasValues(rejections, { accountId, keyId }), gt(rejections.at, rejectedAfter));
}

/** The newest entries of a request. */
const ofRequest = (kind: "rejected" | "asked", limit: number) =>
  prepare(REQUEST, (arg) => {
    const isRequest = and(hasValues(rejections, { digest: arg.digest, kind }), isOfKey(arg));
    return qb.select({ at: rejections.at }).from(rejections).where(isRequest).orderBy(desc(rejections.at)).limit(limit);
  });

export const REJECTED = ofRequest("rejected", 1);
export const REPEATED = ofRequest("asked", REPEATS_PER_REJECTION_MAX);

/** The number of entries of a key, up to its limit, and the time of the oldest. */
export const COUNT_OF_KEY = prepare(KEY, (arg) => {
  const ofKey = qb.select({ at: rejections.at }).from(rejections).where(isOfKey(arg));
  const counted = ofKey.orderBy(rejections.at).limit(REJECTIONS_PER_KEY_MAX).as("counted");
  const since = sql<Date | null>`min(${counted.at})`.mapWith(rejections.at).as("since");
  return qb.select({ count: count().as("count"), since }).from(counted);
});

/** The count of a request, from the rows of these three reads. */
export function rejectionCount(
  [rejected]: readonly { readonly at: Date }[],
  repeated: readonly { readonly at: Date }[],
  [key]: readonly { readonly count: number; readonly since: Date | null }[],
): RejectionCount {
  return {
    rejectedAt: rejected?.at ?? null,
    repeatedAt: repeated.map(({ at }) => at),
    fullSince: key !== undefined && key.count >= REJECTIONS_PER_KEY_MAX ? key.since : null,
  };
}

export async function countRejections(
  reader: Reader,
  { accountId, keyId, digest }: RejectedRequest,
  now: Date,
): Promise<RejectionCount> {
  const request = { accountId, keyId, digest, rejectedAfter: rejectionWindowStart(now).getTime() };
  const reads = [REJECTED.all(reader, request), REPEATED.all(reader, request)] as const;
  return rejectionCount(...(await Promise.all([...reads, COUNT_OF_KEY.all(reader, request)])));
}

export const pruneRejections = command<RejectionStore["prune"]>((tx, now) =>
  deleteSome(tx, [rejections.seq], lte(rejections.at, rejectionWindowStart(now))),
);

export function createRejectionStore({ reader, writer }: StoreAccess): RejectionStore {
  const ofKey = (accountId: string, keyId: string, now: Date) =>
    and(hasValues(rejections, { accountId, keyId }), gt(rejections.at, rejectionWindowStart(now)));
  return {
    ...writer.methods({ prune: pruneRejections }),
    count: (request, now) => countRejections(reader, request, now),
    async earlier({ id, run, accountId, keyId }, digest, now) {
      const { kind, at, actor: by, reason, actionId } = rejections;
      const entries = qb
        .select({ kind, at, by, reason, actionId, run: rejections.run })
        .from(rejections)
        .where(and(eq(rejections.digest, digest), ofKey(accountId, keyId, now)));
      const isFirst = and(hasValues(timeline, { actionId: id, run }), inArray(timeline.type, ["created", "retried"]));
      const first = qb.select({ detail: timeline.detail }).from(timeline).where(isFirst);
      const [rows, event] = await Promise.all([
        all(reader, entries.orderBy(desc(at)).limit(EARLIER_REJECTIONS_SHOWN_MAX + 1)),
        get(reader, first.orderBy(desc(timeline.revision)).limit(1)),
      ]);
      const newest = rows
        .filter((row) => row.actionId !== id || row.run !== run)
        .slice(0, EARLIER_REJECTIONS_SHOWN_MAX);
      const shown = newest.map(({ actionId: _id, run: _run, ...rejection }) => rejection);
      const given = membersIn(event?.detail)["reason"];
      return { reason: typeof given === "string" ? given : null, rejections: shown.toReversed() };
    },
    async similar({ accountId, keyId, digest, similar }, now) {
      const isSimilar = and(hasValues(rejections, { similar, kind: "rejected" }), ofKey(accountId, keyId, now));
      const isOther = and(isSimilar, ne(rejections.digest, digest));
      return countRows(reader, rejections, isOther, SIMILAR_REJECTIONS_COUNTED_MAX);
    },
  };
}
