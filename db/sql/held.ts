import { and, eq, gt, lt, ne, type Placeholder, sql } from "drizzle-orm";
import { firstActionId } from "../../src/core/ids.ts";
import {
  COUNTED_MAX,
  DAY_MS,
  HELD_HOSTS_SHOWN_MAX,
  HELD_KEYS_MAX,
  HELD_PER_KEY_MAX,
  HELD_REQUESTERS_SHOWN_MAX,
  HELD_TURN_KEYS_MAX,
  HOUR_MS,
  LIST_BYTES_MAX,
} from "../../src/core/limits.ts";
import type { ActionStore, HeldFilter, WaitingHost } from "../../src/core/store.ts";
import type { Tables } from "../commands/command.ts";
import type { StoreContext } from "./context.ts";
import { AFTER_ALL_IDS, bytesOfAction, eachValue, hasValues } from "./dialect.ts";
import { idsWithin } from "./find.ts";
import { actionsOf } from "./list.ts";
import { read } from "./read.ts";

/** The actions that await approval. */

const isHeld = (actions: Tables["actions"], accountId: Placeholder) =>
  hasValues(actions, { accountId, status: "awaiting_approval" });

/** Needless terms, which make SQLite use the partial index by status. */
const isByStatus = ({ status }: Tables["actions"]) => and(ne(status, "completed"), ne(status, "active"));

/** The held actions of a key, of all hosts or of one, each by an index that has them in the order of their ids. */
const heldOf = (at: "everywhere" | "at host") => ({
  keys: read({ accountId: "text", host: "text?", limit: "number" }, ({ tables: { actions } }, arg) => {
    const isHost = at === "at host" ? eq(actions.host, arg.host) : undefined;
    return sql<{ readonly keyId: string }>`${eachValue(actions.keyId, and(isHeld(actions, arg.accountId), isHost))}
      select value as "keyId" from found where value is not null limit ${arg.limit}`;
  }),
  ids: read(
    { accountId: "text", keyId: "text", host: "text?", after: "text", before: "text", limit: "number" },
    ({ db, tables: { actions } }, arg) => {
      const { id, keyId, host } = actions;
      const isHost = at === "at host" ? eq(host, arg.host) : undefined;
      const isOfKey = and(isHeld(actions, arg.accountId), isHost, eq(keyId, arg.keyId));
      const isOfPage = and(isOfKey, lt(id, arg.before), gt(id, arg.after));
      return db.select({ id }).from(actions).where(isOfPage).orderBy(id).limit(arg.limit);
    },
  ),
});

const HELD = { everywhere: heldOf("everywhere"), "at host": heldOf("at host") };

const HELD_AMONG = read({ accountId: "text", ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db
    .select({ id: actions.id, bytes: bytesOfAction(actions).as("bytes") })
    .from(actions)
    .where(and(isHeld(actions, arg.accountId), isOneOf(actions.id, arg.ids)))
    .orderBy(actions.id),
);

const BYTES_OF = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db
    .select({ id: actions.id, bytes: bytesOfAction(actions).as("bytes") })
    .from(actions)
    .where(isOneOf(actions.id, arg.ids)),
);

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

/** The id that those before a time are below: ids begin with their time. */
function idBefore({ before }: Pick<HeldFilter, "before">): string {
  return before === null ? AFTER_ALL_IDS : firstActionId(before);
}

type Conditions = "none" | "key" | "host" | "host and key";

/** The index of each: left alone, SQLite takes one of all actions for the sake of the id. */
const INDEX_OF = {
  none: "actions_by_status",
  key: "actions_held_by_key",
  host: "actions_held_by_host",
  "host and key": "actions_held_by_host",
} as const satisfies Record<Conditions, string>;

/** Each reads entries of an index alone. */
const countBy = (variant: Conditions) =>
  read(
    { accountId: "text", keyId: "text?", host: "text?", before: "text", limit: "number" },
    ({ tables: { actions }, indexedBy }, arg) => {
      const { id, keyId, host } = actions;
      const isHost = variant.startsWith("host") ? eq(host, arg.host) : undefined;
      const isKey = variant.endsWith("key") ? eq(keyId, arg.keyId) : undefined;
      const isIndexed = variant === "none" ? isByStatus(actions) : undefined;
      const condition = and(isHeld(actions, arg.accountId), isIndexed, isHost, isKey, lt(id, arg.before));
      return sql<{ readonly count: number }>`select count(*) as count from (
        select ${id} from ${indexedBy(actions, INDEX_OF[variant])} where ${condition} limit ${arg.limit}) held`;
    },
  );

const COUNT_BY = {
  none: countBy("none"),
  key: countBy("key"),
  host: countBy("host"),
  "host and key": countBy("host and key"),
};

export const NO_FILTER: HeldFilter = { keyId: null, host: null, before: null };

/** Ids begin with their time, so the first one is the oldest. */
const OLDEST = read({ accountId: "text" }, ({ db, tables: { actions } }, arg) =>
  db
    .select({ createdAt: actions.createdAt })
    .from(actions)
    .where(and(isHeld(actions, arg.accountId), isByStatus(actions)))
    .orderBy(actions.id)
    .limit(1),
);

/** The keys with held actions, and the oldest of each: two looks into the index for each key. */
const FIRST_BY_KEY = read({ accountId: "text", limit: "number" }, ({ db, tables: { actions } }, arg) => {
  const { keyId, id } = actions;
  const held = isHeld(actions, arg.accountId);
  const ofKey = db
    .select({ id })
    .from(actions)
    .where(and(held, sql`${keyId} = found.value`));
  return sql<{ readonly keyId: string; readonly id: string | null }>`${eachValue(keyId, held)}
    select value as "keyId", ${ofKey.orderBy(id).limit(1)} as id from found where value is not null limit ${arg.limit}`;
});

const COUNT_OF_KEYS = read(
  { accountId: "text", keyIds: "list", limit: "number" },
  ({ db, tables: { actions }, itemsOf }, arg) => {
    const { keyId, id } = actions;
    const isOfKey = and(isHeld(actions, arg.accountId), sql`${keyId} = j.value`);
    const held = db.select({ id }).from(actions).where(isOfKey).limit(arg.limit).as("held");
    return sql<{ readonly keyId: string; readonly count: number }>`select j.value as "keyId",
      ${db.$count(held)} as count from ${itemsOf(arg.keyIds)}`;
  },
);

const CREATORS_OF = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db.select({ id: actions.id, createdBy: actions.createdBy }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** By the names of the hosts. */
const HELD_HOSTS = read(
  { accountId: "text", limit: "number", counted: "number" },
  ({ db, tables: { actions } }, arg) => {
    const { host, id } = actions;
    const held = isHeld(actions, arg.accountId);
    const atHost = db
      .select({ id })
      .from(actions)
      .where(and(held, sql`${host} = found.value`));
    return sql<WaitingHost>`${eachValue(host, held)} select value as host,
      ${db.$count(atHost.limit(arg.counted).as("held"))} as count from found where value is not null limit ${arg.limit}`;
  },
);

type HeldReads = ("held" | "heldTotal" | "heldHosts" | "heldAmong") | ("requesters" | "heldCount" | "waitingApprovals");

/** See `ActionStore`. */
export function createHeldReads(db: Pick<StoreContext, "sql" | "seal">): Pick<ActionStore, HeldReads> {
  const { sql: reader } = db;
  const heldTotal: ActionStore["heldTotal"] = async (accountId, filter, limit) => {
    const { keyId, host } = filter;
    const ofAccount = keyId === null ? "none" : "key";
    const atHost = keyId === null ? "host" : "host and key";
    const variant = host === null ? ofAccount : atHost;
    const counted = await COUNT_BY[variant].get(reader, { accountId, keyId, host, before: idBefore(filter), limit });
    return counted?.count ?? 0;
  };
  return {
    heldTotal,
    heldCount: (accountId, keyId) => heldTotal(accountId, { ...NO_FILTER, keyId }, HELD_PER_KEY_MAX),

    // With several keys a page takes the oldest of each in turn, so that none buries the others.
    async held(accountId, after, limit, filter = NO_FILTER) {
      const { keyId: wanted, host } = filter;
      const { ids: heldIds, keys } = HELD[host === null ? "everywhere" : "at host"];
      const holding = wanted === null ? await keys.all(reader, { accountId, host, limit: HELD_KEYS_MAX }) : [];
      const keyIds = wanted === null ? holding.map(({ keyId }) => keyId) : [wanted];
      const place = after === null ? { isInTurns: keyIds.length > 1, id: "", later: NOWHERE } : placeFrom(after);
      const values = { accountId, host, before: idBefore(filter), limit: limit + 1 };
      const ofKeys = keyIds.map(async (keyId): Promise<readonly Held[]> => {
        const rows = await heldIds.all(reader, { ...values, keyId, after: placeOf(place, keyId) });
        return rows.map(({ id }, turn) => ({ id, keyId, turn: place.isInTurns ? turn : 0 }));
      });
      const next = (await Promise.all(ofKeys))
        .flat()
        .toSorted((a, b) => a.turn - b.turn || (a.id < b.id ? -1 : 1))
        .slice(0, limit + 1);
      if (next.length === 0) return { actions: [], after: null };
      const sizes = await BYTES_OF.all(reader, { ids: next.map(({ id }) => id) });
      const byId = new Map(sizes.map((size) => [size.id, size]));
      const ids = idsWithin(LIST_BYTES_MAX, next.flatMap(({ id }) => byId.get(id) ?? []).slice(0, limit));
      const shown = next.slice(0, next.findLastIndex(({ id }) => id === ids.at(-1)) + 1);
      const isCut = next.length > shown.length;
      return { actions: await actionsOf(db, ids.toSorted()), after: isCut ? textOf(behind(place, shown)) : null };
    },

    async heldAmong(accountId, ids) {
      return actionsOf(db, idsWithin(LIST_BYTES_MAX, await HELD_AMONG.all(reader, { accountId, ids })));
    },

    async waitingApprovals(accountId, now) {
      const count = await heldTotal(accountId, NO_FILTER, COUNTED_MAX);
      const oldest = count === 0 ? null : await OLDEST.get(reader, { accountId });
      const oldestAt = oldest?.createdAt ?? null;
      const over = async (ms: number) => {
        const before = new Date(now.getTime() - ms);
        if (oldestAt === null || oldestAt >= before) return 0;
        return heldTotal(accountId, { ...NO_FILTER, before }, COUNTED_MAX);
      };
      const [overAnHour, overADay] = [await over(HOUR_MS), await over(DAY_MS)];
      return { count, isCut: count === COUNTED_MAX, oldestAt, overAnHour, overADay };
    },

    async requesters(accountId) {
      const heads = await FIRST_BY_KEY.all(reader, { accountId, limit: HELD_KEYS_MAX });
      const first = heads
        .flatMap(({ keyId, id }) => (id === null ? [] : [{ keyId, id }]))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, HELD_REQUESTERS_SHOWN_MAX);
      const keyIds = first.map(({ keyId }) => keyId);
      const [counts, creators] = await Promise.all([
        COUNT_OF_KEYS.all(reader, { accountId, keyIds, limit: COUNTED_MAX }),
        CREATORS_OF.all(reader, { ids: first.map(({ id }) => id) }),
      ]);
      const countOfKey = new Map(counts.map(({ keyId, count }) => [keyId, count]));
      const creatorOf = new Map(creators.map(({ id, createdBy }) => [id, createdBy]));
      return first.flatMap(({ keyId, id }) => {
        const createdBy = creatorOf.get(id);
        return createdBy === undefined ? [] : [{ keyId, createdBy, count: countOfKey.get(keyId) ?? 0 }];
      });
    },

    heldHosts: (accountId) =>
      HELD_HOSTS.all(reader, { accountId, limit: HELD_HOSTS_SHOWN_MAX + 1, counted: COUNTED_MAX }),
  };
}
