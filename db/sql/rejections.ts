import { and, count, desc, eq, inArray, ne } from "drizzle-orm";
import { EARLIER_REJECTIONS_SHOWN_MAX, SIMILAR_REJECTIONS_COUNTED_MAX } from "../../src/core/limits.ts";
import { rejectionWindowStart } from "../../src/core/rejection-count.ts";
import type { EarlierRejection, RejectionStore } from "../../src/core/rejections.ts";
import { COUNT_OF_KEY, isOfKey, prune, REJECTED, rejectionCount, REPEATED, REQUEST } from "../commands/rejections.ts";
import type { StoreContext } from "./context.ts";
import { hasValues } from "./dialect.ts";
import { read } from "./read.ts";
import { timelineEntryOf } from "./rows.ts";
import type { Row } from "./sql.ts";

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
    prune: writer.method(prune),
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
