import { and, count, desc, eq, gt, inArray, ne, sql } from "drizzle-orm";
import type { EarlierRejection, RejectionStore } from "../../src/core/rejections.ts";
import { rejectionWindowStart } from "../../src/core/rejection-count.ts";
import {
  EARLIER_REJECTIONS_SHOWN_MAX,
  REJECTIONS_PER_KEY_MAX,
  REPEATS_PER_REJECTION_MAX,
  SIMILAR_REJECTIONS_COUNTED_MAX,
} from "../../src/core/limits.ts";
import type { LinkStore } from "../../src/core/store.ts";
import * as commands from "../commands/links.ts";
import { pruneRejections } from "../commands/upkeep.ts";
import type { StoreContext } from "./context.ts";
import type { Dialect } from "./dialect.ts";
import { type Args, read } from "./read.ts";
import { timelineEntryOf } from "./rows.ts";
import type { Row } from "./sql.ts";

/** A key, and since when its rejections count. */
const KEY = { accountId: "text", keyId: "text", rejectedAfter: "time" } as const;

/** A request of it. */
const REQUEST = { ...KEY, digest: "text" } as const;

/** The entries of a key that count. */
function isOfKey({ rejections }: Dialect["tables"], arg: Args<keyof typeof KEY>) {
  const isKey = and(eq(rejections.accountId, arg.accountId), eq(rejections.keyId, arg.keyId));
  return and(isKey, gt(rejections.at, arg.rejectedAfter));
}

/** The newest of a request. */
const ofRequest = (kind: "rejected" | "asked", limit: number) =>
  read(REQUEST, ({ db, tables }, arg) => {
    const { rejections } = tables;
    return db
      .select({ at: rejections.at })
      .from(rejections)
      .where(and(eq(rejections.digest, arg.digest), isOfKey(tables, arg), eq(rejections.kind, kind)))
      .orderBy(desc(rejections.at))
      .limit(limit);
  });

const REJECTED = ofRequest("rejected", 1);
const REPEATED = ofRequest("asked", REPEATS_PER_REJECTION_MAX);

/** Of the entries of a key up to the limit, the oldest first. */
const COUNT_OF_KEY = read(KEY, ({ db, tables }, arg) => {
  const { rejections } = tables;
  const counted = db
    .select({ at: rejections.at })
    .from(rejections)
    .where(isOfKey(tables, arg))
    .orderBy(rejections.at)
    .limit(REJECTIONS_PER_KEY_MAX)
    .as("counted");
  const since = sql<Date | null>`min(${counted.at})`.mapWith(rejections.at).as("since");
  return db.select({ count: count().as("count"), since }).from(counted);
});

const SIMILAR = read({ ...REQUEST, similar: "text" }, ({ db, tables }, arg) => {
  const { rejections } = tables;
  const isSimilar = and(eq(rejections.similar, arg.similar), isOfKey(tables, arg), eq(rejections.kind, "rejected"));
  const similar = db
    .select({ at: rejections.at })
    .from(rejections)
    .where(and(isSimilar, ne(rejections.digest, arg.digest)))
    .limit(SIMILAR_REJECTIONS_COUNTED_MAX)
    .as("counted");
  return db.select({ count: count().as("count") }).from(similar);
});

const EARLIER = read(REQUEST, ({ db, tables: { rejections, ...tables } }, arg) =>
  db
    .select({
      kind: rejections.kind,
      at: rejections.at,
      by: rejections.actor,
      reason: rejections.reason,
      actionId: rejections.actionId,
      run: rejections.run,
    })
    .from(rejections)
    .where(and(eq(rejections.digest, arg.digest), isOfKey({ rejections, ...tables }, arg)))
    .orderBy(desc(rejections.at))
    .limit(EARLIER_REJECTIONS_SHOWN_MAX + 1),
);

const FIRST_EVENT = read({ id: "text", run: "number" }, ({ db, tables: { timeline } }, arg) =>
  db
    .select()
    .from(timeline)
    .where(
      and(eq(timeline.actionId, arg.id), eq(timeline.run, arg.run), inArray(timeline.type, ["created", "retried"])),
    )
    .orderBy(desc(timeline.revision))
    .limit(1),
);

/** Requests that people rejected within the last day. */
export function createRejectionStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): RejectionStore {
  return {
    async count({ accountId, keyId, digest }, now) {
      const request = { accountId, keyId, digest, rejectedAfter: rejectionWindowStart(now) };
      const [[rejected], repeated, [key]] = await Promise.all([
        REJECTED.all(reader, request),
        REPEATED.all(reader, request),
        COUNT_OF_KEY.all(reader, request),
      ]);
      return {
        rejectedAt: rejected?.at ?? null,
        repeatedAt: repeated.map(({ at }) => at),
        fullSince: key !== undefined && key.count >= REJECTIONS_PER_KEY_MAX ? key.since : null,
      };
    },
    async earlier({ id, run, accountId, keyId }, digest, now) {
      const [rows, firstEvent] = await Promise.all([
        EARLIER.all(reader, { accountId, keyId, digest, rejectedAfter: rejectionWindowStart(now) }),
        FIRST_EVENT.raw(reader, { id, run }),
      ]);
      const before = rows.filter((row) => row.actionId !== id || row.run !== run);
      const newest = before.slice(0, EARLIER_REJECTIONS_SHOWN_MAX);
      return { reason: firstEvent.map(reasonIn)[0] ?? null, rejections: newest.toReversed().map(earlierOf) };
    },
    async similar({ accountId, keyId, digest, similar }, now) {
      const request = { accountId, keyId, digest, similar, rejectedAfter: rejectionWindowStart(now) };
      return (await SIMILAR.all(reader, request))[0]?.count ?? 0;
    },
    prune: (now) => writer.run(pruneRejections, { until: rejectionWindowStart(now) }),
  };
}

function earlierOf({ kind, at, by, reason }: EarlierRejection): EarlierRejection {
  return { kind, at, by, reason };
}

/** The reason given for a run, if its first event has one. */
function reasonIn(row: Row): string | null {
  const event = timelineEntryOf(row)?.event;
  return event?.type === "created" || event?.type === "retried" ? (event.reason ?? null) : null;
}

const FIND = read({ actionId: "text", run: "number", decision: "text" }, ({ db, tables: { approvalLinks } }, arg) => {
  const isDecision = and(eq(approvalLinks.run, arg.run), eq(approvalLinks.decision, arg.decision));
  return db
    .select()
    .from(approvalLinks)
    .where(and(eq(approvalLinks.actionId, arg.actionId), isDecision));
});

export function createLinkStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): LinkStore {
  return {
    keep: (links, expiresAt) => writer.run(commands.keep, { links, expiresAt }),
    forgetAll: () => writer.run(commands.forgetAll, null),
    find: ({ actionId, run, decision }) => FIND.get(reader, { actionId, run, decision }),
  };
}
