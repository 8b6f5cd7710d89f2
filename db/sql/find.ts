import type { FilterValues } from "../../src/core/search.ts";
import { and, asc, desc, eq, exists, getTableColumns, gt, inArray, like, lt, lte, sql } from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action } from "../../src/core/action.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createTurnShare } from "../../src/runtime/fair-share.ts";
import {
  ATTEMPTS_KEPT,
  EVENT_PAGE_BYTES_MAX,
  EVENT_PAGE_MAX,
  EVENT_SCAN_ROWS_MAX,
  SEARCH_STEP_ROWS,
  TIMELINE_ROWS_MAX,
} from "../../src/core/limits.ts";
import { type ActionChange, type ActionStore, hostOfKey } from "../../src/core/store.ts";
import { HOLDER, keyWindowStart } from "../commands/actions.ts";
import { LATE_SUCCESS, actions, attempts, timeline } from "../tables.ts";
import { all, bytesOfAction, eachValue, hasValues, prepare, qb } from "./read.ts";
import type { Reader, Row } from "./dialect.ts";
import { ACTION_COLUMNS, isJson, readable, shownActionOf, timelineEntryOf, type ActionAccess } from "./rows.ts";
import { actionAsOf, type TimelineEntry } from "../../src/core/timeline.ts";
import { findStretchEnd, readPosition } from "../commands/activity.ts";
import { NEWEST_DELETED, readFact } from "../commands/facts.ts";

const FIND_BY_ID = prepare({ id: "text" }, (arg) =>
  qb.select(ACTION_COLUMNS).from(actions).where(eq(actions.id, arg.id)),
);

const FIND_ALL = prepare({ ids: "list" }, (arg, { isOneOf }) =>
  qb.select(ACTION_COLUMNS).from(actions).where(isOneOf(actions.id, arg.ids)),
);

const TIMELINE = prepare({ actionId: "text", accountId: "text" }, (arg) =>
  qb.select().from(timeline).where(hasValues(timeline, arg)).orderBy(desc(timeline.seq)).limit(TIMELINE_ROWS_MAX),
);

export type ActionReads = Omit<ActionAccess, "writer" | "written">;

/** The action of the first row, to show it. Null: there is no row, or it can't be read. */
function shown(rows: readonly Row[], { seal, onUnreadable }: ActionReads): Action | null {
  return (
    readable(
      rows.slice(0, 1),
      (row) => shownActionOf(row, seal),
      (row) => onUnreadable("action", row),
    )[0] ?? null
  );
}

/** The action that has a key. Null: it was deleted meanwhile. */
export async function findHolder(db: ActionReads, id: string): Promise<Action | "unreadable" | null> {
  const rows = await FIND_BY_ID.raw(db.reader, { id });
  return rows.length === 0 ? null : (shown(rows, db) ?? "unreadable");
}

/** The rows of these actions, in this order. */
export async function findRows(reader: Reader, ids: readonly string[]): Promise<readonly Row[]> {
  if (ids.length === 0) return [];
  const rows = await FIND_ALL.raw(reader, { ids });
  const byId = new Map(rows.map((row) => [row["id"], row]));
  return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
}

/** SQLite reads on this thread, so that many searches and lists would block the event loop if each took its own turn. */
export const shareTurn = createTurnShare(systemClock);

/** These actions of an account in this order, to show them, without those that can't be read. */
export async function findActions(
  { reader, seal }: ActionReads,
  accountId: string,
  ids: readonly string[],
): Promise<readonly Action[]> {
  const rows = await shareTurn(accountId, () => findRows(reader, ids));
  return shareTurn(accountId, () => readable(rows, (row) => shownActionOf(row, seal)));
}

/** The first rows whose `bytes` fit together, but at least one. */
export function fitting<Sized extends { readonly bytes?: unknown }>(bytesMax: number, rows: readonly Sized[]) {
  let total = 0;
  const count = rows.findIndex(({ bytes }) => (total += Number(bytes)) > bytesMax);
  return rows.slice(0, count === -1 ? rows.length : Math.max(1, count));
}

/** Finds ids in steps, with a turn of the event loop in between, since SQLite reads on this thread. */
async function inSteps(
  ids: readonly string[],
  find: (ids: readonly string[]) => Promise<readonly { readonly id: string }[]>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let at = 0; at < ids.length; at += SEARCH_STEP_ROWS) {
    if (at > 0) await nextTurn();
    for (const { id } of await find(ids.slice(at, at + SEARCH_STEP_ROWS))) found.add(id);
  }
  return found;
}

/** The types of timeline rows that stand for a change of an action: each change has exactly one such row. */
const CHANGES = [
  "created",
  "started",
  "not_started",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "attempt",
  "late_result",
];

const CHANGES_IN = prepare({ after: "number", until: "number", accountId: "text" }, (arg) => {
  const { seq, actionId, at, run, revision, type, status, detail } = timeline;
  const isOfStretch = and(gt(seq, arg.after), lte(seq, arg.until), eq(timeline.accountId, arg.accountId));
  return qb
    .select({ seq, actionId, at, run, revision, type, status, detail, bytes: bytesOfAction().as("bytes") })
    .from(timeline)
    .crossJoin(actions)
    .where(and(isOfStretch, inArray(type, CHANGES), eq(actions.id, actionId)))
    .orderBy(asc(seq))
    .limit(EVENT_PAGE_MAX);
});

const POSITION = prepare({ position: "number" }, (arg) =>
  qb.select({ seq: timeline.seq }).from(timeline).where(eq(timeline.seq, arg.position)),
);

async function changesOf(db: ActionReads, accountId: string, rows: readonly Row[]): Promise<readonly ActionChange[]> {
  const ids = new Set(rows.map((row) => String(row["action_id"])));
  const byId = new Map((await findActions(db, accountId, [...ids])).map((action) => [action.id, action]));
  const runs = new Map<string, readonly TimelineEntry[]>();
  const changes: ActionChange[] = [];
  for (const row of rows) {
    const action = byId.get(String(row["action_id"]));
    const [entry] = readable([row], timelineEntryOf);
    // The action was pruned between the two reads, or can't be read.
    if (action === undefined || entry === undefined) continue;
    const isLateResult = entry.event.type === "attempt" && entry.event.late === "result";
    const change = { seq: entry.seq, at: entry.at, ...(isLateResult && { isLateResult }) };
    const isNewest = Number(row["revision"]) === action.revision;
    changes.push({ ...change, action: isNewest ? action : await actionThen(db.reader, action, entry, runs) });
  }
  return changes;
}

const ENTRIES_BEFORE = prepare({ actionId: "text", run: "number", seq: "number" }, (arg) => {
  const { actionId, seq, at, run, type, status, detail } = timeline;
  return qb
    .select({ seq, at, run, type, status, detail })
    .from(timeline)
    .where(and(eq(actionId, arg.actionId), eq(run, arg.run), lt(seq, arg.seq)))
    .orderBy(asc(seq))
    .limit(TIMELINE_ROWS_MAX);
});

/** The action as it was after an entry. `runs` keeps the timelines of the runs on this page. */
async function actionThen(
  reader: Reader,
  action: Action,
  entry: TimelineEntry,
  runs: Map<string, readonly TimelineEntry[]>,
): Promise<Action> {
  const key = `${action.id} ${entry.run}`;
  const isFirst = entry.event.type === "created" || entry.event.type === "retried";
  const readBefore = () => ENTRIES_BEFORE.raw(reader, { actionId: action.id, run: entry.run, seq: entry.seq });
  const before = isFirst ? [] : (runs.get(key) ?? readable(await readBefore(), timelineEntryOf));
  const entries = [...before, entry];
  runs.set(key, entries);
  return actionAsOf(action, entries);
}

export function createFinds(reads: ActionReads) {
  const { reader } = reads;
  const { isOneOf, itemsOf, placeIn, indexedBy } = reader.dialect;
  return {
    // Selects by id alone: with the account, too, PostgreSQL may read all its actions until it has statistics of the table.
    async find(accountId, id) {
      const found = await FIND_BY_ID.raw(reader, { id });
      const own = found.filter((row) => row["account_id"] === accountId);
      return shown(own, reads);
    },
    findById: async (id) => shown(await FIND_BY_ID.raw(reader, { id }), reads),
    holderOf: (accountId, kind, key, now) =>
      HOLDER.get(reader, { accountId, kind, key, windowStart: keyWindowStart(now.getTime()) }),
    async timeline(accountId, id) {
      return readable(await TIMELINE.raw(reader, { actionId: id, accountId }), timelineEntryOf).toReversed();
    },
    // One index look-up for each pair (`j`) of a key and a host.
    async approvedHosts(accountId, asked) {
      const pairs = [...new Set(asked.map(hostOfKey))].map((pair): unknown => JSON.parse(pair));
      const { hostname, keyId, status, approvedAt } = actions;
      const isOfPair = sql`${keyId} = ${placeIn(0)} and ${hostname} = ${placeIn(1)}`;
      const approved = sql<{ readonly pair: string }>`select j.value as pair from ${itemsOf(pairs)} where exists (
        select ${keyId} from ${indexedBy(actions, "actions_approved")} where ${actions.accountId} = ${accountId}
          and ${isOfPair} and ${status} = 'completed' and ${approvedAt} is not null)`;
      return new Set((await all(reader, approved)).map(({ pair }) => pair));
    },
    async responses(accountId, id) {
      const { actionId: _, ...columns } = getTableColumns(attempts);
      const kept = qb
        .select(columns)
        .from(attempts)
        .innerJoin(actions, and(eq(actions.id, attempts.actionId), eq(actions.accountId, accountId)))
        .where(eq(attempts.actionId, id));
      const newest = await all(reader, kept.orderBy(desc(attempts.run), desc(attempts.attempt)).limit(ATTEMPTS_KEPT));
      return newest.filter(({ responseBody }) => isJson(responseBody));
    },
    async filterValues(accountId, limit) {
      const { id, keyId, createdBy } = actions;
      const isOfAccount = eq(actions.accountId, accountId);
      const isOfKey = and(isOfAccount, sql`${keyId} <> ''`);
      // Takes the name from the newest action of each key, since the key itself may be gone.
      const named = qb.select({ createdBy }).from(actions);
      const newest = named.where(and(isOfKey, sql`${keyId} = found.value`)).orderBy(desc(id));
      const creator = sql`found.value as "keyId", ${newest.limit(1)} as "createdBy"`;
      const [hosts, creators] = await Promise.all([
        all(
          reader,
          eachValue<{ readonly host: string }>(actions.hostname, isOfAccount, sql`found.value as host`, limit),
        ),
        all(reader, eachValue<FilterValues["creators"][number]>(keyId, isOfKey, creator, limit)),
      ]);
      return { hosts: hosts.map(({ host }) => host), creators };
    },
    withUnknown(ids) {
      // No text in `detail` can match, since quotes in JSON texts are escaped.
      const isUnknown = and(eq(timeline.type, "attempt"), like(timeline.detail, '%"outcome":"unknown"%'));
      const attempt = qb
        .select({ seq: timeline.seq })
        .from(timeline)
        .where(and(sql`${timeline.actionId} = j.value`, isUnknown));
      return inSteps(ids, (some) =>
        all(reader, sql<{ readonly id: string }>`select j.value as id from ${itemsOf(some)} where ${exists(attempt)}`),
      );
    },
    withLateSuccess: (ids) =>
      inSteps(ids, (some) => {
        const isLate = and(isOneOf(actions.id, some), like(actions.lateResult, LATE_SUCCESS));
        return all(reader, qb.select({ id: actions.id }).from(actions).where(isLate));
      }),
    /**
     * The next changes of an account. Reads the timeline of all accounts, whose positions are in the order of commits. An index
     * by account would save 0.09 us per row, but make all writes 7 % slower with one account and 30 % with a hundred.
     */
    async changes(accountId, after) {
      const newest = await readPosition(reader);
      if (newest <= after) return { changes: [], position: after, isLast: true };
      // Positions have gaps, so count rows to find where the stretch ends.
      const isShort = newest - after <= EVENT_SCAN_ROWS_MAX;
      const last = isShort ? null : await findStretchEnd(reader, after, EVENT_SCAN_ROWS_MAX);
      const until = last === null ? newest : Math.min(newest, last.seq);
      const found = await CHANGES_IN.raw(reader, { after, until, accountId });
      const page = fitting(EVENT_PAGE_BYTES_MAX, found);
      const isCut = page.length < found.length || found.length === EVENT_PAGE_MAX;
      const position = isCut ? Number(page.at(-1)?.["seq"]) : until;
      return { changes: await changesOf(reads, accountId, page), position, isLast: position === newest };
    },
    position: () => readPosition(reader),
    // Position 0 always exists; any other exists as long as its row.
    async knowsPosition(position) {
      if (position < Number((await readFact(reader, NEWEST_DELETED)) ?? 0)) return false;
      return position === 0 || (await POSITION.get(reader, { position })) !== null;
    },
  } satisfies Partial<ActionStore>;
}
