import { and, eq, gt, lt, type Placeholder, sql } from "drizzle-orm";
import { HELD_KEYS_MAX, HELD_TURN_KEYS_MAX, LIST_BYTES_MAX } from "../../src/core/limits.ts";
import type { Action } from "../../src/core/action.ts";
import { firstActionId } from "../../src/core/ids.ts";
import type { HeldFilter, HeldPage } from "../../src/core/store.ts";
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
    ids: prepare((arg: Args<HeldName | "after" | "limit">) => {
      const held = query.select({ id: actions.id }).from(actions);
      return held
        .where(and(isOfKey(arg), gt(actions.id, arg.after)))
        .orderBy(actions.id)
        .limit(arg.limit);
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
  const { keyId: wanted, host } = filter;
  const keyIds = wanted === null ? await holdingKeys(db.sql, accountId, host) : [wanted];
  const place = after === null ? { isInTurns: keyIds.length > 1, id: "", later: NOWHERE } : placeFrom(after);
  const { ids: statement } = heldOf(host === null ? "all" : "host");
  const values = { accountId, host, before: idBefore(filter), limit: limit + 1 };
  const read = keyIds.map(async (keyId): Promise<readonly Held[]> => {
    const rows = await statement.read(db.sql, { ...values, keyId, after: placeOf(place, keyId) });
    return rows.map(({ id }, turn) => ({ id, keyId, turn: place.isInTurns ? turn : 0 }));
  });
  const next = (await Promise.all(read))
    .flat()
    .toSorted((a, b) => a.turn - b.turn || (a.id < b.id ? -1 : 1))
    .slice(0, limit + 1);
  if (next.length === 0) return { actions: [], after: null };
  const sizes = await BYTES_OF.read(db.sql, { ids: JSON.stringify(next.map(({ id }) => id)) });
  const byId = new Map(sizes.map((size) => [size.id, size]));
  const ids = idsWithin(LIST_BYTES_MAX, next.flatMap(({ id }) => byId.get(id) ?? []).slice(0, limit));
  const shown = next.slice(0, next.findLastIndex(({ id }) => id === ids.at(-1)) + 1);
  const isCut = next.length > shown.length;
  return { actions: await actionsOf(db, ids.toSorted()), after: isCut ? textOf(behind(place, shown)) : null };
}

interface Held {
  readonly id: string;
  readonly keyId: string;
  /** How many of the key come before it on this page; 0 for all that come by their ids. */
  readonly turn: number;
}

/**
 * How far the pages before went, so that no request comes twice or is left out, whatever is decided meanwhile: a number of
 * those shown would count on what is gone.
 */
interface Place {
  readonly isInTurns: boolean;
  /** All up to this id were shown, empty: none. */
  readonly id: string;
  /** Where keys are further, by their ids: at most `HELD_TURN_KEYS_MAX` and those of a page. */
  readonly later: ReadonlyMap<string, string>;
}

const NOWHERE: Place["later"] = new Map();

function placeOf({ id, later }: Place, keyId: string): string {
  return later.get(keyId) ?? id;
}

/** The place behind what a page has shown. With many keys the cursor would be too long: from then on all come by their ids. */
function behind({ isInTurns, id, later }: Place, shown: readonly Held[]): Place {
  if (isInTurns) {
    const reached = new Map([...later, ...shown.map(({ keyId, id: last }) => [keyId, last] as const)]);
    return { isInTurns: reached.size <= HELD_TURN_KEYS_MAX, id, later: reached };
  }
  const last = shown.at(-1)?.id ?? id;
  return { isInTurns, id: last, later: new Map([...later].filter(([, reached]) => reached > last)) };
}

const IN_TURNS = "turns";

/** As `after` has it: an id, or `turns`, and then each key that is further with its id. None of them has a `~`. */
function textOf({ isInTurns, id, later }: Place): string {
  return [isInTurns ? IN_TURNS : id, ...[...later].flat()].join("~");
}

function placeFrom(after: string): Place {
  const [start = "", ...rest] = after.split("~");
  const later = new Map<string, string>();
  for (let at = 0; at + 1 < rest.length; at += 2) later.set(rest[at] ?? "", rest[at + 1] ?? "");
  const isInTurns = start === IN_TURNS;
  return { isInTurns, id: isInTurns ? "" : start, later };
}

/** The keys with held actions: one look into the index for each. */
async function holdingKeys(reader: Sql, accountId: string, host: string | null): Promise<readonly string[]> {
  const { keys } = heldOf(host === null ? "all" : "host");
  const found = await keys.read(reader, { accountId, host, limit: HELD_KEYS_MAX });
  return found.map(({ key_id: keyId }) => keyId);
}

/** Later than every id. */
const AFTER_ALL_IDS = "\u{10ffff}";

/** The id that those before a time are below: ids begin with their time. */
export function idBefore({ before }: Pick<HeldFilter, "before">): string {
  return before === null ? AFTER_ALL_IDS : firstActionId(before);
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
