import { and, eq, gt, isNull, or, sql } from "drizzle-orm";
import { EVENTS } from "../commands/actions.ts";
import type { Claimed, ClaimOfQueue } from "../commands/claims.ts";
import { findPaused, isPaused, pausesOf, stopsOf } from "../commands/in-force.ts";
import { type Lists, updateList } from "../commands/lists.ts";
import { read } from "../sql/read.ts";
import type { SqlValue } from "../sql/sql.ts";

const LANE = { accountId: "text", host: "text", keyId: "text", most: "number" } as const;

/** The earliest pending actions of a lane, due or not. */
const ACTIONS = read({ ...LANE, now: "number" }, ({ db, tables: { actions } }, { accountId, host, keyId, now, most }) =>
  db
    .select({
      id: actions.id,
      // As they are: none of them may be what the service writes.
      fence: sql<SqlValue>`${actions.revision}`.as("fence"),
      attempts: sql<SqlValue>`${actions.attempts}`.as("made"),
      dueAt: sql<SqlValue>`${actions.dueAt}`.as("due"),
      startedAt: sql<SqlValue>`${actions.startedAt}`.as("started"),
      run: sql<SqlValue>`${actions.run}`.as("number"),
      bytes: sql<number>`ifnull(octet_length(${actions.body}), 0) + ifnull(octet_length(${actions.sealedHeaders}), 0)
          + ifnull(octet_length(${actions.extras}), 0)`.as("bytes"),
    })
    .from(actions)
    .where(
      and(
        eq(actions.status, "pending"),
        eq(actions.accountId, accountId),
        eq(actions.host, host),
        eq(actions.keyId, keyId),
        or(isNull(actions.expiresAt), gt(actions.expiresAt, now)),
      ),
    )
    .orderBy(actions.dueAt, sql`rowid`)
    .limit(most),
);

/** The same of a kind of notification. */
const NOTIFICATIONS = read(
  { ...LANE, kind: "text" },
  ({ db, tables: { outbox } }, { accountId, host, keyId, kind, most }) =>
    db
      .select({
        id: outbox.id,
        fence: sql<SqlValue>`${outbox.attempts}`.as("fence"),
        dueAt: sql<SqlValue>`${outbox.dueAt}`.as("due"),
        bytes: sql<number>`ifnull(octet_length(${outbox.payload}), 0)`.as("bytes"),
      })
      .from(outbox)
      .where(
        and(
          eq(outbox.status, "pending"),
          eq(outbox.kind, kind),
          eq(outbox.accountId, accountId),
          eq(outbox.host, host),
          eq(outbox.keyId, keyId),
        ),
      )
      .orderBy(outbox.dueAt, sql`rowid`)
      .limit(most),
);

/** A row that was altered so that no claim of it can be written stays, and holds up no other. */
const MAY_REFUSE = "or ignore";

const START = updateList(
  "actions",
  ["status", "revision", "attempts", "dueAt", "leaseUntil", "claimedBy", "startedAt"],
  ["id", "revision"],
  MAY_REFUSE,
);

const SEND = updateList(
  "outbox",
  ["status", "attempts", "dueAt", "leaseUntil", "claimedBy"],
  ["id", "attempts"],
  MAY_REFUSE,
);

/** Claims one after the other: the next sees what the one before has taken. */
export async function claimAll(lists: Lists, claims: readonly ClaimOfQueue[]): Promise<readonly Claimed[]> {
  const claimed: Claimed[] = [];
  for (const one of claims) {
    claimed.push(await (one.queue === "action" ? claimActions(lists, one) : claimNotifications(lists, one)));
  }
  return claimed;
}

async function claimActions(lists: Lists, claim: ClaimOfQueue): Promise<Claimed> {
  const { now, leaseUntil, by } = claim;
  const paused = await findPaused(lists, claim.lanes.flatMap(pausesOf));
  const lanes = claim.lanes.filter((lane) => !isPaused(paused, pausesOf(lane)));
  const found = await lists.find(
    ACTIONS,
    lanes.map((lane) => ({ ...lane, now, most: lane.limit + 1 })),
  );
  const { taken, next } = take(claim, lanes, found);
  const isWon = await lists.update(
    START,
    taken.map(({ row: { id, fence, attempts, startedAt } }) => {
      return ["active", after(fence), after(attempts), null, leaseUntil, by, startedAt ?? now, id, fence];
    }),
  );
  const won = taken.filter((_, turn) => isWon[turn]);
  await lists.insert(
    EVENTS,
    won.map(({ lane, row: { id, run, fence } }) => {
      return [id, lane.accountId, now, typeof run === "number" ? run : 1, after(fence), "started", "", "active", "{}"];
    }),
  );
  return { rows: won.map(({ row: { id, fence } }) => ({ id, fence: after(fence) })), next };
}

/** Of pauses only the stop of an account applies. */
async function claimNotifications(lists: Lists, claim: ClaimOfQueue): Promise<Claimed> {
  const { queue, leaseUntil, by } = claim;
  const paused = await findPaused(lists, claim.lanes.flatMap(stopsOf));
  const lanes = claim.lanes.filter((lane) => !isPaused(paused, stopsOf(lane)));
  const found = await lists.find(
    NOTIFICATIONS,
    lanes.map((lane) => ({ ...lane, kind: queue, most: lane.limit + 1 })),
  );
  const { taken, next } = take(claim, lanes, found);
  const isWon = await lists.update(
    SEND,
    taken.map(({ row: { id, fence } }) => ["active", after(fence), null, leaseUntil, by, id, fence]),
  );
  const won = taken.filter((_, turn) => isWon[turn]);
  return { rows: won.map(({ row: { id, fence } }) => ({ id, fence: after(fence) })), next };
}

interface Found {
  readonly dueAt: SqlValue;
  readonly bytes: number;
}

/** Which of the rows of each lane a claim takes, in the order of their turns, and the first of each that it leaves. */
function take<Row extends Found>(
  { bytesMax, rowBytesMax, now }: ClaimOfQueue,
  lanes: ClaimOfQueue["lanes"],
  found: readonly (readonly Row[])[],
) {
  const inLanes = lanes.map((lane, at) => {
    const rows = found[at] ?? [];
    const left = rows.findIndex(({ dueAt, bytes }) => dueTime(dueAt) > now || bytes > rowBytesMax);
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
    return row === undefined ? [] : [{ accountId, host, keyId, dueAt: dueTime(row.dueAt), bytes: row.bytes }];
  });
  return { taken, next };
}

/** A time that was altered is due. */
function dueTime(dueAt: SqlValue): number {
  return typeof dueAt === "number" ? dueAt : 0;
}

/** The number after one of a row; of one that was altered to no whole number, the first. */
function after(count: SqlValue): number {
  return typeof count === "number" && Number.isSafeInteger(count) ? count + 1 : 1;
}
