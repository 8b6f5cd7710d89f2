import { SQL } from "bun";
import { readCopy } from "../faults/database.ts";
import type { HistoryRows } from "../faults/history.ts";

type Row = Readonly<Record<string, unknown>>;

const QUERIES = {
  actions: "SELECT id, status, retries, callback FROM actions",
  timeline: "SELECT seq, action_id, run, revision, type, status, detail FROM timeline ORDER BY revision, seq",
  outbox: "SELECT action_id, revision, event, status FROM outbox WHERE kind = 'callback'",
  open: `SELECT (SELECT count(*) FROM actions WHERE status IN ('pending', 'active')) +
    (SELECT count(*) FROM outbox WHERE status IN ('pending', 'active')) AS n`,
  claimants: "SELECT count(DISTINCT claimed_by) AS n FROM actions",
} as const;

/** Reads a database from beside the service: a file by a copy, a server by a connection. */
export function readRows(databaseUrl: string) {
  const sql = databaseUrl.startsWith("postgres") ? new SQL(databaseUrl, { max: 1 }) : null;
  const query = async (text: string): Promise<readonly Row[]> => {
    if (sql !== null) return (await sql.unsafe(text)) as readonly Row[];
    const folder = databaseUrl.slice("file:".length, databaseUrl.lastIndexOf("/"));
    return readCopy(folder, (db) => db.query<Row, []>(text).all());
  };
  return {
    /** What the promises are judged by. */
    history: async (): Promise<HistoryRows> => ({
      actions: (await query(QUERIES.actions)).map((row) => ({
        id: String(row["id"]),
        status: String(row["status"]),
        retries: Number(row["retries"]),
        callback: typeof row["callback"] === "string" ? row["callback"] : null,
      })),
      timeline: (await query(QUERIES.timeline)).map((row) => ({
        seq: Number(row["seq"]),
        action_id: String(row["action_id"]),
        run: Number(row["run"]),
        revision: Number(row["revision"]),
        type: String(row["type"]),
        status: String(row["status"]),
        detail: String(row["detail"]),
      })),
      outbox: (await query(QUERIES.outbox)).map((row) => ({
        action_id: String(row["action_id"]),
        revision: Number(row["revision"]),
        event: String(row["event"]),
        status: String(row["status"]),
      })),
    }),
    /** Actions and notifications that are not over and do not wait for a person. */
    openCount: async () => Number((await query(QUERIES.open))[0]?.["n"]),
    /** Processes that have claimed an action so far. */
    claimantCount: async () => Number((await query(QUERIES.claimants))[0]?.["n"]),
    [Symbol.asyncDispose]: async () => {
      await sql?.close();
    },
  };
}
