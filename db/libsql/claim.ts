import type { Action } from "../../src/domain/action.ts";
import type { DueAction } from "../../src/ports/store.ts";
import type { Hands } from "./hands.ts";
import { actionOf, REQUEST_COLUMNS, STATE_COLUMNS } from "./rows.ts";
import type { Statement } from "./sql.ts";

const STARTED = `INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
  SELECT id, account_id, ?, run, revision + 1, 'started', 'active', '{}' FROM actions
  WHERE id = ? AND revision = ? AND status = 'pending'`;
const CLAIM = `UPDATE actions SET status = 'active', revision = revision + 1, attempts = attempts + 1,
    due_at = NULL, lease_until = ?, started_at = coalesce(started_at, ?)
  WHERE id = ? AND revision = ? AND status = 'pending'
  RETURNING ${[...REQUEST_COLUMNS, ...STATE_COLUMNS].join(", ")}`;

/**
 * Makes pending actions active and counts the attempt, in one commit before a byte leaves. The new revision is the
 * fencing token: only its holder can settle. An action that moved on meanwhile is simply not among those returned.
 */
export async function claimActions(
  { writer, seal }: Hands,
  due: readonly DueAction[],
  { now, leaseUntil }: { now: Date; leaseUntil: Date },
): Promise<readonly Action[]> {
  const statements = due.flatMap(({ id, revision }): readonly Statement[] => [
    { sql: STARTED, args: [now.getTime(), id, revision] },
    { sql: CLAIM, args: [leaseUntil.getTime(), now.getTime(), id, revision] },
  ]);
  const done = await writer.write(statements);
  return done.flatMap(({ rows }) => rows.map((row) => actionOf(row, seal)));
}
