import type { Action } from "../../src/actions/action.ts";
import type { Actor } from "../../src/accounts/roles.ts";
import { PAUSES_MAX, TIMELINE_PAUSES_MAX } from "../../src/config/limits.ts";
import type { Pause, PauseKind, PauseStore } from "../../src/pauses/pause.ts";
import { auditRow } from "./audit.ts";
import { Columns } from "./rows.ts";
import { findLanes, findPending } from "./find.ts";
import { CHANGED, type Guard, type Row, type Sql, type Statement } from "./sql.ts";
import type { StoreContext } from "./context.ts";

/** SQL that is true while the account (an SQL expression) is stopped: it signed up and was not allowed. */
export function stoppedWhere(accountId: string): string {
  return `EXISTS (SELECT 1 FROM pauses p INDEXED BY pauses_in_force WHERE p.account_id = ${accountId}
      AND p.kind = 'sign_up' AND p.subject = ${accountId} AND p.ended_at IS NULL)`;
}

/**
 * SQL that is true while a pause covers an action of this account and key (SQL expressions): three lookups in an index
 * that is almost always empty. The index is named, since the planner may choose one by subject.
 */
export function pausedWhere(accountId: string, keyId: string): string {
  return `EXISTS (SELECT 1 FROM pauses p INDEXED BY pauses_in_force WHERE p.account_id = ${accountId}
      AND p.kind = 'account' AND p.subject = '' AND p.ended_at IS NULL)
    OR EXISTS (SELECT 1 FROM pauses p INDEXED BY pauses_in_force WHERE p.account_id = ${accountId}
      AND p.kind = 'key' AND p.subject = ${keyId} AND p.ended_at IS NULL)
    OR ${stoppedWhere(accountId)}`;
}

const UNPAUSED = `NOT (${pausedWhere("?", "?")})`;

/** Holds while no pause covers the action. */
export function unpaused({ accountId, keyId }: Pick<Action, "accountId" | "keyId">): Guard {
  return { sql: UNPAUSED, args: [accountId, accountId, keyId, accountId, accountId] };
}

const COLUMNS = "id, account_id, kind, subject, reason, cancels, created_at, created_by, ended_at, ended_by";

const HAS_SUBJECT = "(? = 'account' OR EXISTS (SELECT 1 FROM api_keys WHERE id = ? AND account_id = ?))";

const HAS_ROOM = `(SELECT count(*) FROM (SELECT 1 FROM pauses INDEXED BY pauses_in_force
  WHERE account_id = ? AND ended_at IS NULL LIMIT ?)) < ?`;

const ADD = `INSERT INTO pauses (id, account_id, kind, subject, reason, cancels, created_at, created_by)
  SELECT ?, ?, ?, ?, ?, ?, ?, ?`;

/** Writes nothing while such a pause is in force, except to make it cancel from now on. */
const UNLESS_IN_FORCE = `ON CONFLICT (account_id, kind, subject) WHERE ended_at IS NULL
  DO UPDATE SET cancels = 1 WHERE excluded.cancels = 1 AND cancels = 0`;

const END = "UPDATE pauses SET ended_at = ?, ended_by = ? WHERE id = ? AND account_id = ? AND ended_at IS NULL";

const PRUNE_ROWS = 500;

export function createPauseStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): PauseStore {
  const find = async (accountId: string, id: string) => {
    const text = `SELECT ${COLUMNS} FROM pauses WHERE id = ? AND account_id = ?`;
    const [row] = await sql.read({ sql: text, args: [id, accountId] });
    return row === undefined ? null : pauseOf(row);
  };
  return {
    find,
    async pause(pause, audit) {
      const { accountId, kind, subject } = pause;
      const guard = {
        sql: `${HAS_SUBJECT} AND ${HAS_ROOM}`,
        args: [kind, subject, accountId, accountId, PAUSES_MAX, PAUSES_MAX],
      };
      const [added] = await writer.write([addPause(pause, guard), auditRow(audit, CHANGED)]);
      if (added?.changes === 1) return { kind: "paused", pause };
      const inForce = await findInForce(sql, accountId);
      const found = inForce.find((one) => one.kind === kind && one.subject === subject);
      if (found !== undefined) return { kind: "found", pause: found };
      return { kind: inForce.length >= PAUSES_MAX ? "too_many" : "no_such_key" };
    },
    async end(accountId, id, { at, by, audit }) {
      const [ended] = await writer.write([
        { sql: END, args: [at.getTime(), by, id, accountId] },
        auditRow(audit, CHANGED),
      ]);
      return ended?.changes === 1 || (await find(accountId, id)) !== null;
    },
    inForce: (accountId) => findInForce(sql, accountId),
    ofAction: (accountId, actionId) => findOfAction(sql, accountId, actionId),
    unfinished: (accountId, keyId, limit) => findUnfinished(sql, { accountId, keyId }, limit),
    async prune(endedUntil) {
      const text = `DELETE FROM pauses WHERE id IN (SELECT id FROM pauses WHERE ended_at <= ? LIMIT ?)`;
      const [deleted] = await writer.write([{ sql: text, args: [endedUntil.getTime(), PRUNE_ROWS] }]);
      return deleted?.changes === PRUNE_ROWS;
    },
  };
}

/** Writes a pause, unless one of the same subject is in force or the guard does not hold. */
export function addPause(pause: Pause, guard: Guard): Statement {
  const { id, accountId, kind, subject, reason, cancels, createdAt, createdBy } = pause;
  return {
    sql: `${ADD} WHERE ${guard.sql} ${UNLESS_IN_FORCE}`,
    args: [id, accountId, kind, subject, reason, Number(cancels), createdAt.getTime(), createdBy, ...guard.args],
  };
}

async function findInForce(sql: Sql, accountId: string | null): Promise<readonly Pause[]> {
  const text = `SELECT ${COLUMNS} FROM pauses INDEXED BY pauses_in_force WHERE ended_at IS NULL`;
  const rows = await sql.read(
    accountId === null ? { sql: text, args: [] } : { sql: `${text} AND account_id = ?`, args: [accountId] },
  );
  return rows.map(pauseOf).toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
}

const ofKind = (term: string) =>
  `SELECT * FROM (SELECT ${COLUMNS} FROM pauses WHERE account_id = ? AND ${term} ORDER BY created_at DESC LIMIT ?)`;

const OF_ACTION = [
  ofKind("kind = 'account' AND subject = ''"),
  ofKind("kind = 'key' AND subject = (SELECT key_id FROM actions WHERE id = ? AND account_id = ?)"),
  ofKind("kind = 'sign_up' AND subject = ?"),
].join(" UNION ALL ");

async function findOfAction(sql: Sql, accountId: string, actionId: string): Promise<readonly Pause[]> {
  const ofAccount = [accountId, TIMELINE_PAUSES_MAX];
  const ofKey = [accountId, actionId, accountId, TIMELINE_PAUSES_MAX];
  const ofSignUp = [accountId, accountId, TIMELINE_PAUSES_MAX];
  const rows = await sql.read({ sql: OF_ACTION, args: [...ofAccount, ...ofKey, ...ofSignUp] });
  const oldestFirst = rows.map(pauseOf).toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
  return oldestFirst.slice(-TIMELINE_PAUSES_MAX);
}

const HELD = "SELECT id FROM actions WHERE status = 'awaiting_approval' AND account_id = ? AND key_id = ? LIMIT ?";

const SENDING = "SELECT 1 FROM actions WHERE status = 'active' AND account_id = ? AND key_id = ? LIMIT 1";

/** Lanes per read. */
const LANES = 128;

/** By lanes, since no index of pending actions begins with the key: every action would pay for it. */
async function findUnfinished(
  sql: Sql,
  { accountId, keyId }: { readonly accountId: string; readonly keyId: string },
  limit: number,
) {
  // Read first: an action that becomes pending again meanwhile is found below.
  const sending = await sql.read({ sql: SENDING, args: [accountId, keyId] });
  const held = await sql.read({ sql: HELD, args: [accountId, keyId, limit] });
  const ids = held.map((row) => String(row["id"]));
  let after = { accountId, host: "", keyId: "" };
  while (ids.length < limit) {
    const heads = (await findLanes(sql, after, LANES)).filter((head) => head.accountId === accountId);
    for (const head of heads) {
      if (head.keyId !== keyId || ids.length >= limit) continue;
      const pending = await findPending(sql, head, limit - ids.length);
      ids.push(...pending.map(({ id }) => id));
    }
    const last = heads.at(-1);
    if (last === undefined || heads.length < LANES) break;
    after = { accountId, host: last.host, keyId: last.keyId };
  }
  return { ids, isSending: sending.length > 0 };
}

function pauseOf(row: Row): Pause {
  const columns = new Columns(row);
  const text = (column: string) => (row[column] === null ? null : String(row[column]));
  // Safe, here and below: the columns hold what `addPause` and `END` wrote, and nothing else writes them.
  return {
    id: String(row["id"]),
    accountId: String(row["account_id"]),
    kind: row["kind"] as PauseKind,
    subject: String(row["subject"]),
    reason: text("reason"),
    cancels: row["cancels"] === 1,
    createdAt: columns.time("created_at"),
    createdBy: row["created_by"] as Actor,
    endedAt: columns.timeOrNull("ended_at"),
    endedBy: text("ended_by") as Actor | null,
  };
}
