import { emailKey } from "../../src/domain/email.ts";
import type { AuditEntry } from "../../src/domain/audit.ts";
import { SESSIONS_PER_PERSON_MAX } from "../../src/domain/limits.ts";
import type { PersonRow, SessionRow, SignUp } from "../../src/ports/people.ts";
import type { WelcomeLink } from "../../src/ports/welcome-link.ts";
import { auditChange } from "./audit.ts";
import { CHANGED } from "./guard.ts";
import { NO_HOLD } from "./stopped-accounts.ts";
import type { Statement } from "./sql.ts";

/**
 * Chains, as a change of an action is one: the first statement decides, and each that follows writes only where the one
 * before it did. Two of one address, or two at one link, can race: one of them wins.
 */
const PERSON = "INSERT INTO people (id, email, email_key, password_hash, created_at) SELECT ?, ?, ?, ?, ?";
const UNLESS_TAKEN = "ON CONFLICT (email_key) DO NOTHING";
const SESSION_ROW = `INSERT INTO sessions (hash, person_id, account_id, created_at, expires_at, secret_hash)
  SELECT ?, ?, ?, ?, ?, ?`;
const MEMBER_ROW = `INSERT INTO members (account_id, person_id, joined_at) SELECT ?, ?, ? WHERE ${CHANGED.sql}`;
const ACCOUNT = `INSERT INTO accounts (id, sealed_root_secret, created_at, allowed_at, allowed_by)
  SELECT ?, ?, ?, ?, ? WHERE ${CHANGED.sql}`;
const KEY = `INSERT INTO api_keys (id, account_id, name, role, hold, hash, last4, created_at)
  SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${CHANGED.sql}`;

/** The first statement writes one row when the address was free, and sign-ups have not closed. */
export function signUp({ account, key, person, session, audit = [], ...rules }: SignUp): readonly Statement[] {
  const { allowedBy = null, endsWithHold = false } = rules;
  const madeMs = account.createdAt.getTime();
  return [
    { sql: `${PERSON} WHERE ${endsWithHold ? NO_HOLD.sql : "true"} ${UNLESS_TAKEN}`, args: personValues(person) },
    {
      sql: ACCOUNT,
      args: [account.id, account.sealedRootSecret, madeMs, allowedBy === null ? null : madeMs, allowedBy],
    },
    {
      sql: KEY,
      args: [key.id, key.accountId, key.name, key.role, key.hold, key.hash, key.last4, key.createdAt.getTime()],
    },
    { sql: MEMBER_ROW, args: [account.id, person.id, person.createdAt.getTime()] },
    { sql: `${SESSION_ROW} WHERE ${CHANGED.sql}`, args: sessionValues(session) },
    ...audit.flatMap(auditChange),
  ];
}

/** Of those before this one: where the clock was set back, the newest looks like the oldest. */
const END_OLDEST = `DELETE FROM sessions WHERE hash IN
  (SELECT hash FROM sessions WHERE person_id = ? AND hash <> ? ORDER BY created_at DESC, hash DESC LIMIT -1 OFFSET ?)`;

/** The first statement writes one row while the password is the one that was checked. */
export function addSession(session: SessionRow, passwordHash: string, audit?: AuditEntry): readonly Statement[] {
  const { personId, hash } = session;
  return [
    {
      sql: `${SESSION_ROW} WHERE EXISTS (SELECT 1 FROM people WHERE id = ? AND password_hash = ?)`,
      args: [...sessionValues(session), personId, passwordHash],
    },
    ...auditChange(audit),
    { sql: END_OLDEST, args: [personId, hash, SESSIONS_PER_PERSON_MAX - 1] },
  ];
}

export function endSession(hash: string, audit?: AuditEntry): readonly Statement[] {
  return [{ sql: "DELETE FROM sessions WHERE hash = ?", args: [hash] }, ...auditChange(audit)];
}

/** While the password is the one that was checked. */
const NEW_SECRET = `UPDATE sessions SET secret_hash = ? WHERE hash = ?
  AND EXISTS (SELECT 1 FROM people WHERE id = sessions.person_id AND password_hash = ?)`;

export function renewSessionSecret(hash: string, secretHash: string, passwordHash: string): Statement {
  return { sql: NEW_SECRET, args: [secretHash, hash, passwordHash] };
}

const VOID_OTHERS = "DELETE FROM welcome_links WHERE account_id = ? AND person_id IS ?";
const OFFER = `INSERT INTO welcome_links (hash, person_id, account_id, created_at, expires_at) SELECT ?, ?, ?, ?, ?
  WHERE ? IS NOT NULL OR NOT EXISTS (SELECT 1 FROM members WHERE account_id = ?)`;

/** The second statement writes one row unless the account has its first person. */
export function offer({ hash, personId, accountId, createdAt, expiresAt }: WelcomeLink): readonly Statement[] {
  return [
    { sql: VOID_OTHERS, args: [accountId, personId] },
    {
      sql: OFFER,
      args: [hash, personId, accountId, createdAt.getTime(), expiresAt.getTime(), personId, accountId],
    },
  ];
}

const LIVE = "SELECT 1 FROM welcome_links WHERE hash = ? AND expires_at > ?";
const WELCOMED = `${PERSON} WHERE EXISTS (${LIVE} AND account_id = ? AND person_id IS NULL)
  AND NOT EXISTS (SELECT 1 FROM members WHERE account_id = ?) ${UNLESS_TAKEN}`;
const SPEND = `DELETE FROM welcome_links WHERE hash = ? AND ${CHANGED.sql}`;

/** The first statement writes one row when the link could be taken and the address was free. */
export function welcome(
  linkHash: string,
  person: PersonRow,
  session: SessionRow,
  audit?: AuditEntry,
): readonly Statement[] {
  const { accountId, createdAt } = session;
  return [
    { sql: WELCOMED, args: [...personValues(person), linkHash, createdAt.getTime(), accountId, accountId] },
    { sql: MEMBER_ROW, args: [accountId, person.id, createdAt.getTime()] },
    { sql: `${SESSION_ROW} WHERE ${CHANGED.sql}`, args: sessionValues(session) },
    { sql: SPEND, args: [linkHash] },
    ...auditChange(audit),
  ];
}

const RENEWED = `UPDATE people SET password_hash = ? WHERE id = ? AND EXISTS (${LIVE} AND person_id = ?)`;
const END_OTHERS = `DELETE FROM sessions WHERE person_id = ? AND hash <> ? AND ${CHANGED.sql}`;

/** The first statement writes one row when the link could be taken. Whoever knew the old password is logged out. */
export function renewPassword(
  linkHash: string,
  passwordHash: string,
  session: SessionRow,
  audit?: AuditEntry,
): readonly Statement[] {
  const { personId, createdAt, hash } = session;
  return [
    { sql: RENEWED, args: [passwordHash, personId, linkHash, createdAt.getTime(), personId] },
    { sql: `${SESSION_ROW} WHERE ${CHANGED.sql}`, args: sessionValues(session) },
    { sql: SPEND, args: [linkHash] },
    ...auditChange(audit),
    { sql: END_OTHERS, args: [personId, hash] },
  ];
}

const CHANGED_PASSWORD = "UPDATE people SET password_hash = ? WHERE id = ? AND password_hash = ?";
/** Whether the chain's own session is there: what came before may have found nothing to delete. */
const WAS_CHANGED = "EXISTS (SELECT 1 FROM sessions WHERE hash = ?)";
const VOID_RENEWALS = `DELETE FROM welcome_links WHERE account_id IN (SELECT account_id FROM members WHERE person_id = ?)
  AND person_id = ? AND ${WAS_CHANGED}`;

/** The first statement writes one row while the password is the one that was checked. */
export function changePassword(
  session: SessionRow,
  passwordHash: string,
  nextHash: string,
  audit?: AuditEntry,
): readonly Statement[] {
  const { personId, hash } = session;
  return [
    { sql: CHANGED_PASSWORD, args: [nextHash, personId, passwordHash] },
    { sql: `${SESSION_ROW} WHERE ${CHANGED.sql}`, args: sessionValues(session) },
    ...auditChange(audit),
    { sql: END_OTHERS, args: [personId, hash] },
    { sql: VOID_RENEWALS, args: [personId, personId, hash] },
  ];
}

/** Rows that one pass forgets of each kind, so that it never holds the writer for long. */
const PRUNE_ROWS = 500;

const prune = (table: "sessions" | "welcome_links", now: Date): Statement => ({
  sql: `DELETE FROM ${table} WHERE hash IN (SELECT hash FROM ${table} WHERE expires_at <= ? LIMIT ?)`,
  args: [now.getTime(), PRUNE_ROWS],
});
export const pruneSessions = (now: Date) => prune("sessions", now);
export const pruneLinks = (now: Date) => prune("welcome_links", now);

function personValues({ id, email, passwordHash, createdAt }: PersonRow) {
  return [id, email, emailKey(email), passwordHash, createdAt.getTime()];
}

function sessionValues({ hash, personId, accountId, createdAt, expiresAt, secretHash }: SessionRow) {
  return [hash, personId, accountId, createdAt.getTime(), expiresAt.getTime(), secretHash];
}
