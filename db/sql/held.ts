import { and, eq, gt, type Placeholder, sql } from "drizzle-orm";
import { COUNTED_MAX, HELD_PER_KEY_MAX, HELD_REQUESTERS_SHOWN_MAX, LIST_BYTES_MAX } from "../../src/config/limits.ts";
import type { Action } from "../../src/actions/action.ts";
import type { HeldHead, HeldPage, Requester, WaitingApprovals } from "../store.ts";
import type { StoreContext } from "./context.ts";
import { isOneOf } from "./dialect.ts";
import { BYTES, idsWithin } from "./find.ts";
import { actionsOf } from "./list.ts";
import { type Args, prepare, query } from "./query.ts";
import { actions } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

const isHeld = (accountId: Placeholder) =>
  and(eq(actions.accountId, accountId), eq(actions.status, "awaiting_approval"));

const isHeldBy = (arg: Args<"accountId" | "keyId">) => and(isHeld(arg.accountId), eq(actions.keyId, arg.keyId));

/** The needless terms make SQLite use the partial index by status. */
const IS_BY_STATUS = sql`${actions.status} <> 'completed' and ${actions.status} <> 'active'`;

const HELD = prepare((arg: Args<"accountId" | "after" | "limit">) => {
  const held = query.select({ id: actions.id, bytes: BYTES }).from(actions);
  const ofAccount = held.where(and(isHeld(arg.accountId), IS_BY_STATUS, gt(actions.id, arg.after)));
  return ofAccount.orderBy(actions.id).limit(arg.limit);
});

const HELD_BY_KEY = prepare((arg: Args<"accountId" | "keyId" | "after" | "limit">) => {
  const held = query.select({ id: actions.id, bytes: BYTES }).from(actions);
  return held
    .where(and(isHeldBy(arg), gt(actions.id, arg.after)))
    .orderBy(actions.id)
    .limit(arg.limit);
});

const HEADS = prepare((arg: Args<"accountId" | "limit">) => {
  const { id, keyId, createdBy, host } = actions;
  const held = query.select({ id, keyId, createdBy, host }).from(actions);
  return held
    .where(and(isHeld(arg.accountId), IS_BY_STATUS))
    .orderBy(id)
    .limit(arg.limit);
});

const COUNT = prepare((arg: Args<"accountId" | "limit">) => {
  const ids = query.select({ id: actions.id }).from(actions);
  const held = ids
    .where(and(isHeld(arg.accountId), IS_BY_STATUS))
    .limit(arg.limit)
    .as("held");
  return query.select({ count: sql<number>`count(*)`.as("count") }).from(held);
});

const HELD_AMONG = prepare((arg: Args<"accountId" | "ids">) => {
  const held = query.select({ id: actions.id, bytes: BYTES }).from(actions);
  return held.where(and(isHeld(arg.accountId), isOneOf(actions.id, arg.ids))).orderBy(actions.id);
});

const IDS_BY_KEY = prepare((arg: Args<"accountId" | "keyId" | "limit" | "offset">) => {
  const held = query.select({ id: actions.id }).from(actions).where(isHeldBy(arg));
  return held.orderBy(actions.id).limit(arg.limit).offset(arg.offset);
});

const COUNT_BY_KEY = prepare((arg: Args<"accountId" | "keyId" | "limit">) => {
  const held = query.select({ id: actions.id }).from(actions).where(isHeldBy(arg)).limit(arg.limit).as("held");
  return query.select({ count: sql<number>`count(*)`.as("count") }).from(held);
});

const HEAD_BY_KEY = prepare((arg: Args<"accountId" | "keyId">) => {
  const held = query.select({ id: actions.id, createdBy: actions.createdBy }).from(actions).where(isHeldBy(arg));
  return held.orderBy(actions.id).limit(1);
});

const BYTES_OF = prepare((arg: Args<"ids">) =>
  query.select({ id: actions.id, bytes: BYTES }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** Ids begin with their time, so the first one is the oldest. */
const OLDEST = prepare((arg: Args<"accountId">) => {
  const held = query.select({ createdAt: actions.createdAt }).from(actions);
  return held
    .where(and(isHeld(arg.accountId), IS_BY_STATUS))
    .orderBy(actions.id)
    .limit(1);
});

/** The first key with a held action, or the next one. The id of a key may be empty, so there are two statements. */
const FIRST_KEY = prepare((arg: Args<"accountId">) => {
  const held = query.select({ keyId: actions.keyId }).from(actions).where(isHeld(arg.accountId));
  return held.orderBy(actions.keyId).limit(1);
});

const NEXT_KEY = prepare((arg: Args<"accountId" | "keyId">) => {
  const held = query.select({ keyId: actions.keyId }).from(actions);
  return held
    .where(and(isHeld(arg.accountId), gt(actions.keyId, arg.keyId)))
    .orderBy(actions.keyId)
    .limit(1);
});

/**
 * Actions awaiting approval, oldest first and bounded in bytes; with a key only those of that key. With several keys a
 * page takes the oldest of each in turn, so that none buries the others.
 */
export async function findHeld(
  db: Pick<StoreContext, "sql" | "seal">,
  accountId: string,
  { after, keyId }: { readonly after: string | null; readonly keyId: string | null },
  limit: number,
): Promise<HeldPage> {
  const from = placeOf(after);
  const keyIds = keyId === null && (after === null || from !== null) ? await holdingKeys(db.sql, accountId) : [];
  if (from !== null || keyIds.length > 1) {
    return fairPage(db, { accountId, keyIds, from: from ?? { turn: 1, id: "" } }, limit);
  }
  const values = { accountId, after: after ?? "", limit: limit + 1 };
  const found = await (keyId === null ? HELD.read(db.sql, values) : HELD_BY_KEY.read(db.sql, { ...values, keyId }));
  const ids = idsWithin(LIST_BYTES_MAX, found.slice(0, limit));
  return { actions: await actionsOf(db, ids), after: found.length > ids.length ? (ids.at(-1) ?? null) : null };
}

/** Actions awaiting approval without what they send, oldest first. */
export async function findHeldHeads(reader: Sql, accountId: string, limit: number): Promise<readonly HeldHead[]> {
  return HEADS.read(reader, { accountId, limit });
}

/** How many actions of an account await approval, at most `limit`. */
export async function countAllHeld(reader: Sql, accountId: string, limit: number): Promise<number> {
  const [counted] = await COUNT.read(reader, { accountId, limit });
  return counted?.count ?? 0;
}

/** Those of the actions that still await approval, oldest first and bounded in bytes. */
export async function findHeldAmong(
  db: Pick<StoreContext, "sql" | "seal">,
  accountId: string,
  ids: readonly string[],
): Promise<readonly Action[]> {
  const found = await HELD_AMONG.read(db.sql, { accountId, ids: JSON.stringify(ids) });
  return actionsOf(db, idsWithin(LIST_BYTES_MAX, found));
}

/** How many actions of each key await approval, up to a bound; the longest waiting key first. */
export async function findRequesters(reader: Sql, accountId: string): Promise<readonly Requester[]> {
  const keyIds = await holdingKeys(reader, accountId);
  const heads = await Promise.all(
    keyIds.map(async (keyId) => {
      const [head] = await HEAD_BY_KEY.read(reader, { accountId, keyId });
      return head === undefined ? [] : [{ ...head, keyId }];
    }),
  );
  const first = heads.flat().toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return Promise.all(
    first.slice(0, HELD_REQUESTERS_SHOWN_MAX).map(async ({ keyId, createdBy }) => ({
      keyId,
      createdBy,
      count: await countHeld(reader, accountId, keyId, COUNTED_MAX),
    })),
  );
}

/** How many actions of a key await approval, at most `limit`. */
export async function countHeld(
  reader: Sql,
  accountId: string,
  keyId: string,
  limit: number = HELD_PER_KEY_MAX,
): Promise<number> {
  const [counted] = await COUNT_BY_KEY.read(reader, { accountId, keyId, limit });
  return counted?.count ?? 0;
}

/** The actions of an account that await approval, counted up to `COUNTED_MAX`. */
export async function readWaiting(reader: Sql, accountId: string): Promise<WaitingApprovals> {
  const count = await countAllHeld(reader, accountId, COUNTED_MAX);
  const [oldest] = count === 0 ? [] : await OLDEST.read(reader, { accountId });
  return { count, isCut: count === COUNTED_MAX, oldestAt: oldest?.createdAt ?? null };
}

/** A position in the fair order: the first action of every key, then the second of every key, and so on. */
interface Place {
  /** From 1. */
  readonly turn: number;
  readonly id: string;
}

function placeOf(after: string | null): Place | null {
  const [, turn, id] = /^(\d{1,9})\.(.+)$/.exec(after ?? "") ?? [];
  return turn === undefined || id === undefined ? null : { turn: Math.max(1, Number(turn)), id };
}

interface FairQuery {
  readonly accountId: string;
  readonly keyIds: readonly string[];
  readonly from: Place;
}

async function fairPage(
  db: Pick<StoreContext, "sql" | "seal">,
  { accountId, keyIds, from }: FairQuery,
  limit: number,
): Promise<HeldPage> {
  const places: Place[] = [];
  for (const keyId of keyIds) {
    // A page, one to know whether more follow, and the position itself.
    const rows = await IDS_BY_KEY.read(db.sql, { accountId, keyId, limit: limit + 2, offset: from.turn - 1 });
    rows.forEach(({ id }, at) => places.push({ turn: from.turn + at, id }));
  }
  const next = places
    .filter(({ turn, id }) => turn > from.turn || id > from.id)
    .toSorted((a, b) => a.turn - b.turn || (a.id < b.id ? -1 : 1))
    .slice(0, limit + 1);
  if (next.length === 0) return { actions: [], after: null };
  const sizes = await BYTES_OF.read(db.sql, { ids: JSON.stringify(next.map(({ id }) => id)) });
  const byId = new Map(sizes.map((size) => [size.id, size]));
  const ids = idsWithin(LIST_BYTES_MAX, next.flatMap(({ id }) => byId.get(id) ?? []).slice(0, limit));
  const last = next.findLast(({ id }) => id === ids.at(-1));
  const isCut = last !== undefined && next.length > ids.length;
  return { actions: await actionsOf(db, ids.toSorted()), after: isCut ? `${last.turn}.${last.id}` : null };
}

/** The keys with held actions: one index lookup per key. */
async function holdingKeys(reader: Sql, accountId: string): Promise<readonly string[]> {
  const keyIds: string[] = [];
  let [next] = await FIRST_KEY.read(reader, { accountId });
  while (next !== undefined) {
    keyIds.push(next.keyId);
    [next] = await NEXT_KEY.read(reader, { accountId, keyId: next.keyId });
  }
  return keyIds;
}
