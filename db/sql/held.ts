/** What awaits approval: pages in which keys take turns, counts, hosts and requesters. */
import { and, between, eq, lt, type SQL, sql } from "drizzle-orm";
import { firstActionId } from "../../src/core/ids.ts";
import {
  COUNTED_MAX,
  DAY_MS,
  HELD_HOSTS_SHOWN_MAX,
  HELD_KEYS_MAX,
  HELD_REQUESTERS_SHOWN_MAX,
  HELD_TURN_KEYS_MAX,
  HOUR_MS,
  LIST_BYTES_MAX,
} from "../../src/core/limits.ts";
import { type ActionStore, type HeldFilter, NO_FILTER, type WaitingHost } from "../../src/core/store.ts";
import { actions } from "../tables.ts";
import { AFTER_ALL_IDS, all, bytesOfAction, eachValue, get, qb } from "./read.ts";
import { type ActionAccess, findActions, fitting } from "./rows.ts";

interface Held {
  readonly id: string;
  readonly keyId: string;
  /** How many actions of its key come before it on this page; 0 if the page is in the order of ids. */
  readonly turn: number;
}

interface KeyIds {
  readonly keyId: string;
  /** A JSON list; null: no more. */
  readonly ids: string | null;
}

/** How far the earlier pages went. It has ids, since a count would be wrong once some of those actions are decided. */
interface Place {
  readonly isInTurns: boolean;
  /** Everything up to this id was shown; empty: nothing. */
  readonly id: string;
  /** For each key that is ahead of `id`, its last id shown: at most `HELD_TURN_KEYS_MAX` keys and those of a page. */
  readonly later: ReadonlyMap<string, string>;
}

const NOWHERE: Place["later"] = new Map();

/** The place after a page. If there are too many keys for a cursor, the next pages are in the order of ids. */
function behind({ isInTurns, id, later }: Place, shown: readonly Held[]): Place {
  if (isInTurns) {
    const reached = new Map([...later, ...shown.map(({ keyId, id: last }) => [keyId, last] as const)]);
    return { isInTurns: reached.size <= HELD_TURN_KEYS_MAX, id, later: reached };
  }
  const last = shown.at(-1)?.id ?? id;
  return { isInTurns, id: last, later: new Map([...later].filter(([, reached]) => reached > last)) };
}

const IN_TURNS = "turns";

/** The cursor: an id or `turns`, then each key and id of `later`, joined by `~`, which none of them contains. */
function cursorText({ isInTurns, id, later }: Place): string {
  return [isInTurns ? IN_TURNS : id, ...[...later].flat()].join("~");
}

function placeFrom(after: string): Place {
  const [start = "", ...rest] = after.split("~");
  const later = new Map<string, string>();
  for (let at = 0; at + 1 < rest.length; at += 2) later.set(rest[at] ?? "", rest[at + 1] ?? "");
  const isInTurns = start === IN_TURNS;
  return { isInTurns, id: isInTurns ? "" : start, later };
}

/** Actions created before this time have smaller ids, since an id begins with its time. */
function idBefore({ before }: Pick<HeldFilter, "before">): string {
  return before === null ? AFTER_ALL_IDS : firstActionId(before);
}

export function createHeldReads(reads: Pick<ActionAccess, "reader" | "seal">) {
  const { reader } = reads;
  const { isOneOf, itemsOf, placeIn, jsonList, indexedBy } = reader.dialect;
  const { id, keyId, host, status, createdAt, createdBy } = actions;
  // A literal, since SQLite uses a partial index only if it sees the value of its condition.
  const isHeld = (accountId: string) => and(eq(actions.accountId, accountId), sql`${status} = 'awaiting_approval'`);
  // The condition of the index by status.
  const isByStatus = sql`${status} <> 'completed' and ${status} <> 'active'`;
  /**
   * The held actions of a key or a host, in the order of the index by keys or by hosts. In any other order, PostgreSQL would
   * read everything held in the account until it has statistics of the table.
   */
  const heldIds = (accountId: string, condition: SQL | undefined) =>
    qb
      .select({ id })
      .from(actions)
      .where(and(isHeld(accountId), condition))
      .orderBy(keyId, id);
  // A range, since PostgreSQL leaves a column that equals one value out of the order.
  const isOfKey = (key: SQL) => between(keyId, key, key);
  const columns = { id, accountId: actions.accountId, status, bytes: bytesOfAction().as("bytes") };
  const selectSizes = (ids: readonly string[]) => qb.select(columns).from(actions).where(isOneOf(id, ids));
  const heldTotal: ActionStore["heldTotal"] = async (accountId, filter, limit) => {
    const isKey = filter.keyId === null ? undefined : isOfKey(sql`${filter.keyId}`);
    const isHost = filter.host === null ? undefined : eq(host, filter.host);
    // Reads only entries of one index. Without the hint, SQLite would take an index of all actions.
    const ofAll = isKey === undefined ? "actions_by_status" : "actions_held_by_key";
    const index = isHost === undefined ? ofAll : "actions_held_by_host";
    const isIndexed = index === "actions_by_status" ? isByStatus : undefined;
    const isCounted = and(isHeld(accountId), isIndexed, isHost, isKey, lt(id, idBefore(filter)));
    const order = isIndexed === undefined ? sql`order by ${keyId}, ${id}` : sql``;
    const counted = await get(
      reader,
      sql<{ readonly count: number }>`select count(*) as count from (
        select ${id} from ${indexedBy(actions, index)} where ${isCounted} ${order} limit ${limit}) held`,
    );
    return counted?.count ?? 0;
  };
  return {
    heldTotal,

    // A page takes the oldest action of each key in turn, so that no key buries the others.
    async held(accountId, after, limit, filter = NO_FILTER) {
      const isHost = filter.host === null ? undefined : eq(host, filter.host);
      const isAtHost = and(isHeld(accountId), isHost);
      const keys = eachValue<{ readonly key: string }>(keyId, isAtHost, sql`found.value as key`, HELD_KEYS_MAX);
      const keyIds = filter.keyId === null ? (await all(reader, keys)).map(({ key }) => key) : [filter.keyId];
      const place = after === null ? { isInTurns: keyIds.length > 1, id: "", later: NOWHERE } : placeFrom(after);
      const [key, reached] = [placeIn(0), placeIn(1)];
      const isBehind = sql`(${keyId}, ${id}) > (${key}, ${reached}) and (${keyId}, ${id}) < (${key}, ${idBefore(filter)})`;
      const ofKey = heldIds(accountId, and(isHost, isBehind));
      const asked = keyIds.map((one) => [one, place.later.get(one) ?? place.id]);
      const ids = sql`select ${jsonList(sql`held.id`)} from ${ofKey.limit(limit + 1).as("held")}`;
      const ofKeys = sql<KeyIds>`select j.value as asked, ${key} as "keyId", (${ids}) as ids from ${itemsOf(asked)}`;
      const next = (await all(reader, ofKeys))
        .flatMap((row) => {
          // Safe: ids are texts.
          const found = JSON.parse(row.ids ?? "[]") as readonly string[];
          return found.map((one, turn) => ({ id: one, keyId: row.keyId, turn: place.isInTurns ? turn : 0 }));
        })
        .toSorted((a, b) => a.turn - b.turn || (a.id < b.id ? -1 : 1))
        .slice(0, limit + 1);
      if (next.length === 0) return { actions: [], after: null };
      const nextIds = next.map((one) => one.id);
      const sizes = new Map((await all(reader, selectSizes(nextIds))).map((size) => [size.id, size]));
      const sized = nextIds.slice(0, limit).flatMap((one) => sizes.get(one) ?? []);
      const fit = fitting(LIST_BYTES_MAX, sized).map((one) => one.id);
      const shown = next.slice(0, next.findLastIndex((one) => one.id === fit.at(-1)) + 1);
      const isCut = next.length > shown.length;
      return {
        actions: await findActions(reads, accountId, fit.toSorted()),
        after: isCut ? cursorText(behind(place, shown)) : null,
      };
    },

    async heldAmong(accountId, among) {
      const found = await all(reader, selectSizes(among).orderBy(id));
      const held = found.filter((one) => one.accountId === accountId && one.status === "awaiting_approval");
      const ids = fitting(LIST_BYTES_MAX, held).map((one) => one.id);
      return findActions(reads, accountId, ids);
    },

    async waitingApprovals(accountId, now) {
      const waiting = await heldTotal(accountId, NO_FILTER, COUNTED_MAX);
      // The first id is the oldest.
      const held = qb
        .select({ createdAt })
        .from(actions)
        .where(and(isHeld(accountId), isByStatus));
      const oldestAt = (waiting === 0 ? null : await get(reader, held.orderBy(id).limit(1)))?.createdAt ?? null;
      const over = async (ms: number) => {
        const before = new Date(now.getTime() - ms);
        if (oldestAt === null || oldestAt >= before) return 0;
        return heldTotal(accountId, { ...NO_FILTER, before }, COUNTED_MAX);
      };
      const [overAnHour, overADay] = [await over(HOUR_MS), await over(DAY_MS)];
      return { count: waiting, isCut: waiting === COUNTED_MAX, oldestAt, overAnHour, overADay };
    },

    // Two index look-ups for each key: the key, and its oldest action.
    async requesters(accountId) {
      const oldest = heldIds(accountId, isOfKey(sql`found.value`)).limit(1);
      const head = sql`found.value as "keyId", ${oldest} as id`;
      const ofKeys = eachValue<Pick<Held, "keyId" | "id">>(keyId, isHeld(accountId), head, HELD_KEYS_MAX);
      const heads = (await all(reader, ofKeys)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const first = heads.slice(0, HELD_REQUESTERS_SHOWN_MAX);
      const [firstKeys, firstIds] = [first.map((one) => one.keyId), first.map((one) => one.id)];
      const held = heldIds(accountId, isOfKey(sql`j.value`))
        .limit(COUNTED_MAX)
        .as("held");
      const counted = sql<{ readonly keyId: string; readonly count: number }>`select j.value as "keyId",
        ${qb.$count(held)} as count from ${itemsOf(firstKeys)}`;
      const [counts, creators] = await Promise.all([
        all(reader, counted),
        all(reader, qb.select({ id, createdBy }).from(actions).where(isOneOf(id, firstIds))),
      ]);
      const countOfKey = new Map(counts.map((row) => [row.keyId, row.count]));
      const makers = new Map(creators.map((row) => [row.id, row.createdBy]));
      return first.flatMap((one) => {
        const creator = makers.get(one.id);
        return creator === undefined
          ? []
          : [{ keyId: one.keyId, createdBy: creator, count: countOfKey.get(one.keyId) ?? 0 }];
      });
    },

    heldHosts(accountId) {
      const held = heldIds(accountId, sql`${host} = found.value`)
        .limit(COUNTED_MAX)
        .as("held");
      const selected = sql`found.value as host, ${qb.$count(held)} as count`;
      return all(reader, eachValue<WaitingHost>(host, isHeld(accountId), selected, HELD_HOSTS_SHOWN_MAX + 1));
    },
  } satisfies Partial<ActionStore>;
}
