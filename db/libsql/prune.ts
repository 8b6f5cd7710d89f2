import { firstActionId } from "../../src/runtime/ids.ts";
import { DEDUPE_WINDOW_MS, PRUNE_BYTES_MAX, PRUNE_ROWS_MAX, PRUNE_SCAN_ROWS_MAX } from "../../src/config/limits.ts";
import type { PruneStep, PruneTimes, HeldAction, UpkeepStore } from "../store.ts";
import { BYTES } from "./find.ts";
import type { StoreContext } from "./context.ts";
import type { Row, Statement } from "./sql.ts";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Ids may be ahead of their time: thousands in one millisecond continue in later ones. */
const ID_AHEAD_MS = 10_000;

/** Ids begin with their time: actions created later can't have finished before and are not scanned. */
function firstIdAfter(until: Date): string {
  return firstActionId(new Date(until.getTime() + ID_AHEAD_MS));
}

/** Tables whose rows are deleted with their action. */
const TABLES = ["timeline", "outbox", "approval_links"] as const;

/** How long an Idempotency-Key may name an action that it matched by `dedupe` at the end of that key's window. */
const BOUND_MS_MAX = 2 * DEDUPE_WINDOW_MS;

/**
 * Condition for deletion. A pending notification keeps an action, and so does an Idempotency-Key that may name it;
 * which keys do is not looked up, since every create would pay for that index.
 */
const DELETABLE = `a.finished_at <= ? AND (a.dedupe IS NULL OR a.created_at <= ?) AND NOT EXISTS
  (SELECT 1 FROM outbox o WHERE o.action_id = a.id AND o.status IN ('pending', 'active'))`;

/** Arguments of `DELETABLE`. */
type DeletableArgs = readonly [finishedMs: number, createdMs: number];

/** Rows of the timeline, counted up to the bound; null for actions that must stay. */
const COUNTED = `CASE WHEN ${DELETABLE} THEN (SELECT count(*) FROM
  (SELECT 1 FROM timeline t WHERE t.action_id = a.id LIMIT ${PRUNE_ROWS_MAX + 1})) END`;

const SCAN = `SELECT a.id, a.revision, a.account_id, a.dedupe, a.idempotency_key, ${BYTES} AS bytes, ${COUNTED} AS told
  FROM actions a WHERE a.id > ? AND a.id < ? ORDER BY a.id LIMIT ${PRUNE_SCAN_ROWS_MAX}`;

/**
 * Scans some actions by id and deletes those that may go, in one commit that is bounded in rows and bytes. It needs no
 * index by end, which every action would pay for.
 */
async function pruneStep(
  { sql, writer }: Pick<StoreContext, "sql" | "writer">,
  { now, finishedUntil }: PruneTimes,
  after: string,
): Promise<PruneStep> {
  const until: DeletableArgs = [finishedUntil.getTime(), now.getTime() - BOUND_MS_MAX];
  const found = await sql.read({ sql: SCAN, args: [...until, after, firstIdAfter(finishedUntil)] });
  const { deletable, last } = fitting(found);
  const [first] = deletable;
  if (first !== undefined && Number(first["told"]) > PRUNE_ROWS_MAX) {
    await writer.write([shorten(first, until)]);
    return { deleted: 0, next: after };
  }
  const deleted = first === undefined ? 0 : await deleteAll({ writer }, deletable, until);
  const isLast = found.length < PRUNE_SCAN_ROWS_MAX && last === found.at(-1)?.["id"];
  return { deleted, next: found.length === 0 || isLast ? null : String(last ?? after) };
}

/** The rows that one commit may delete, at least one, and the last row scanned. */
function fitting(found: readonly Row[]) {
  const deletable: Row[] = [];
  let last: Row[string] = null;
  let rows = 0;
  let bytes = 0;
  for (const row of found) {
    if (row["told"] !== null) {
      rows += Number(row["told"]);
      bytes += Number(row["bytes"]);
      if (deletable.length > 0 && (rows > PRUNE_ROWS_MAX || bytes > PRUNE_BYTES_MAX)) break;
      deletable.push(row);
    }
    last = row["id"] ?? null;
  }
  return { deletable, last };
}

/** Deletes the oldest rows of a very long timeline first, in pieces: only the newest are shown anyway. */
function shorten({ id, revision }: Row, until: DeletableArgs): Statement {
  const text = `DELETE FROM timeline WHERE seq IN
    (SELECT t.seq FROM timeline t JOIN actions a ON a.id = t.action_id WHERE t.action_id = ? AND a.revision = ?
      AND ${DELETABLE} AND t.seq < (SELECT max(seq) FROM timeline) ORDER BY t.revision LIMIT ${PRUNE_ROWS_MAX})`;
  return { sql: text, args: [id ?? null, revision ?? null, ...until] };
}

const DELETE = `DELETE FROM actions AS a WHERE a.id = ? AND a.revision = ? AND ${DELETABLE}`;

const GONE = "NOT EXISTS (SELECT 1 FROM actions WHERE id = ?)";

const DELETE_KEY = `DELETE FROM action_keys WHERE account_id = ? AND kind = ? AND key = ? AND action_id = ? AND ${GONE}`;

/** The newest row stays, emptied, until there is a newer one: otherwise its number would be given out again. */
const NEWEST = "SELECT max(seq) FROM timeline";

const DELETE_EMPTIED = `DELETE FROM timeline WHERE action_id = '' AND seq < (${NEWEST})`;

const EMPTY_NEWEST = `UPDATE timeline SET action_id = '', account_id = '', detail = '{}'
  WHERE seq = (${NEWEST}) AND NOT EXISTS (SELECT 1 FROM actions a WHERE a.id = timeline.action_id)`;

async function deleteAll(
  { writer }: Pick<StoreContext, "writer">,
  deletable: readonly Row[],
  until: DeletableArgs,
): Promise<number> {
  const statements = deletable.map((row) => deleteOne(row, until));
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

/** Deletes the action by its revision, and its other rows only if it is gone then. */
function deleteOne(row: Row, until: DeletableArgs): readonly Statement[] {
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

/** Each step begins with a turn of the event loop, so that steps in a row don't block others. */
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

/** A run is held when it begins: the first at the create, others at their retry. */
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
