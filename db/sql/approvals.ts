import { and, desc, eq, gt, inArray, ne, sql } from "drizzle-orm";
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
import { type Args, prepare, query } from "./query.ts";
import { timelineEntryOf } from "./rows.ts";
import { approvalLinks, rejections, timeline } from "../libsql/schema.ts";
import type { Row } from "./sql.ts";

type KeyArgs = Args<"accountId" | "keyId" | "rejectedAfter">;
type RequestArgs = KeyArgs & Args<"digest">;

/** The entries of a key that count. */
function isOfKey({ accountId, keyId, rejectedAfter }: KeyArgs) {
  return and(eq(rejections.accountId, accountId), eq(rejections.keyId, keyId), gt(rejections.at, rejectedAfter));
}

/** Those of a request. */
function ofRequest(arg: RequestArgs, kind: "rejected" | "asked") {
  const isOfRequest = and(eq(rejections.digest, arg.digest), isOfKey(arg), eq(rejections.kind, kind));
  return query.select({ at: rejections.at }).from(rejections).where(isOfRequest).orderBy(desc(rejections.at));
}

const REJECTED = prepare((arg: RequestArgs) => ofRequest(arg, "rejected").limit(1));
const REPEATED = prepare((arg: RequestArgs) => ofRequest(arg, "asked").limit(REPEATS_PER_REJECTION_MAX));

/** The entries of a key, up to the limit, the oldest first. */
function upToLimit(arg: KeyArgs) {
  const ofKey = query.select({ at: rejections.at }).from(rejections).where(isOfKey(arg));
  return ofKey.orderBy(rejections.at).limit(REJECTIONS_PER_KEY_MAX);
}

const COUNT_OF_KEY = prepare((arg: KeyArgs) => {
  const counted = upToLimit(arg).as("counted");
  const since = sql<Date | null>`min(${counted.at})`.mapWith(rejections.at).as("since");
  return query.select({ count: sql<number>`count(*)`.as("count"), since }).from(counted);
});

const SIMILAR = prepare((arg: RequestArgs & Args<"similar">) => {
  const isSimilar = [eq(rejections.similar, arg.similar), isOfKey(arg), eq(rejections.kind, "rejected")];
  const similar = query
    .select({ at: rejections.at })
    .from(rejections)
    .where(and(...isSimilar, ne(rejections.digest, arg.digest)))
    .limit(SIMILAR_REJECTIONS_COUNTED_MAX);
  return query.select({ count: sql<number>`count(*)`.as("count") }).from(similar.as("counted"));
});

const EARLIER = prepare((arg: RequestArgs) =>
  query
    .select({
      kind: rejections.kind,
      at: rejections.at,
      by: rejections.actor,
      reason: rejections.reason,
      actionId: rejections.actionId,
      run: rejections.run,
    })
    .from(rejections)
    .where(and(eq(rejections.digest, arg.digest), isOfKey(arg)))
    .orderBy(desc(rejections.at))
    .limit(EARLIER_REJECTIONS_SHOWN_MAX + 1),
);

const FIRST_EVENT = prepare((arg: Args<"id" | "run">) =>
  query
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
        REJECTED.read(reader, request),
        REPEATED.read(reader, request),
        COUNT_OF_KEY.read(reader, request),
      ]);
      return {
        rejectedAt: rejected?.at ?? null,
        repeatedAt: repeated.map(({ at }) => at),
        fullSince: key !== undefined && key.count >= REJECTIONS_PER_KEY_MAX ? key.since : null,
      };
    },
    async earlier({ id, run, accountId, keyId }, digest, now) {
      const [rows, firstEvent] = await Promise.all([
        EARLIER.read(reader, { accountId, keyId, digest, rejectedAfter: rejectionWindowStart(now) }),
        FIRST_EVENT.readRaw(reader, { id, run }),
      ]);
      const before = rows.filter((row) => row.actionId !== id || row.run !== run);
      const newest = before.slice(0, EARLIER_REJECTIONS_SHOWN_MAX);
      return { reason: firstEvent.map(reasonIn)[0] ?? null, rejections: newest.toReversed().map(earlierOf) };
    },
    async similar({ accountId, keyId, digest, similar }, now) {
      const request = { accountId, keyId, digest, similar, rejectedAfter: rejectionWindowStart(now) };
      return (await SIMILAR.read(reader, request))[0]?.count ?? 0;
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

const FIND = prepare((arg: Args<"actionId" | "run" | "decision">) => {
  const isDecision = and(eq(approvalLinks.run, arg.run), eq(approvalLinks.decision, arg.decision));
  return query
    .select()
    .from(approvalLinks)
    .where(and(eq(approvalLinks.actionId, arg.actionId), isDecision));
});

export function createLinkStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): LinkStore {
  return {
    keep: (links, expiresAt) => writer.run(commands.keep, { links, expiresAt }),
    forgetAll: () => writer.run(commands.forgetAll, null),
    async find({ actionId, run, decision }) {
      return (await FIND.read(reader, { actionId, run, decision }))[0] ?? null;
    },
  };
}
