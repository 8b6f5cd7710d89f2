import { firstActionId } from "../../src/runtime/ids.ts";
import { DEDUPE_WINDOW_MS, PRUNE_BYTES_MAX, PRUNE_ROWS_MAX, PRUNE_SCAN_ROWS_MAX } from "../../src/config/limits.ts";
import type { PruneStep, PruneTimes, HeldAction, UpkeepStore } from "../store.ts";
import { BYTES } from "./find.ts";
import type { StoreContext } from "./context.ts";
import type { Row, Statement } from "./sql.ts";
import { setImmediate as nextTurn } from "node:timers/promises";

/** An id may run ahead of its time: of more than some thousand in one millisecond each takes a later one. */
const ID_AHEAD_MS = 10_000;

/** Ids begin with their time, so that what was created later needs no look: it can't have finished before. */
function firstIdAfter(until: Date): string {
  return firstActionId(new Date(until.getTime() + ID_AHEAD_MS));
}

/** What hangs on an action and goes with it. */
const TABLES = ["timeline", "outbox", "approval_links"] as const;

/** Until when an Idempotency-Key may mean an action that it matched by `dedupe` in the last moment of that key's window. */
const BOUND_MS_MAX = 2 * DEDUPE_WINDOW_MS;

/**
 * Whether an action may go; a notification that is not delivered yet keeps it, and so does an Idempotency-Key that may
 * mean it: which ones do is not looked up, since every create would pay for that index.
 */
const DOOMED = `a.finished_at <= ? AND (a.dedupe IS NULL OR a.created_at <= ?) AND NOT EXISTS
  (SELECT 1 FROM outbox o WHERE o.action_id = a.id AND o.status IN ('pending', 'active'))`;

/** The arguments of `DOOMED`. */
type Until = readonly [finishedMs: number, createdMs: number];

/** Counted up to the bound only, and only for those that may go: null for the others. */
const COUNTED = `CASE WHEN ${DOOMED} THEN (SELECT count(*) FROM
  (SELECT 1 FROM timeline t WHERE t.action_id = a.id LIMIT ${PRUNE_ROWS_MAX + 1})) END`;

const SCAN = `SELECT a.id, a.revision, a.account_id, a.dedupe, a.idempotency_key, ${BYTES} AS bytes, ${COUNTED} AS told
  FROM actions a WHERE a.id > ? AND a.id < ? ORDER BY a.id LIMIT ${PRUNE_SCAN_ROWS_MAX}`;

/**
 * Looks at some actions in the order of their ids and deletes those that may go, in one commit that is bounded by rows and
 * bytes. The walk needs no index by end, which every action would pay for; what is kept costs it a look.
 */
async function pruneStep(
  { sql, writer }: Pick<StoreContext, "sql" | "writer">,
  { now, finishedUntil }: PruneTimes,
  after: string,
): Promise<PruneStep> {
  const until: Until = [finishedUntil.getTime(), now.getTime() - BOUND_MS_MAX];
  const found = await sql.read({ sql: SCAN, args: [...until, after, firstIdAfter(finishedUntil)] });
  const { doomed, last } = fitting(found);
  const [first] = doomed;
  if (first !== undefined && Number(first["told"]) > PRUNE_ROWS_MAX) {
    await writer.write([shorten(first, until)]);
    return { deleted: 0, next: after };
  }
  const deleted = first === undefined ? 0 : await deleteAll({ writer }, doomed, until);
  const isLast = found.length < PRUNE_SCAN_ROWS_MAX && last === found.at(-1)?.["id"];
  return { deleted, next: found.length === 0 || isLast ? null : String(last ?? after) };
}

/** As many as one commit may delete, and one in any case; and the last one that was looked at. */
function fitting(found: readonly Row[]) {
  const doomed: Row[] = [];
  let last: Row[string] = null;
  let rows = 0;
  let bytes = 0;
  for (const row of found) {
    if (row["told"] !== null) {
      rows += Number(row["told"]);
      bytes += Number(row["bytes"]);
      if (doomed.length > 0 && (rows > PRUNE_ROWS_MAX || bytes > PRUNE_BYTES_MAX)) break;
      doomed.push(row);
    }
    last = row["id"] ?? null;
  }
  return { doomed, last };
}

/** A timeline of many runs goes in pieces, its oldest rows first: an answer shows the newest only anyway. */
function shorten({ id, revision }: Row, until: Until): Statement {
  const text = `DELETE FROM timeline WHERE seq IN
    (SELECT t.seq FROM timeline t JOIN actions a ON a.id = t.action_id WHERE t.action_id = ? AND a.revision = ?
      AND ${DOOMED} AND t.seq < (SELECT max(seq) FROM timeline) ORDER BY t.revision LIMIT ${PRUNE_ROWS_MAX})`;
  return { sql: text, args: [id ?? null, revision ?? null, ...until] };
}

const DELETE = `DELETE FROM actions AS a WHERE a.id = ? AND a.revision = ? AND ${DOOMED}`;

const GONE = "NOT EXISTS (SELECT 1 FROM actions WHERE id = ?)";

const DELETE_KEY = `DELETE FROM action_keys WHERE account_id = ? AND kind = ? AND key = ? AND action_id = ? AND ${GONE}`;

/** The newest row stays, emptied, until there is a newer one: its number would be given out again. */
const NEWEST = "SELECT max(seq) FROM timeline";

const DELETE_EMPTIED = `DELETE FROM timeline WHERE action_id = '' AND seq < (${NEWEST})`;

const EMPTY_NEWEST = `UPDATE timeline SET action_id = '', account_id = '', detail = '{}'
  WHERE seq = (${NEWEST}) AND NOT EXISTS (SELECT 1 FROM actions a WHERE a.id = timeline.action_id)`;

async function deleteAll(
  { writer }: Pick<StoreContext, "writer">,
  doomed: readonly Row[],
  until: Until,
): Promise<number> {
  const statements = doomed.map((row) => deleteOne(row, until));
  const done = await writer.write([
    { sql: DELETE_EMPTIED, args: [] },
    ...statements.flat(),
    { sql: EMPTY_NEWEST, args: [] },
  ]);
  let at = 1;
  let deleted = 0;
  for (const { length } of statements) {
    deleted += done[at]?.changes ?? 0;
    at += length;
  }
  return deleted;
}

/** The action under its revision first; what hangs on it where it is gone then. */
function deleteOne(row: Row, until: Until): readonly Statement[] {
  const [id, account] = [row["id"] ?? null, row["account_id"] ?? null];
  const keys = [
    ["dedupe", row["dedupe"] ?? null],
    ["idempotency", row["idempotency_key"] ?? null],
  ] as const;
  return [
    { sql: DELETE, args: [id, row["revision"] ?? null, ...until] },
    ...TABLES.map((table) => ({ sql: deleteFrom(table), args: [id, id] })),
    ...keys.flatMap(([kind, key]) => (key === null ? [] : [{ sql: DELETE_KEY, args: [account, kind, key, id, id] }])),
  ];
}

function deleteFrom(table: (typeof TABLES)[number]): string {
  const text = `DELETE FROM ${table} WHERE action_id = ? AND ${GONE}`;
  return table === "timeline" ? `${text} AND seq < (${NEWEST})` : text;
}

/** Steps that begin with a turn of the event loop: one behind the other they would leave no room for anybody else. */
export function createUpkeepStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): UpkeepStore {
  return {
    async held(until, after, limit) {
      await nextTurn();
      const rows = await sql.read({ sql: HELD, args: [after, firstIdAfter(until), limit] });
      return rows.map(heldOf);
    },
    async prune(times, after) {
      await nextTurn();
      return pruneStep({ sql, writer }, times, after);
    },
  };
}

/** A run is held when it begins; a run that is not the first one begins with its retry. */
const HELD = `SELECT a.id, a.account_id, a.run, coalesce(
    (SELECT max(t.at) FROM timeline t WHERE t.action_id = a.id AND t.run = a.run AND t.type = 'held'),
    a.created_at) AS held_at
  FROM actions a WHERE a.status = 'awaiting_approval' AND a.id > ? AND a.id < ? ORDER BY a.id LIMIT ?`;

function heldOf(row: Row): HeldAction {
  return {
    id: String(row["id"]),
    accountId: String(row["account_id"]),
    run: Number(row["run"]),
    heldAt: new Date(Number(row["held_at"])),
  };
}
