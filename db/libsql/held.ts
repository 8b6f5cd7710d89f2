import type { HeldPage } from "../../src/ports/store.ts";
import { BYTES } from "./find.ts";
import type { Hands } from "./hands.ts";
import { actionsOf, pageOf } from "./list.ts";

// The terms behind the status let SQLite see that the partial index serves.
const HELD = `SELECT a.id, ${BYTES} AS bytes FROM actions a
  WHERE a.account_id = ? AND a.status = 'awaiting_approval' AND a.status <> 'completed' AND a.status <> 'active'
  AND a.id > ? ORDER BY a.id LIMIT ?`;

/** What waits for a person, oldest first. Bounded in bytes as lists are. */
export async function findHeld(
  hands: Pick<Hands, "sql" | "seal">,
  accountId: string,
  after: string | null,
  limit: number,
): Promise<HeldPage> {
  const found = await hands.sql.read({ sql: HELD, args: [accountId, after ?? "", limit + 1] });
  const ids = pageOf(found, limit);
  const actions = (await actionsOf(hands, ids)).toReversed();
  return { actions, after: found.length > ids.length ? (ids.at(-1) ?? null) : null };
}
