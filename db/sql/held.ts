import { and, eq, gt, lt, type Placeholder, sql } from "drizzle-orm";
import { HELD_KEYS_MAX, LIST_BYTES_MAX } from "../../src/config/limits.ts";
import type { Action } from "../../src/actions/action.ts";
import { firstActionId } from "../../src/runtime/ids.ts";
import type { HeldFilter, HeldPage } from "../store.ts";
import type { StoreContext } from "./context.ts";
import { isOneOf } from "./dialect.ts";
import { valuesOf } from "./filter-values.ts";
import { BYTES, idsWithin } from "./find.ts";
import { actionsOf } from "./list.ts";
import { type Args, prepare, prepareEach, query } from "./query.ts";
import { actions } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

export const isHeld = (accountId: Placeholder) =>
  and(eq(actions.accountId, accountId), eq(actions.status, "awaiting_approval"));

/** For `valuesOf`. */
export const AND_HELD = sql` and ${actions.status} = 'awaiting_approval'`;

type HeldName = "accountId" | "keyId" | "host" | "before";

/** The held actions of a key, of all hosts or of one, each by an index that has them in the order of their ids. */
const heldOf = prepareEach((variant: "all" | "host") => {
  const isOfKey = (arg: Args<HeldName>) => {
    const isHost = variant === "host" ? eq(actions.host, arg.host) : undefined;
    return and(isHeld(arg.accountId), isHost, eq(actions.keyId, arg.keyId), lt(actions.id, arg.before));
  };
  return {
    keys: prepare((arg: Args<"accountId" | "host" | "limit">) => {
      const also = variant === "host" ? sql`${AND_HELD} and ${actions.host} = ${arg.host}` : AND_HELD;
      return sql<{ readonly key_id: string }>`with ${valuesOf(actions.keyId, { accountId: arg.accountId, also })}
        select value as key_id from found where value is not null limit ${arg.limit}`;
    }),
    after: prepare((arg: Args<HeldName | "after" | "limit">) => {
      const held = query.select({ id: actions.id, bytes: BYTES }).from(actions);
      return held
        .where(and(isOfKey(arg), gt(actions.id, arg.after)))
        .orderBy(actions.id)
        .limit(arg.limit);
    }),
    ids: prepare((arg: Args<HeldName | "limit" | "offset">) => {
      const held = query.select({ id: actions.id }).from(actions).where(isOfKey(arg));
      return held.orderBy(actions.id).limit(arg.limit).offset(arg.offset);
    }),
  };
});

const HELD_AMONG = prepare((arg: Args<"accountId" | "ids">) => {
  const held = query.select({ id: actions.id, bytes: BYTES }).from(actions);
  return held.where(and(isHeld(arg.accountId), isOneOf(actions.id, arg.ids))).orderBy(actions.id);
});

const BYTES_OF = prepare((arg: Args<"ids">) =>
  query.select({ id: actions.id, bytes: BYTES }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

type Reader = Pick<StoreContext, "sql" | "seal">;

/**
 * Actions awaiting approval, oldest first and bounded in bytes. With several keys a page takes the oldest of each in turn,
 * so that none buries the others.
 */
export async function findHeld(
  db: Reader,
  accountId: string,
  { after, limit, ...filter }: HeldFilter & { readonly after: string | null; readonly limit: number },
): Promise<HeldPage> {
  const from = placeOf(after);
  const keyIds = filter.keyId === null ? await holdingKeys(db.sql, accountId, filter.host) : [filter.keyId];
  const asked = { accountId, keyIds, filter };
  if (from !== null || (after === null && keyIds.length > 1)) {
    return fairPage(db, { ...asked, from: from ?? { turn: 1, id: "" } }, limit);
  }
  return pageById(db, asked, { after: after ?? "", limit });
}

/** The keys with held actions: one look into the index for each. */
async function holdingKeys(reader: Sql, accountId: string, host: string | null): Promise<readonly string[]> {
  const { keys } = heldOf(host === null ? "all" : "host");
  const found = await keys.read(reader, { accountId, host, limit: HELD_KEYS_MAX });
  return found.map(({ key_id: keyId }) => keyId);
}

interface KeysQuery {
  readonly accountId: string;
  readonly keyIds: readonly string[];
  readonly filter: HeldFilter;
}

/** Later than every id. */
const AFTER_ALL_IDS = "\u{10ffff}";

/** The id that those before a time are below: ids begin with their time. */
export function idBefore({ before }: Pick<HeldFilter, "before">): string {
  return before === null ? AFTER_ALL_IDS : firstActionId(before);
}

async function pageById(
  db: Reader,
  { accountId, keyIds, filter }: KeysQuery,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<HeldPage> {
  const statements = heldOf(filter.host === null ? "all" : "host");
  const values = { accountId, host: filter.host, before: idBefore(filter), after, limit: limit + 1 };
  const read = await Promise.all(keyIds.map((keyId) => statements.after.read(db.sql, { ...values, keyId })));
  const found = read.flat().toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const ids = idsWithin(LIST_BYTES_MAX, found.slice(0, limit));
  return { actions: await actionsOf(db, ids), after: found.length > ids.length ? (ids.at(-1) ?? null) : null };
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

async function fairPage(
  db: Reader,
  { accountId, keyIds, filter, from }: KeysQuery & { readonly from: Place },
  limit: number,
): Promise<HeldPage> {
  const statements = heldOf(filter.host === null ? "all" : "host");
  // A page, one to know whether more follow, and the position itself.
  const window = { limit: limit + 2, offset: from.turn - 1 };
  const values = { accountId, host: filter.host, before: idBefore(filter), ...window };
  const read = await Promise.all(keyIds.map((keyId) => statements.ids.read(db.sql, { ...values, keyId })));
  const places = read.flatMap((rows) => rows.map(({ id }, at): Place => ({ turn: from.turn + at, id })));
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

/** Those of the actions that still await approval, oldest first and bounded in bytes. */
export async function findHeldAmong(
  db: Pick<StoreContext, "sql" | "seal">,
  accountId: string,
  ids: readonly string[],
): Promise<readonly Action[]> {
  const found = await HELD_AMONG.read(db.sql, { accountId, ids: JSON.stringify(ids) });
  return actionsOf(db, idsWithin(LIST_BYTES_MAX, found));
}
