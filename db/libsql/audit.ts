import type { AuditDetail, AuditEntry, AuditFilter, AuditRow, AuditStore } from "../../src/audit/audit.ts";
import { AUDIT_SCAN_ROWS_MAX, CALLBACK_HOSTS_MAX } from "../../src/config/limits.ts";
import { ALWAYS, CHANGED, type Guard, type Row, type SqlValue, type Statement } from "./sql.ts";
import type { StoreContext } from "./context.ts";
import type { CallbackHostStore } from "../../src/accounts/callback-hosts.ts";

const INSERT = "INSERT INTO audit (at, account_id, actor, kind, subject, client, detail) SELECT ?, ?, ?, ?, ?, ?, ?";

const LAST_LOOKED_AT = "SELECT seq FROM audit WHERE account_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?";

const PRUNE_ROWS = 500;

/** Reads only the oldest rows, so that every step costs the same. */
const PRUNE = `DELETE FROM audit WHERE seq < (SELECT min(seq) FROM audit) + ? AND seq < (SELECT max(seq) FROM audit)
  AND at <= ?`;

/** The audit log. Rows are never changed, and only `prune` deletes them. */
export function createAuditStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): AuditStore {
  return {
    async record(entry) {
      await writer.write([auditRow(entry, ALWAYS)]);
    },
    async page(query) {
      const { accountId, before, limit } = query;
      const until = before ?? Number.MAX_SAFE_INTEGER;
      // Bounds the scan of this page.
      const [last] = await sql.read({ sql: LAST_LOOKED_AT, args: [accountId, until, AUDIT_SCAN_ROWS_MAX - 1] });
      const from = last === undefined ? 0 : Number(last["seq"]);
      const filter = filterOf(query);
      const rows = await sql.read({
        sql: `SELECT * FROM audit WHERE account_id = ? AND seq < ? AND seq >= ? AND ${filter.sql} ORDER BY seq DESC LIMIT ?`,
        args: [accountId, until, from, ...filter.args, limit + 1],
      });
      const shown = rows.slice(0, limit).map(rowOf);
      if (rows.length > limit) return { rows: shown, before: shown.at(-1)?.seq ?? null };
      return { rows: shown, before: last === undefined ? null : from };
    },
    async prune(until) {
      const [deleted] = await writer.write([{ sql: PRUNE, args: [PRUNE_ROWS, until.getTime()] }]);
      return deleted?.changes === PRUNE_ROWS;
    },
  };
}

/** Adds an entry where the guard holds. */
export function auditRow(entry: AuditEntry, { sql, args }: Guard): Statement {
  const { at, accountId, actor, kind, subject, client, detail } = entry;
  return {
    sql: `${INSERT} WHERE ${sql}`,
    args: [at.getTime(), accountId, actor, kind, subject, client, JSON.stringify(detail), ...args],
  };
}

/** The entry of a change, written where the statement before wrote a row; none if it is undefined. */
export function auditChange(entry: AuditEntry | undefined): readonly Statement[] {
  return entry === undefined ? [] : [auditRow(entry, CHANGED)];
}

function filterOf({ kinds, actor, since, until }: AuditFilter): Guard {
  const terms: (readonly [sql: string, args: readonly SqlValue[]])[] = [["1", []]];
  if (kinds.length > 0) terms.push([`kind IN (${kinds.map(() => "?").join(", ")})`, kinds]);
  if (actor !== null) terms.push(["actor = ?", [actor]]);
  if (since !== null) terms.push(["at >= ?", [since.getTime()]]);
  if (until !== null) terms.push(["at < ?", [until.getTime()]]);
  return { sql: terms.map(([term]) => term).join(" AND "), args: terms.flatMap(([, args]) => args) };
}

function rowOf(row: Row): AuditRow {
  // Safe, here and below: only `auditRow` writes there.
  const detail = JSON.parse(String(row["detail"])) as AuditDetail;
  return {
    seq: Number(row["seq"]),
    at: new Date(Number(row["at"])),
    accountId: String(row["account_id"]),
    actor: row["actor"] as AuditRow["actor"],
    kind: row["kind"] as AuditRow["kind"],
    subject: String(row["subject"]),
    client: String(row["client"]),
    detail,
  };
}

const LIST = "SELECT host, created_at FROM callback_hosts WHERE account_id = ? ORDER BY host";

/** The limit is part of the statement, so racing inserts can't exceed it. */
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
