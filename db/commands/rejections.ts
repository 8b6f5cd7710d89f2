import { and, count, desc, eq, gt, inArray, lte, ne, sql } from "drizzle-orm";
import {
  EARLIER_REJECTIONS_SHOWN_MAX,
  REJECTIONS_PER_KEY_MAX,
  REPEATS_PER_REJECTION_MAX,
  SIMILAR_REJECTIONS_COUNTED_MAX,
} from "../../src/core/limits.ts";
import { type RejectionCount, rejectionWindowStart } from "../../src/core/rejection-count.ts";
import type { EarlierRejection, RejectionStore } from "../../src/core/rejections.ts";
import type { StoreContext } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { type Args, read } from "../sql/read.ts";
import { timelineEntryOf } from "../sql/rows.ts";
import type { Row } from "../sql/sql.ts";
import { command, PRUNE_ROWS, type Tables } from "./command.ts";

/** Requests that people rejected within the last day. */

/** A key, and since when its rejections count, in milliseconds. */
const KEY = { accountId: "text", keyId: "text", rejectedAfter: "number" } as const;

/** A request of it. */
const REQUEST = { ...KEY, digest: "text" } as const;

/** The entries of a key that count. */
function isOfKey({ rejections }: Tables, { accountId, keyId, rejectedAfter }: Args<keyof typeof KEY>) {
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

/** Forgets rejections of then or earlier; returns whether there may be more. */
export const prune = command(async ({ db, tables: { rejections } }, { until }: Readonly<{ until: Date }>) => {
  const old = db.select({ seq: rejections.seq }).from(rejections).where(lte(rejections.at, until));
  const some = old.orderBy(rejections.at).limit(PRUNE_ROWS);
  const pruned = await db.delete(rejections).where(inArray(rejections.seq, some)).returning({ seq: rejections.seq });
  return pruned.length === PRUNE_ROWS;
});

const SIMILAR = read({ ...REQUEST, similar: "text" }, ({ db, tables }, arg) => {
  const { rejections } = tables;
  const isSimilar = and(hasValues(rejections, { similar: arg.similar, kind: "rejected" }), isOfKey(tables, arg));
  const isOther = and(isSimilar, ne(rejections.digest, arg.digest));
  const similar = db.select({ at: rejections.at }).from(rejections).where(isOther);
  return db.select({ count: count().as("count") }).from(similar.limit(SIMILAR_REJECTIONS_COUNTED_MAX).as("counted"));
});

const EARLIER = read(REQUEST, ({ db, tables }, arg) => {
  const { rejections } = tables;
  const { kind, at, actor: by, reason, actionId, run } = rejections;
  return db
    .select({ kind, at, by, reason, actionId, run })
    .from(rejections)
    .where(and(eq(rejections.digest, arg.digest), isOfKey(tables, arg)))
    .orderBy(desc(rejections.at))
    .limit(EARLIER_REJECTIONS_SHOWN_MAX + 1);
});

const FIRST_EVENT = read({ actionId: "text", run: "number" }, ({ db, tables: { timeline } }, arg) => {
  const isFirst = and(hasValues(timeline, arg), inArray(timeline.type, ["created", "retried"]));
  return db.select().from(timeline).where(isFirst).orderBy(desc(timeline.revision)).limit(1);
});

export function createRejectionStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): RejectionStore {
  return {
    async count({ accountId, keyId, digest }, now) {
      const request = { accountId, keyId, digest, rejectedAfter: windowStart(now) };
      const reads = [REJECTED.all(reader, request), REPEATED.all(reader, request)] as const;
      return rejectionCount(...(await Promise.all([...reads, COUNT_OF_KEY.all(reader, request)])));
    },
    async earlier({ id, run, accountId, keyId }, digest, now) {
      const [rows, firstEvent] = await Promise.all([
        EARLIER.all(reader, { accountId, keyId, digest, rejectedAfter: windowStart(now) }),
        FIRST_EVENT.raw(reader, { actionId: id, run }),
      ]);
      const before = rows.filter((row) => row.actionId !== id || row.run !== run);
      const newest = before.slice(0, EARLIER_REJECTIONS_SHOWN_MAX);
      return { reason: firstEvent.map(reasonIn)[0] ?? null, rejections: newest.toReversed().map(earlierOf) };
    },
    async similar({ accountId, keyId, digest, similar }, now) {
      const request = { accountId, keyId, digest, similar, rejectedAfter: windowStart(now) };
      return (await SIMILAR.all(reader, request))[0]?.count ?? 0;
    },
    prune: (now) => writer.run(prune, { until: rejectionWindowStart(now) }),
  };
}

function windowStart(now: Date): number {
  return rejectionWindowStart(now).getTime();
}

function earlierOf({ kind, at, by, reason }: EarlierRejection): EarlierRejection {
  return { kind, at, by, reason };
}

/** The reason given for a run, if its first event has one. */
function reasonIn(row: Row): string | null {
  const event = timelineEntryOf(row)?.event;
  return event?.type === "created" || event?.type === "retried" ? (event.reason ?? null) : null;
}
