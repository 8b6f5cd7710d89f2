import type { LinkStore } from "../../src/ports/links.ts";
import type { StoreContext } from "./hands.ts";

/** A link that is kept again, since its mail is written again, keeps its time; under another master key it is another. */
const KEEP = `INSERT INTO approval_links (action_id, run, decision, hash, expires_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (action_id, run, decision) DO UPDATE SET hash = excluded.hash RETURNING expires_at`;
const FIND = "SELECT hash, expires_at FROM approval_links WHERE action_id = ? AND run = ? AND decision = ?";

export function createLinkStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): LinkStore {
  return {
    async keep(links, expiresAt) {
      const done = await writer.write(
        links.map(({ actionId, run, decision, hash }) => ({
          sql: KEEP,
          args: [actionId, run, decision, hash, expiresAt.getTime()],
        })),
      );
      const kept = done.flatMap(({ rows }) => rows).map((row) => Number(row["expires_at"]));
      return new Date(Math.min(...kept));
    },
    async forgetAll() {
      await writer.write([{ sql: "DELETE FROM approval_links", args: [] }]);
    },
    async find(link) {
      const { actionId, run, decision } = link;
      const [row] = await sql.read({ sql: FIND, args: [actionId, run, decision] });
      if (row === undefined) return null;
      return { actionId, run, decision, hash: String(row["hash"]), expiresAt: new Date(Number(row["expires_at"])) };
    },
  };
}
