import { CALLBACK_HOSTS_MAX } from "../../src/domain/limits.ts";
import type { CallbackHostStore } from "../../src/ports/callback-hosts.ts";
import type { StoreContext } from "./hands.ts";

const LIST = "SELECT host, created_at FROM callback_hosts WHERE account_id = ? ORDER BY host";
/** The count is in the statement that adds, so that however many race, none is too many. */
const ADD = `INSERT OR IGNORE INTO callback_hosts (account_id, host, created_at)
  SELECT ?1, ?2, ?3 WHERE (SELECT count(*) FROM callback_hosts WHERE account_id = ?1) < ${CALLBACK_HOSTS_MAX}`;
const HAS = "SELECT 1 FROM callback_hosts WHERE account_id = ? AND host = ?";
const REMOVE = "DELETE FROM callback_hosts WHERE account_id = ? AND host = ?";

export function createCallbackHostStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): CallbackHostStore {
  return {
    async list(accountId) {
      const rows = await sql.read({ sql: LIST, args: [accountId] });
      return rows.map((row) => ({ host: String(row["host"]), createdAt: new Date(Number(row["created_at"])) }));
    },
    async add(accountId, host, at) {
      const [added] = await writer.write([{ sql: ADD, args: [accountId, host, at.getTime()] }]);
      if (added?.changes === 1) return "added";
      const [row] = await sql.read({ sql: HAS, args: [accountId, host] });
      return row === undefined ? "full" : "added";
    },
    async remove(accountId, host) {
      const [removed] = await writer.write([{ sql: REMOVE, args: [accountId, host] }]);
      return removed?.changes === 1;
    },
  };
}
