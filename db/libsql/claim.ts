import type { Action } from "../../src/domain/action.ts";
import { type Claimed, dispatched } from "../../src/domain/dispatch.ts";
import type { DueRow } from "../../src/ports/store.ts";
import { CHANGED } from "./guard.ts";
import type { Hands } from "./hands.ts";
import { actionOf, REQUEST_COLUMNS, STATE_COLUMNS } from "./rows.ts";
import type { Done, Statement } from "./sql.ts";

const CLAIM = `UPDATE actions SET status = 'active', revision = revision + 1, attempts = attempts + 1,
    due_at = NULL, lease_until = ?, started_at = coalesce(started_at, ?)
  WHERE id = ? AND revision = ? AND status = 'pending'`;
const CLAIM_AND_READ = `${CLAIM} RETURNING ${[...REQUEST_COLUMNS, ...STATE_COLUMNS].join(", ")}`;
const STARTED = `INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
  SELECT id, account_id, ?, run, revision, 'started', 'active', '{}' FROM actions WHERE id = ? AND ${CHANGED.sql}`;

/**
 * Makes pending actions active and counts the attempt, in one commit before a byte leaves. The new revision is the
 * fencing token: only its holder can settle. An action that moved on meanwhile is simply not among those returned.
 */
export async function claimActions(
  { writer, seal, recent }: Hands,
  due: readonly DueRow[],
  at: Claimed,
): Promise<readonly Action[]> {
  const nowMs = at.now.getTime();
  const leaseUntilMs = at.leaseUntil.getTime();
  const known = due.map(({ id, revision }) => recent.take(id, revision));
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
