import { REPLACED_KEYS_MAX } from "../../src/domain/limits.ts";
import type { AccountStop, AccountStore, ListedAccount } from "../../src/ports/accounts.ts";
import type { PauseEnd } from "../../src/ports/pauses.ts";
import { auditRow } from "./audit.ts";
import { CHANGED, type Guard } from "./guard.ts";
import type { Row, Sql, Statement } from "./sql.ts";
import type { Writer } from "./writer.ts";

/** In the order of the rows: a clock that was set back would make somebody's sign-up the first. */
const FIRST = "(SELECT id FROM accounts ORDER BY rowid LIMIT 1)";

/** True while no key of the first account has, or had, a hold. */
export const NO_HOLD: Guard = {
  sql: `NOT EXISTS (SELECT 1 FROM api_keys WHERE account_id = ${FIRST} AND hold <> 'none')`,
  args: [],
};

/** True where this key is the first of the first account that has a hold. */
export function isFirstHold(keyId: string): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM api_keys WHERE id = ? AND account_id = ${FIRST} AND hold <> 'none')
      AND NOT EXISTS (SELECT 1 FROM api_keys WHERE id <> ? AND account_id = ${FIRST} AND hold <> 'none')`,
    args: [keyId, keyId],
  };
}

const STOP = `INSERT INTO pauses (id, account_id, kind, subject, reason, cancels, created_at, created_by)
  SELECT 'pau_' || lower(hex(randomblob(16))), a.id, 'sign_up', a.id, ?, 0, ?, 'system' FROM accounts a
  WHERE a.allowed_at IS NULL AND a.id <> ${FIRST}
  ON CONFLICT (account_id, kind, subject) WHERE ended_at IS NULL DO NOTHING`;

/** Stops every account but the first that nobody has allowed. One that is stopped already stays so. */
export function stopOthers({ at, reason }: AccountStop): Statement {
  return { sql: STOP, args: [reason, at.getTime()] };
}

/** The first statement writes one row where nobody has allowed the account. */
function allowAccount(accountId: string, { at, by, audit }: PauseEnd): readonly Statement[] {
  return [
    {
      sql: "UPDATE accounts SET allowed_at = ?, allowed_by = ? WHERE id = ? AND allowed_at IS NULL",
      args: [at.getTime(), by, accountId],
    },
    auditRow(audit, CHANGED),
    {
      sql: `UPDATE pauses SET ended_at = ?, ended_by = ?
        WHERE account_id = ? AND kind = 'sign_up' AND subject = ? AND ended_at IS NULL`,
      args: [at.getTime(), by, accountId, accountId],
    },
  ];
}

const LIST = `SELECT a.id, a.created_at, a.allowed_at, a.id = ${FIRST} AS is_first,
    (SELECT p.email FROM members m JOIN people p ON p.id = m.person_id
      WHERE m.account_id = a.id ORDER BY m.joined_at, m.person_id LIMIT 1) AS email,
    EXISTS (SELECT 1 FROM pauses s INDEXED BY pauses_in_force
      WHERE s.account_id = a.id AND s.kind = 'sign_up' AND s.subject = a.id AND s.ended_at IS NULL) AS is_stopped
  FROM accounts a ORDER BY is_stopped DESC, a.rowid DESC LIMIT ?`;

/** Those that are stopped first, then the newest. */
async function listAccounts(sql: Sql, limit: number): Promise<readonly ListedAccount[]> {
  return (await sql.read({ sql: LIST, args: [limit] })).map(listedOf);
}

function listedOf(row: Row): ListedAccount {
  const { email = null, allowed_at: allowedAt = null } = row;
  return {
    id: String(row["id"]),
    email: email === null ? null : String(email),
    createdAt: new Date(Number(row["created_at"])),
    isFirst: row["is_first"] === 1,
    isStopped: row["is_stopped"] === 1,
    allowedAt: allowedAt === null ? null : new Date(Number(allowedAt)),
  };
}

/** From key to key by the primary key; bounded, whatever somebody wrote there by hand. */
const REPLACED = `WITH RECURSIVE handed (id, depth) AS (
    SELECT replaces, 1 FROM api_keys WHERE id = ? AND replaces IS NOT NULL
    UNION ALL
    SELECT k.replaces, handed.depth + 1 FROM handed JOIN api_keys k ON k.id = handed.id
    WHERE k.replaces IS NOT NULL AND handed.depth < ?)
  SELECT id FROM handed`;

export async function findReplaced(sql: Sql, keyId: string): Promise<readonly string[]> {
  const rows = await sql.read({ sql: REPLACED, args: [keyId, REPLACED_KEYS_MAX] });
  return rows.map((row) => String(row["id"]));
}

type SignedUpStore = Pick<AccountStore, "hasHold" | "stopOthers" | "list" | "allow">;

/** Who was signed up, and who of them is stopped. */
export function createSignedUpStore(sql: Sql, writer: Writer): SignedUpStore {
  return {
    async hasHold() {
      return (await sql.read({ sql: `SELECT 1 WHERE NOT (${NO_HOLD.sql})`, args: [] })).length > 0;
    },
    async stopOthers(stop) {
      const [stopped] = await writer.write([stopOthers(stop)]);
      return stopped?.changes ?? 0;
    },
    list: (limit) => listAccounts(sql, limit),
    async allow(accountId, end) {
      const [allowed] = await writer.write(allowAccount(accountId, end));
      if (allowed?.changes === 1) return true;
      return (await sql.read({ sql: "SELECT 1 FROM accounts WHERE id = ?", args: [accountId] })).length > 0;
    },
  };
}
