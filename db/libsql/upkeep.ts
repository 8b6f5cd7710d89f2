import { setImmediate as nextTurn } from "node:timers/promises";
import type { HeldAction, UpkeepStore } from "../../src/ports/upkeep.ts";
import type { StoreContext } from "./hands.ts";
import { firstIdAfter, pruneStep } from "./prune.ts";
import type { Row } from "./sql.ts";

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
