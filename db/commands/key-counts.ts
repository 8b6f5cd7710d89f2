import { count } from "drizzle-orm";
import { HELD_PER_KEY_MAX } from "../../src/core/limits.ts";
import {
  mayRepeat,
  type RejectionCount,
  type RejectionEntry,
  rejectionWindowStart,
  saysWhy,
} from "../../src/core/rejections.ts";
import type { KeyBudget } from "../../src/core/store.ts";
import { hasValues, prepare, qb } from "../sql/read.ts";
import type { Tx } from "./command.ts";
import { findEach, insertEach, insertList, valuesOf } from "./lists.ts";
import { COUNT_OF_KEY, REJECTED, REPEATED, rejectionCount } from "./rejections.ts";
import { actions, keyDays, rejections } from "../libsql/schema.ts";

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

export const SPENT_ON_DAY = prepare({ keyId: "text", day: "number" }, ({ keyId, day }) =>
  qb.select({ created: keyDays.created }).from(keyDays).where(hasValues(keyDays, { keyId, day })),
);

const REJECTIONS = insertList(rejections, ["seq"]);

const SPENT = insertList(
  keyDays,
  [],
  "on conflict (key_id, day) do update set created = key_days.created + excluded.created",
);

const NEVER_REJECTED: RejectionCount = { rejectedAt: null, repeatedAt: [], fullSince: null };

/** What limits keys, in memory. The writes of a list are added as they are decided. */
export class KeyCounts {
  /** How many actions of a key are held, and how many it created on a day. */
  readonly #held: Map<string, number>;
  readonly #spent: Map<string, number>;
  readonly #rejections: Map<string, RejectionCount>;

  constructor(held: Map<string, number>, spent: Map<string, number>, rejected: Map<string, RejectionCount>) {
    this.#held = held;
    this.#spent = spent;
    this.#rejections = rejected;
  }

  /** Why a write may not be made now, or null. */
  refusalOf(one: CountedWrite): KeyRefusal | null {
    const { request, budget } = one;
    if (request?.kind === "asked" && !mayRepeat(this.#rejectionsOf(one, request), saysWhy(request.reason)))
      return { kind: "rejected_before", request };
    if (budget !== null && (this.#spent.get(dayName(budget)) ?? 0) >= budget.limit) return { kind: "budget_spent" };
    if (one.isHeld === true && (this.#held.get(keyName(one)) ?? 0) >= HELD_PER_KEY_MAX)
      return { kind: "too_many_held" };
    return null;
  }

  /** Counts a write for those that follow. */
  add(one: CountedWrite): void {
    const { request, budget } = one;
    if (request?.kind === "asked") {
      const before = this.#rejectionsOf(one, request);
      const repeatedAt = [new Date(one.at), ...before.repeatedAt];
      const name = requestName({ accountId: one.accountId, keyId: one.keyId, digest: request.digest });
      if (before.rejectedAt !== null) this.#rejections.set(name, { ...before, repeatedAt });
    }
    if (budget !== null) this.#spent.set(dayName(budget), (this.#spent.get(dayName(budget)) ?? 0) + 1);
    if (one.isHeld === true) this.#held.set(keyName(one), (this.#held.get(keyName(one)) ?? 0) + 1);
  }

  /** Writes what requests, decisions and creates add. */
  async write(tx: Tx, list: readonly CountedWrite[]): Promise<void> {
    const days = Map.groupBy(
      list.flatMap(({ budget }) => budget ?? []),
      dayName,
    );
    await insertEach(tx.lists, SPENT, [...days.values()], (each) =>
      each.slice(0, 1).map(({ keyId, day }) => [keyId, day, each.length]),
    );
    const entries = list.flatMap((one) => (one.request === null ? [] : { ...one, request: one.request }));
    const counted = entries.filter((one) => {
      const before = this.#rejectionsOf(one, one.request);
      // A request is counted only after a rejection.
      return one.request.kind === "asked"
        ? before.rejectedAt !== null
        : one.request.kind === "rejected" && before.fullSince === null;
    });
    await insertEach(tx.lists, REJECTIONS, counted, ({ id, request, ...one }) => [
      valuesOf(REJECTIONS.columns, { run: 1, ...request, ...one, actionId: id, actor: request.by }),
    ]);
    for (const { accountId, keyId, request } of entries) {
      if (request.kind !== "approved") continue;
      await tx.db.delete(rejections).where(hasValues(rejections, { accountId, keyId, digest: request.digest }));
    }
  }

  #rejectionsOf({ accountId, keyId }: CountedWrite, { digest }: RejectionEntry): RejectionCount {
    return this.#rejections.get(requestName({ accountId, keyId, digest })) ?? NEVER_REJECTED;
  }
}

/** Reads what limits the keys of a list of writes, each row once. */
export async function readKeyCounts({ lists }: Tx, list: readonly CountedWrite[]): Promise<KeyCounts> {
  const holding = list.flatMap(({ accountId, keyId, isHeld }) => (isHeld === true ? [{ accountId, keyId }] : []));
  const days = list.flatMap(({ budget }) => (budget === null ? [] : [{ keyId: budget.keyId, day: budget.day }]));
  const asked = list.flatMap(({ accountId, keyId, at, request }) => {
    if (request === null || request.kind === "approved") return [];
    return [{ accountId, keyId, digest: request.digest, rejectedAfter: rejectionWindowStart(new Date(at)).getTime() }];
  });
  const [held, spent, rejected, repeated, ofKey] = await Promise.all([
    findEach(lists, HELD, holding, keyName),
    findEach(lists, SPENT_ON_DAY, days, dayName),
    findEach(lists, REJECTED, asked, requestName),
    findEach(lists, REPEATED, asked, requestName),
    findEach(lists, COUNT_OF_KEY, asked, keyName),
  ]);
  return new KeyCounts(
    new Map([...held].map(([name, [row]]) => [name, row?.held ?? 0])),
    new Map([...spent].map(([name, [row]]) => [name, row?.created ?? 0])),
    new Map(
      asked.map((one) => {
        const [name, ofThisKey] = [requestName(one), ofKey.get(keyName(one)) ?? []];
        return [name, rejectionCount(rejected.get(name) ?? [], repeated.get(name) ?? [], ofThisKey)];
      }),
    ),
  );
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
