/**
 * Claims: due rows of a queue become active under a lease. This is the claim of SQLite; `postgres/claim.ts` has PostgreSQL's. Behind it is
 * what ends or moves rows that can't be claimed. `sql/queue.ts` calls these, and reads what was claimed.
 */
import { and, eq, exists, gt, inArray, isNull, or, sql, type SQLWrapper } from "drizzle-orm";
import { CLOCK_TOLERANCE_MS } from "../../src/core/limits.ts";
import { pausingSubjects, stoppingSubjects } from "../../src/core/pause.ts";
import type { SetBack } from "../../src/core/store.ts";
import { pauseLocks } from "../sql/locks.ts";
import { all, columnBytes, hasValues, prepare, qb } from "../sql/read.ts";
import { actions, outbox, timeline } from "../tables.ts";
import { EVENTS } from "./actions.ts";
import {
  type ClaimResult,
  command,
  listCommand,
  type Lists,
  type QueueClaim,
  type QueueName,
  updateEach,
  updateList,
  type Values,
} from "./command.ts";
import { findPaused, isHeldBack } from "./pauses.ts";

/** Makes due rows active under a lease: the earliest of each lane in turn, as many as fit into `bytesMax`, but at least one. */
export const claim = listCommand(
  (tx, claims: readonly QueueClaim[]): Promise<readonly ClaimResult[]> =>
    tx.claim === null ? claimEach(tx.lists, claims) : tx.claim(claims),
  {
    locks: ({ lanes }) => pauseLocks(new Set(lanes.map(({ accountId }) => accountId))),
    size: ({ lanes }) => ({ rows: lanes.length, bytes: 0 }),
    turn: "claim",
  },
);

const LANE = { accountId: "text", host: "text", keyId: "text", most: "number" } as const;

/** A time in milliseconds; 0 if it was altered to no number. */
const timeIn = (column: SQLWrapper, name: string) => sql<number | null>`cast(${column} as integer)`.as(name);

const bytesIn = (columns: readonly SQLWrapper[]) =>
  sql<number>`${sql.join(columns.map(columnBytes), sql` + `)}`.as("bytes");

/** The earliest pending actions of a lane, due or not. */
const ACTIONS = prepare({ ...LANE, now: "number" }, ({ now, most, ...lane }) => {
  const { id, revision, attempts, run, startedAt, dueAt, expiresAt, body, sealedHeaders, extras } = actions;
  const times = { startedAt: timeIn(startedAt, "started"), dueAt: timeIn(dueAt, "due") };
  return qb
    .select({ id, fence: revision, attempts, run, ...times, bytes: bytesIn([body, sealedHeaders, extras]) })
    .from(actions)
    .where(and(hasValues(actions, { status: "pending", ...lane }), or(isNull(expiresAt), gt(expiresAt, now))))
    .orderBy(dueAt, sql`rowid`)
    .limit(most);
});

/** The earliest pending notifications of a kind in a lane, due or not. */
const NOTIFICATIONS = prepare({ ...LANE, kind: "text" }, ({ most, ...lane }) =>
  qb
    .select({
      id: outbox.id,
      fence: outbox.attempts,
      dueAt: timeIn(outbox.dueAt, "due"),
      bytes: bytesIn([outbox.payload]),
    })
    .from(outbox)
    .where(hasValues(outbox, { status: "pending", ...lane }))
    .orderBy(outbox.dueAt, sql`rowid`)
    .limit(most),
);

/** An altered row whose claim would violate a constraint stays as it is, so that it doesn't block others. */
const MAY_REFUSE = "or ignore";

const START = updateList(
  actions,
  ["status", "revision", "dueAt", "leaseUntil", "claimedBy", "attempts", "startedAt"],
  ["id", "revision"],
  MAY_REFUSE,
);

const SEND = updateList(
  outbox,
  ["status", "attempts", "dueAt", "leaseUntil", "claimedBy"],
  ["id", "attempts"],
  MAY_REFUSE,
);

/** Runs claims one after the other, so that each sees what the earlier ones have taken. */
async function claimEach(lists: Lists, claims: readonly QueueClaim[]): Promise<readonly ClaimResult[]> {
  const claimed: ClaimResult[] = [];
  for (const one of claims) claimed.push(await claimFrom(lists, one));
  return claimed;
}

async function claimFrom(lists: Lists, asking: QueueClaim): Promise<ClaimResult> {
  const { queue, now, leaseUntil, by } = asking;
  const holds = queue === "action" ? pausingSubjects : stoppingSubjects;
  const paused = await findPaused(lists, asking.lanes.flatMap(holds));
  const lanes = asking.lanes.filter((lane) => !isHeldBack(paused, holds(lane)));
  const asked = lanes.map((lane) => ({ ...lane, now, kind: queue, most: lane.limit + 1 }));
  if (queue !== "action") {
    const { taken, next } = take(asking, lanes, await lists.find(NOTIFICATIONS, asked));
    const sent = await updateEach(lists, SEND, taken, ({ row: { id, fence } }) => {
      return ["active", fence + 1, null, leaseUntil, by, id, fence];
    });
    return { rows: sent.map(toClaimed), next };
  }
  const { taken, next } = take(asking, lanes, await lists.find(ACTIONS, asked));
  const started = await updateEach(lists, START, taken, ({ row: { id, fence, attempts, startedAt } }) => {
    return ["active", fence + 1, null, leaseUntil, by, attempts + 1, startedAt ?? now, id, fence];
  });
  await lists.insert(
    EVENTS,
    started.map(({ lane: { accountId }, row: { id, run, fence } }) => {
      return [id, accountId, now, run, fence + 1, "started", "", "active", "{}"];
    }),
  );
  return { rows: started.map(toClaimed), next };
}

interface Found {
  readonly id: string;
  readonly fence: number;
  readonly dueAt: number | null;
  readonly bytes: number;
}

function toClaimed({ row: { id, fence } }: { readonly row: Found }): ClaimResult["rows"][number] {
  return { id, fence: fence + 1 };
}

/** Picks the rows of a claim, in the order of their turns, and finds the first row that each lane keeps. */
function take<Row extends Found>(
  { bytesMax, rowBytesMax, now }: QueueClaim,
  lanes: QueueClaim["lanes"],
  found: readonly (readonly Row[])[],
) {
  const inLanes = lanes.map((lane, at) => {
    const rows = found[at] ?? [];
    const left = rows.findIndex(({ dueAt, bytes }) => (dueAt ?? 0) > now || bytes > rowBytesMax);
    return { lane, rows, mayTake: Math.min(lane.limit, left === -1 ? rows.length : left) };
  });
  const turns = Math.max(0, ...inLanes.map(({ mayTake }) => mayTake));
  const inTurn = Array.from({ length: turns }, (_, turn) =>
    inLanes.flatMap(({ lane, rows, mayTake }) => {
      const row = turn < mayTake ? rows[turn] : undefined;
      return row === undefined ? [] : [{ lane, row }];
    }),
  ).flat();
  let total = 0;
  const tooMany = inTurn.findIndex(({ row }, turn) => (total += row.bytes) > bytesMax && turn > 0);
  const taken = tooMany === -1 ? inTurn : inTurn.slice(0, tooMany);
  const isTaken = new Set(taken.map(({ row }) => row));
  const next = inLanes.flatMap(({ lane: { accountId, host, keyId }, rows }) => {
    const row = rows.find((one) => !isTaken.has(one));
    return row === undefined ? [] : [{ accountId, host, keyId, dueAt: row.dueAt ?? 0, bytes: row.bytes }];
  });
  return { taken, next };
}

/**
 * Ends actions that are older than their timeline, such as after only a part of a backup was restored. They may have been
 * decided differently since, and no claim of them can be written.
 */
export const endOutdated = command(async ({ db }, ids: readonly string[], at: Date) => {
  const isLater = and(eq(timeline.actionId, actions.id), gt(timeline.revision, actions.revision));
  const later = qb.select({ seq: timeline.seq }).from(timeline).where(isLater);
  await db
    .update(actions)
    .set({ status: "failed", dueAt: null, finishedAt: at, lastError: OLDER_THAN_TIMELINE, errorSource: "dispatch" })
    .where(and(inArray(actions.id, [...ids]), eq(actions.status, "pending"), exists(later)));
});

const OLDER_THAN_TIMELINE = "The stored action is older than its timeline, so it is not sent.";

const UNREADABLE = "The stored row can't be read, so it was altered. Nothing of it is sent any more.";

/** Ends active rows that can't be read. Returns the ids of those that it ended. */
export const endUnreadable = command(async ({ db }, queue: QueueName, ids: readonly string[], at: Date) => {
  const over = { dueAt: null, leaseUntil: null, lastError: UNREADABLE };
  const ended =
    queue === "action"
      ? await db
          .update(actions)
          .set({ ...over, status: "failed", finishedAt: at, errorSource: "dispatch" })
          .where(and(inArray(actions.id, [...ids]), eq(actions.status, "active")))
          .returning({ id: actions.id })
      : await db
          .update(outbox)
          .set({ ...over, status: "given_up" })
          .where(and(inArray(outbox.id, [...ids]), eq(outbox.status, "active")))
          .returning({ id: outbox.id });
  return ended.map(({ id }) => id);
});

const MOVED = [
  ["dueAt", "scheduledAt"],
  ["id", "status", "scheduledAt"],
] as const;
const MOVE_ACTION = updateList(actions, ...MOVED);
const MOVE_NOTIFICATION = updateList(outbox, ...MOVED);

/**
 * Corrects due times after the wall clock was set back. Pending rows that were scheduled in what is now the future become due
 * earlier by as much, but not before now, and in any case within their original delay from now. Returns how many.
 */
export const reschedule = command(async (tx, queue: QueueName, { now, byMs }: SetBack, limit: number) => {
  const table = queue === "action" ? actions : outbox;
  const { id, status, dueAt, scheduledAt } = table;
  // If it is unknown by how much, small corrections of the clock are tolerated.
  const latest = new Date(now.getTime() + (byMs === 0 ? CLOCK_TOLERANCE_MS : 0));
  const isOfKind = queue === "action" ? undefined : eq(outbox.kind, queue);
  // A literal, since SQLite uses the partial index only if it sees the value.
  const isLate = and(sql`${status} = 'pending'`, isOfKind, gt(scheduledAt, latest));
  const found = await all(tx, qb.select({ id, dueAt, scheduledAt }).from(table).where(isLate).limit(limit));
  const at = now.getTime();
  const rows = found.flatMap((row): readonly Values[] => {
    const [due, scheduled] = [(row.dueAt ?? now).getTime(), row.scheduledAt.getTime()];
    const earlier = Math.max(at, Math.min(due - byMs, at + due - scheduled));
    // NaN if the row was altered, which then stays as it is.
    return Number.isNaN(earlier) ? [] : [[earlier, at, row.id, "pending", scheduled]];
  });
  const moved = await tx.lists.update(queue === "action" ? MOVE_ACTION : MOVE_NOTIFICATION, rows);
  return moved.filter(Boolean).length;
});
