import { and, gt, isNull, or, sql, type SQLWrapper } from "drizzle-orm";
import { EVENTS } from "../commands/actions.ts";
import { findPaused, isHeldBack } from "../commands/pauses.ts";
import { pausesOf, stopsOf } from "../../src/core/pause.ts";
import { type Lists, updateEach, updateList } from "../commands/lists.ts";
import { bytesOf, hasValues, prepare, qb } from "../sql/read.ts";
import { actions, outbox } from "./schema.ts";
import type { ClaimResult, QueueClaim } from "../commands/command.ts";

const LANE = { accountId: "text", host: "text", keyId: "text", most: "number" } as const;

/** A time in milliseconds; 0 if it was altered to no number. */
const timeIn = (column: SQLWrapper, name: string) => sql<number | null>`cast(${column} as integer)`.as(name);

const bytesIn = (columns: readonly SQLWrapper[]) =>
  sql<number>`${sql.join(columns.map(bytesOf), sql` + `)}`.as("bytes");

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
export async function claimAll(lists: Lists, claims: readonly QueueClaim[]): Promise<readonly ClaimResult[]> {
  const claimed: ClaimResult[] = [];
  for (const one of claims) claimed.push(await claimFrom(lists, one));
  return claimed;
}

async function claimFrom(lists: Lists, claim: QueueClaim): Promise<ClaimResult> {
  const { queue, now, leaseUntil, by } = claim;
  const holds = queue === "action" ? pausesOf : stopsOf;
  const paused = await findPaused(lists, claim.lanes.flatMap(holds));
  const lanes = claim.lanes.filter((lane) => !isHeldBack(paused, holds(lane)));
  const asked = lanes.map((lane) => ({ ...lane, now, kind: queue, most: lane.limit + 1 }));
  if (queue !== "action") {
    const { taken, next } = take(claim, lanes, await lists.find(NOTIFICATIONS, asked));
    const sent = await updateEach(lists, SEND, taken, ({ row: { id, fence } }) => {
      return ["active", fence + 1, null, leaseUntil, by, id, fence];
    });
    return { rows: sent.map(claimedOf), next };
  }
  const { taken, next } = take(claim, lanes, await lists.find(ACTIONS, asked));
  const started = await updateEach(lists, START, taken, ({ row: { id, fence, attempts, startedAt } }) => {
    return ["active", fence + 1, null, leaseUntil, by, attempts + 1, startedAt ?? now, id, fence];
  });
  await lists.insert(
    EVENTS,
    started.map(({ lane: { accountId }, row: { id, run, fence } }) => {
      return [id, accountId, now, run, fence + 1, "started", "", "active", "{}"];
    }),
  );
  return { rows: started.map(claimedOf), next };
}

interface Found {
  readonly id: string;
  readonly fence: number;
  readonly dueAt: number | null;
  readonly bytes: number;
}

function claimedOf({ row: { id, fence } }: { readonly row: Found }): ClaimResult["rows"][number] {
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
