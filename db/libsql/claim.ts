import { and, gt, isNull, or, sql, type SQLWrapper } from "drizzle-orm";
import { EVENTS } from "../commands/actions.ts";
import type { Claimed, ClaimOfQueue } from "../commands/claims.ts";
import { findPaused, isHeldBack, pausesOf, stopsOf } from "../commands/pauses.ts";
import { type Lists, updateList } from "../commands/lists.ts";
import { bytesOf, hasValues } from "../sql/dialect.ts";
import { prepare } from "../sql/read.ts";
import type { SqlValue } from "../sql/sql.ts";

const LANE = { accountId: "text", host: "text", keyId: "text", most: "number" } as const;

/** A value as it is: none may be what the service writes. */
const asStored = (column: SQLWrapper | null, name: string) => sql<SqlValue>`${column ?? sql`null`}`.as(name);

const bytesIn = (columns: readonly SQLWrapper[]) =>
  sql<number>`${sql.join(columns.map(bytesOf), sql` + `)}`.as("bytes");

/** The earliest pending actions of a lane, due or not. */
const ACTIONS = prepare({ ...LANE, now: "number" }, ({ db, tables: { actions } }, { now, most, ...lane }) => {
  const isLive = or(isNull(actions.expiresAt), gt(actions.expiresAt, now));
  return db
    .select({
      id: actions.id,
      fence: asStored(actions.revision, "fence"),
      attempts: asStored(actions.attempts, "made"),
      dueAt: asStored(actions.dueAt, "due"),
      startedAt: asStored(actions.startedAt, "started"),
      run: asStored(actions.run, "number"),
      bytes: bytesIn([actions.body, actions.sealedHeaders, actions.extras]),
    })
    .from(actions)
    .where(and(hasValues(actions, { status: "pending", ...lane }), isLive))
    .orderBy(actions.dueAt, sql`rowid`)
    .limit(most);
});

/** The same of a kind of notification. */
const NOTIFICATIONS = prepare({ ...LANE, kind: "text" }, ({ db, tables: { outbox } }, { most, ...lane }) =>
  db
    .select({
      id: outbox.id,
      fence: asStored(outbox.attempts, "fence"),
      attempts: asStored(null, "made"),
      dueAt: asStored(outbox.dueAt, "due"),
      startedAt: asStored(null, "started"),
      run: asStored(null, "number"),
      bytes: bytesIn([outbox.payload]),
    })
    .from(outbox)
    .where(hasValues(outbox, { status: "pending", ...lane }))
    .orderBy(outbox.dueAt, sql`rowid`)
    .limit(most),
);

/** A row that was altered so that no claim of it can be written stays, and holds up no other. */
const MAY_REFUSE = "or ignore";

const START = updateList(
  "actions",
  ["status", "revision", "dueAt", "leaseUntil", "claimedBy", "attempts", "startedAt"],
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
  for (const one of claims) claimed.push(await claimFrom(lists, one));
  return claimed;
}

async function claimFrom(lists: Lists, claim: ClaimOfQueue): Promise<Claimed> {
  const { queue, now, leaseUntil, by } = claim;
  const isAction = queue === "action";
  // Of pauses only the stop of an account applies to notifications.
  const holds = isAction ? pausesOf : stopsOf;
  const paused = await findPaused(lists, claim.lanes.flatMap(holds));
  const lanes = claim.lanes.filter((lane) => !isHeldBack(paused, holds(lane)));
  const asked = lanes.map((lane) => ({ ...lane, now, kind: queue, most: lane.limit + 1 }));
  const found = await (isAction ? lists.find(ACTIONS, asked) : lists.find(NOTIFICATIONS, asked));
  const { taken, next } = take(claim, lanes, found);
  const isWon = await lists.update(
    isAction ? START : SEND,
    taken.map(({ row: { id, fence, attempts, startedAt } }) => {
      const active = ["active", after(fence), null, leaseUntil, by];
      return [...active, ...(isAction ? [after(attempts), startedAt ?? now] : []), id, fence];
    }),
  );
  const won = taken.filter((_, turn) => isWon[turn]);
  const started = won.map(({ lane: { accountId }, row: { id, run, fence } }) => {
    return [id, accountId, now, typeof run === "number" ? run : 1, after(fence), "started", "", "active", "{}"];
  });
  if (isAction) await lists.insert(EVENTS, started);
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
