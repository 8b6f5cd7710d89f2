import type { Action, ActionStatus } from "../../src/actions/action.ts";
import { type Claimed, startAttempt } from "../../src/actions/settle.ts";
import type { DueRow } from "../store.ts";
import { isConstraint } from "./errors.ts";
import { CHANGED, type Done, type Statement, type Sql } from "./sql.ts";
import type { StoreContext } from "./context.ts";
import { pausedWhere } from "./pauses.ts";
import { actionOf, REQUEST_COLUMNS, STATE_COLUMNS } from "./rows.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { DUE_LANES_SCANNED_MAX } from "../../src/config/limits.ts";
import type { NotificationKind } from "../../src/delivery/notification.ts";

const CLAIM = `UPDATE actions SET status = 'active', revision = revision + 1, attempts = attempts + 1,
    due_at = NULL, lease_until = ?, started_at = coalesce(started_at, ?)
  WHERE id = ? AND revision = ? AND status = 'pending'
    AND NOT (${pausedWhere("actions.account_id", "actions.key_id")})`;

const CLAIM_AND_READ = `${CLAIM} RETURNING ${[...REQUEST_COLUMNS, ...STATE_COLUMNS].join(", ")}`;

const READ = `SELECT ${[...REQUEST_COLUMNS, ...STATE_COLUMNS].join(", ")} FROM actions WHERE id = ? AND revision = ?`;

const STARTED = `INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
  SELECT id, account_id, ?, run, revision, 'started', 'active', '{}' FROM actions WHERE id = ? AND ${CHANGED.sql}`;

/**
 * Makes pending actions active and counts the attempt, in one commit before anything is sent. The new revision is the
 * fencing token: only its holder can settle. Actions that changed meanwhile or are paused are not among those returned.
 * If the database refuses a row, each is claimed separately.
 */
export async function claimActions(db: StoreContext, due: readonly DueRow[], at: Claimed): Promise<readonly Action[]> {
  try {
    return await claimAll(db, due, at);
  } catch (error) {
    if (!isConstraint(error)) throw error;
    const [only] = due;
    if (due.length > 1) return (await Promise.all(due.map((one) => claimActions(db, [one], at)))).flat();
    if (only !== undefined) db.refused.add(only.id);
    return [];
  }
}

async function claimAll(
  { sql, writer, seal, recent }: StoreContext,
  due: readonly DueRow[],
  at: Claimed,
): Promise<readonly Action[]> {
  const nowMs = at.now.getTime();
  const leaseUntilMs = at.leaseUntil.getTime();
  const known: (Action | null)[] = [];
  for (const { id, revision, largeBytes } of due) {
    // Results of writes cross threads as JSON: a large row is read here first, under the same revision.
    const action =
      recent.take(id, revision) ?? (largeBytes === undefined ? null : await read({ sql, seal }, id, revision));
    known.push(action);
  }
  const statements = due.flatMap(({ id, revision }, n): readonly Statement[] => [
    { sql: known[n] === null ? CLAIM_AND_READ : CLAIM, args: [leaseUntilMs, nowMs, id, revision] },
    { sql: STARTED, args: [nowMs, id] },
  ]);
  const done = await writer.write(statements);
  const won = (claim: Done | undefined, action: Action | null | undefined): readonly Action[] => {
    if (claim === undefined || claim.changes === 0) return [];
    // Reading rows back through the driver would be the most expensive part of a claim.
    return action ? [startAttempt(action, at)] : claim.rows.map((row) => actionOf(row, seal));
  };
  return due.flatMap((_, n) => won(done[2 * n], known[n]));
}

async function read(
  { sql, seal }: Pick<StoreContext, "sql" | "seal">,
  id: string,
  revision: number,
): Promise<Action | null> {
  const [row] = await sql.read({ sql: READ, args: [id, revision] });
  return row === undefined ? null : actionOf(row, seal);
}

/** Larger counts are reported as this number. */
const COUNTED_MAX = 100_000;

/** The statuses that are not final. Each has a partial index, so no other rows are read. */
const STATUSES = ["pending", "active", "awaiting_approval"] as const satisfies readonly ActionStatus[];

const KINDS = ["callback", "mail"] as const satisfies readonly NotificationKind[];

/**
 * Steps from the head of each lane to the next by the index of the queues, without reading the rows between: the next
 * key of the host, else the next host of the account, else the next account. A single row-value comparison would use
 * the index for the account only and scan all earlier lanes.
 */
const FIRST_DUE = `WITH RECURSIVE head (id, n) AS (
  SELECT (SELECT id FROM actions WHERE status = 'pending' ORDER BY account_id, host, key_id, due_at LIMIT 1), 1
  UNION ALL
  SELECT coalesce(
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id = a.account_id AND b.host = a.host
      AND b.key_id > a.key_id ORDER BY b.key_id, b.due_at LIMIT 1),
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id = a.account_id AND b.host > a.host
      ORDER BY b.host, b.key_id, b.due_at LIMIT 1),
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id > a.account_id
      ORDER BY b.account_id, b.host, b.key_id, b.due_at LIMIT 1)), n + 1
  FROM head JOIN actions a ON a.id = head.id WHERE n < ?)
  SELECT min(a.due_at) AS due_at FROM head JOIN actions a ON a.id = head.id
  WHERE NOT (${pausedWhere("a.account_id", "a.key_id")})`;

/** Due time of the earliest pending action; null: none is pending, except paused ones. */
export async function findFirstDue(sql: Sql): Promise<Date | null> {
  const [row] = await sql.read({ sql: FIRST_DUE, args: [DUE_LANES_SCANNED_MAX] });
  return typeof row?.["due_at"] === "number" ? new Date(row["due_at"]) : null;
}

/** Number of actions that are not final, by status. */
export async function countActions(sql: Sql): Promise<Partial<Record<ActionStatus, number>>> {
  const counts = await countEach(
    sql,
    STATUSES.map((status) => [status, `actions WHERE status = '${status}'`]),
  );
  return Object.fromEntries(STATUSES.map((status) => [status, counts.get(status) ?? 0]));
}

/** Number of notifications that are not final, by kind. */
export async function countNotifications(sql: Sql): Promise<Readonly<Record<NotificationKind, number>>> {
  const counts = await countEach(
    sql,
    KINDS.flatMap((kind) =>
      (["pending", "active"] as const).map(
        (status) => [kind, `outbox WHERE status = '${status}' AND kind = '${kind}'`] as const,
      ),
    ),
  );
  return { callback: counts.get("callback") ?? 0, mail: counts.get("mail") ?? 0 };
}

/** Counts the rows of each source, in a turn of the event loop each (5 ms at most), and adds up sources of one name. */
async function countEach(sql: Sql, sources: readonly (readonly [name: string, source: string])[]) {
  const counts = new Map<string, number>();
  for (const [name, source] of sources) {
    const text = `SELECT count(*) AS n FROM (SELECT 1 FROM ${source} LIMIT ?)`;
    const [row] = await sql.read({ sql: text, args: [COUNTED_MAX] });
    counts.set(name, (counts.get(name) ?? 0) + Number(row?.["n"]));
    await nextTurn();
  }
  return counts;
}
