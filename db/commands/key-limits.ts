/**
 * What limits a key: how many of its actions are held, how many it creates on a day, and what people rejected before. `actions.ts` asks
 * before it writes and adds what it has written. The store of rejections is at the end.
 */
import { and, count, desc, eq, gt, inArray, lte, ne, type Placeholder, sql } from "drizzle-orm";
import type { KeyBudget } from "../../src/core/key-limits.ts";
import {
  EARLIER_REJECTIONS_SHOWN_MAX,
  HELD_PER_KEY_MAX,
  REJECTIONS_PER_KEY_MAX,
  REPEATS_PER_REJECTION_MAX,
  SIMILAR_REJECTIONS_COUNTED_MAX,
} from "../../src/core/limits.ts";
import {
  mayRepeat,
  type RejectedRequest,
  type RejectionCount,
  type RejectionEntry,
  type RejectionStore,
  rejectionWindowStart,
  saysWhy,
} from "../../src/core/rejections.ts";
import type { Reader } from "../sql/dialect.ts";
import { all, countRows, get, hasValues, membersIn, prepare, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { actions, keyDays, rejections, timeline } from "../tables.ts";
import { command, deleteSome, findEach, insertList, type Tx, valuesOf } from "./command.ts";

/** A write of an action, which may count towards the limits of a key. */
export interface CountedWrite {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  /** The time of the write, in milliseconds. */
  readonly at: number;
  /** Absent: the first. */
  readonly run?: number;
  readonly request: RejectionEntry | null;
  readonly budget: KeyBudget | null;
  /** Whether it creates an action that awaits approval. A key may have only so many. */
  readonly isHeld?: boolean;
}

type KeyRefusal =
  | { readonly kind: "rejected_before"; readonly request: RejectionEntry }
  | { readonly kind: "budget_spent" | "too_many_held" };

const HELD = prepare({ accountId: "text", keyId: "text" }, ({ accountId, keyId }) => {
  const isHeld = hasValues(actions, { accountId, keyId, status: "awaiting_approval" });
  const held = qb.select({ id: actions.id }).from(actions).where(isHeld).limit(HELD_PER_KEY_MAX).as("held");
  return qb.select({ held: count().as("held") }).from(held);
});

const SPENT_ON_DAY = prepare({ keyId: "text", day: "number" }, ({ keyId, day }) =>
  qb.select({ created: keyDays.created }).from(keyDays).where(hasValues(keyDays, { keyId, day })),
);

/** A key, and the time from which on its rejections count, in milliseconds. */
const KEY = { accountId: "text", keyId: "text", rejectedAfter: "number" } as const;

/** A request of a key. */
const REQUEST = { ...KEY, digest: "text" } as const;

/** The condition that an entry is of this key and still counts. */
function isOfKey(accountId: string | Placeholder, keyId: string | Placeholder, rejectedAfter: Date | Placeholder) {
  return and(hasValues(rejections, { accountId, keyId }), gt(rejections.at, rejectedAfter));
}

/** The newest entries of a request. */
const ofRequest = (kind: "rejected" | "asked", limit: number) =>
  prepare(REQUEST, (arg) => {
    const isCounted = isOfKey(arg.accountId, arg.keyId, arg.rejectedAfter);
    const isRequest = and(hasValues(rejections, { digest: arg.digest, kind }), isCounted);
    return qb.select({ at: rejections.at }).from(rejections).where(isRequest).orderBy(desc(rejections.at)).limit(limit);
  });

const REJECTED = ofRequest("rejected", 1);
const REPEATED = ofRequest("asked", REPEATS_PER_REJECTION_MAX);

/** The number of entries of a key, up to its limit, and the time of the oldest. */
const COUNT_OF_KEY = prepare(KEY, ({ accountId, keyId, rejectedAfter }) => {
  const ofKey = qb
    .select({ at: rejections.at })
    .from(rejections)
    .where(isOfKey(accountId, keyId, rejectedAfter));
  const counted = ofKey.orderBy(rejections.at).limit(REJECTIONS_PER_KEY_MAX).as("counted");
  const since = sql<Date | null>`min(${counted.at})`.mapWith(rejections.at).as("since");
  return qb.select({ count: count().as("count"), since }).from(counted);
});

/** The count of a request, from the rows of these three reads. */
function rejectionCount(
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

const REJECTIONS = insertList(rejections, ["seq"]);

const SPENT = insertList(
  keyDays,
  [],
  "on conflict (key_id, day) do update set created = key_days.created + excluded.created",
);

const NEVER_REJECTED: RejectionCount = { rejectedAt: null, repeatedAt: [], fullSince: null };

export type KeyCounts = Awaited<ReturnType<typeof readKeyCounts>>;

/** Reads what limits the keys of a list of writes, each row once. The writes are added as they are decided. */
export async function readKeyCounts({ lists }: Tx, list: readonly CountedWrite[]) {
  const holding = list.flatMap(({ accountId, keyId, isHeld }) => (isHeld === true ? [{ accountId, keyId }] : []));
  const days = list.flatMap(({ budget }) => (budget === null ? [] : [{ keyId: budget.keyId, day: budget.day }]));
  const asked = list.flatMap(({ accountId, keyId, at, request }) => {
    if (request === null || request.kind === "approved") return [];
    return [{ accountId, keyId, digest: request.digest, rejectedAfter: rejectionWindowStart(new Date(at)).getTime() }];
  });
  const [heldRows, spentRows, rejected, repeated, ofKey] = await Promise.all([
    findEach(lists, HELD, holding, keyName),
    findEach(lists, SPENT_ON_DAY, days, dayName),
    findEach(lists, REJECTED, asked, requestName),
    findEach(lists, REPEATED, asked, requestName),
    findEach(lists, COUNT_OF_KEY, asked, keyName),
  ]);
  /** How many actions of a key are held, and how many it created on a day. */
  const held = new Map([...heldRows].map(([name, [row]]) => [name, row?.held ?? 0]));
  const spent = new Map([...spentRows].map(([name, [row]]) => [name, row?.created ?? 0]));
  const counts = new Map(
    asked.map((one) => {
      const [name, ofThisKey] = [requestName(one), ofKey.get(keyName(one)) ?? []];
      return [name, rejectionCount(rejected.get(name) ?? [], repeated.get(name) ?? [], ofThisKey)];
    }),
  );
  const countOf = ({ accountId, keyId }: CountedWrite, { digest }: RejectionEntry): RejectionCount =>
    counts.get(requestName({ accountId, keyId, digest })) ?? NEVER_REJECTED;
  return {
    /** Why a write may not be made now, or null. */
    findRefusal(one: CountedWrite): KeyRefusal | null {
      const { request, budget } = one;
      if (request?.kind === "asked" && !mayRepeat(countOf(one, request), saysWhy(request.reason)))
        return { kind: "rejected_before", request };
      if (budget !== null && (spent.get(dayName(budget)) ?? 0) >= budget.limit) return { kind: "budget_spent" };
      if (one.isHeld === true && (held.get(keyName(one)) ?? 0) >= HELD_PER_KEY_MAX) return { kind: "too_many_held" };
      return null;
    },

    /** Counts a write for those that follow. */
    add(one: CountedWrite): void {
      const { accountId, keyId, request, budget } = one;
      if (request?.kind === "asked") {
        const before = countOf(one, request);
        const repeatedAt = [new Date(one.at), ...before.repeatedAt];
        const name = requestName({ accountId, keyId, digest: request.digest });
        if (before.rejectedAt !== null) counts.set(name, { ...before, repeatedAt });
      }
      if (budget !== null) spent.set(dayName(budget), (spent.get(dayName(budget)) ?? 0) + 1);
      if (one.isHeld === true) held.set(keyName(one), (held.get(keyName(one)) ?? 0) + 1);
    },

    /** Writes what requests, decisions and creates add. */
    async write(tx: Tx, written: readonly CountedWrite[]): Promise<void> {
      const budgets = written.flatMap(({ budget }) => budget ?? []);
      const added = [...Map.groupBy(budgets, dayName).values()].flatMap((each) =>
        each.slice(0, 1).map(({ keyId, day }) => [keyId, day, each.length]),
      );
      await tx.lists.insert(SPENT, added);
      const entries = written.flatMap((one) => (one.request === null ? [] : { ...one, request: one.request }));
      const counted = entries.filter((one) => {
        const before = countOf(one, one.request);
        // A request is counted only after a rejection.
        return one.request.kind === "asked"
          ? before.rejectedAt !== null
          : one.request.kind === "rejected" && before.fullSince === null;
      });
      const rows = counted.map(({ id, request, ...one }) =>
        valuesOf(REJECTIONS.columns, { run: 1, ...request, ...one, actionId: id, actor: request.by }),
      );
      await tx.lists.insert(REJECTIONS, rows);
      for (const { accountId, keyId, request } of entries) {
        if (request.kind !== "approved") continue;
        await tx.db.delete(rejections).where(hasValues(rejections, { accountId, keyId, digest: request.digest }));
      }
    },
  };
}

function keyName({ accountId, keyId }: Pick<CountedWrite, "accountId" | "keyId">): string {
  return `${accountId} ${keyId}`;
}

function dayName({ keyId, day }: Pick<KeyBudget, "keyId" | "day">): string {
  return `${keyId} ${day}`;
}

function requestName(one: Pick<CountedWrite, "accountId" | "keyId"> & Pick<RejectionEntry, "digest">): string {
  return `${keyName(one)} ${one.digest}`;
}

/** See `ActionStore.hasBudgetLeft`. */
export async function hasBudgetLeft(reader: Reader, { keyId, day, limit }: KeyBudget): Promise<boolean> {
  const found = await SPENT_ON_DAY.get(reader, { keyId, day });
  return found === null || found.created < limit;
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
  return {
    ...writer.methods({ prune: pruneRejections }),
    count: (request, now) => countRejections(reader, request, now),
    async earlier({ id, run, accountId, keyId }, digest, now) {
      const { kind, at, actor: by, reason, actionId } = rejections;
      const entries = qb
        .select({ kind, at, by, reason, actionId, run: rejections.run })
        .from(rejections)
        .where(and(eq(rejections.digest, digest), isOfKey(accountId, keyId, rejectionWindowStart(now))));
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
      const isSimilar = and(
        hasValues(rejections, { similar, kind: "rejected" }),
        isOfKey(accountId, keyId, rejectionWindowStart(now)),
      );
      const isOther = and(isSimilar, ne(rejections.digest, digest));
      return countRows(reader, rejections, isOther, SIMILAR_REJECTIONS_COUNTED_MAX);
    },
  };
}
