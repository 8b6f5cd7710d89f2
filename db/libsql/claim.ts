import type { Action } from "../../src/domain/action.ts";
import { type Claimed, dispatched } from "../../src/domain/dispatch.ts";
import type { DueRow } from "../../src/ports/store.ts";
import { isConstraint } from "./fault.ts";
import { CHANGED } from "./guard.ts";
import type { StoreContext } from "./hands.ts";
import { pausedWhere } from "./pauses.ts";
import { actionOf, REQUEST_COLUMNS, STATE_COLUMNS } from "./rows.ts";
import type { Done, Statement } from "./sql.ts";

const CLAIM = `UPDATE actions SET status = 'active', revision = revision + 1, attempts = attempts + 1,
    due_at = NULL, lease_until = ?, started_at = coalesce(started_at, ?)
  WHERE id = ? AND revision = ? AND status = 'pending'
    AND NOT (${pausedWhere("actions.account_id", "actions.key_id")})`;
const CLAIM_AND_READ = `${CLAIM} RETURNING ${[...REQUEST_COLUMNS, ...STATE_COLUMNS].join(", ")}`;
const READ = `SELECT ${[...REQUEST_COLUMNS, ...STATE_COLUMNS].join(", ")} FROM actions WHERE id = ? AND revision = ?`;
const STARTED = `INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
  SELECT id, account_id, ?, run, revision, 'started', 'active', '{}' FROM actions WHERE id = ? AND ${CHANGED.sql}`;

/**
 * Makes pending actions active and counts the attempt, in one commit before a byte leaves. The new revision is the
 * fencing token: only its holder can settle. An action that moved on meanwhile is simply not among those returned, and
 * neither is one that is paused. One that the database refuses takes no other along: each is claimed by itself then.
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
    // What a write returns crosses a thread as JSON: a large row is read before, on this side, under the same revision.
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
    // Reading every row back through the driver would be the dearest part of a claim.
    return action ? [dispatched(action, at)] : claim.rows.map((row) => actionOf(row, seal));
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
