import { emailKey } from "../../src/accounts/throttle.ts";
import type {
  Member,
  PeopleStore,
  SessionMember,
  PersonRow,
  SessionRow,
  SignUp,
  WelcomeLink,
  AccountStop,
  AccountStore,
  ListedAccount,
} from "../account-store.ts";
import { type Row, type Sql, CHANGED, type Statement, type Guard } from "./sql.ts";
import type { Writer } from "./writer.ts";
import type { AuditEntry } from "../../src/audit/audit.ts";
import { SESSIONS_PER_PERSON_MAX, REPLACED_KEYS_MAX } from "../../src/config/limits.ts";
import { auditChange, auditRow } from "./audit.ts";
import type { PauseEnd } from "../../src/pauses/pause.ts";

const COLUMNS = "p.id, p.email, p.password_hash, p.created_at, m.account_id";

/** Picks the account that they joined first. */
const FIND = `SELECT ${COLUMNS} FROM people p JOIN members m ON m.person_id = p.id
  WHERE p.email_key = ? ORDER BY m.joined_at, m.account_id LIMIT 1`;

/** The join ends a session of someone who left the account. */
const SESSION = `SELECT ${COLUMNS}, s.secret_hash FROM sessions s JOIN people p ON p.id = s.person_id
  JOIN members m ON m.account_id = s.account_id AND m.person_id = s.person_id WHERE s.hash = ? AND s.expires_at > ?`;

const FIRST_EMAIL = `SELECT p.email FROM members m JOIN people p ON p.id = m.person_id
  WHERE m.account_id = ? ORDER BY m.joined_at, m.person_id LIMIT 1`;

const IS_IN = `SELECT 1 FROM people p JOIN members m ON m.person_id = p.id WHERE p.email_key = ? AND m.account_id = ?`;

const LINK = `SELECT l.person_id, l.account_id, p.email FROM welcome_links l LEFT JOIN people p ON p.id = l.person_id
  WHERE l.hash = ? AND l.expires_at > ?`;

/** People, their sessions and welcome links: rarely read or written, so not optimised. */
export function createPeopleStore(sql: Sql, writer: Writer): PeopleStore {
  const one = async (query: string, args: readonly (string | number)[]) => (await sql.read({ sql: query, args }))[0];
  const live = (hash: string, now: Date) => one(LINK, [hash, now.getTime()]);
  return {
    find: async (email) => memberOf(await one(FIND, [emailKey(email)])),
    async emailOf(accountId) {
      const row = await one(FIRST_EMAIL, [accountId]);
      return row === undefined ? null : String(row["email"]);
    },
    isIn: async (accountId, email) => (await one(IS_IN, [emailKey(email), accountId])) !== undefined,
    async signUp(all) {
      const [person] = await writer.write(signUp(all));
      return person?.changes === 1;
    },
    async addSession(session, passwordHash, audit) {
      const [added] = await writer.write(addSession(session, passwordHash, audit));
      return added?.changes === 1;
    },
    session: async (hash, now) => sessionMemberOf(await one(SESSION, [hash, now.getTime()])),
    renewSessionSecret: async (...args) => void (await writer.write([renewSessionSecret(...args)])),
    endSession: async (hash, audit) => void (await writer.write(endSession(hash, audit))),
    async offer(link) {
      const [, offered] = await writer.write(offer(link));
      return offered?.changes === 1;
    },
    async link(hash, now) {
      const row = await live(hash, now);
      if (row === undefined) return null;
      return { personId: text(row, "person_id"), accountId: String(row["account_id"]), email: text(row, "email") };
    },
    async welcome(linkHash, person, session, audit) {
      const [written] = await writer.write(welcome(linkHash, person, session, audit));
      if (written?.changes === 1) return "taken";
      // Nothing was written: the link can't be used, or the address is taken.
      return (await live(linkHash, session.createdAt)) === undefined ? "gone" : "email_taken";
    },
    async renewPassword(linkHash, passwordHash, session, audit) {
      const [written] = await writer.write(renewPassword(linkHash, passwordHash, session, audit));
      return written?.changes === 1;
    },
    async changePassword(session, passwordHash, nextHash, audit) {
      const [written] = await writer.write(changePassword(session, passwordHash, nextHash, audit));
      return written?.changes === 1;
    },
    async prune(now) {
      const pruned = await writer.write([prune("sessions", now), prune("welcome_links", now)]);
      return pruned.some(({ changes }) => changes > 0);
    },
  };
}

function sessionMemberOf(row: Row | undefined): SessionMember | null {
  const member = memberOf(row);
  return row === undefined || member === null ? null : { ...member, secretHash: text(row, "secret_hash") };
}

function memberOf(row: Row | undefined): Member | null {
  if (row === undefined) return null;
  return {
    person: {
      id: String(row["id"]),
      email: String(row["email"]),
      passwordHash: String(row["password_hash"]),
      createdAt: new Date(Number(row["created_at"])),
    },
    accountId: String(row["account_id"]),
  };
}

function text(row: Row, column: string): string | null {
  const value = row[column];
  return value === null || value === undefined ? null : String(value);
}

/**
 * A chain, like the change of an action: the first statement decides, and each following one writes only where the one
 * before did. Of two racing uses of one address or link, one wins.
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

/** The first statement writes one row if the address is free and sign-ups are open. */
export function signUp({ account, key, person, session, audit = [], ...rules }: SignUp): readonly Statement[] {
  const { allowedBy = null, untilHold = false } = rules;
  const madeMs = account.createdAt.getTime();
  return [
    { sql: `${PERSON} WHERE ${untilHold ? NO_HOLD.sql : "true"} ${UNLESS_TAKEN}`, args: personValues(person) },
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

/** Excludes the new session: after a clock was set back it would look like the oldest. */
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

/** Only while the password is the one that was checked. */
const NEW_SECRET = `UPDATE sessions SET secret_hash = ? WHERE hash = ?
  AND EXISTS (SELECT 1 FROM people WHERE id = sessions.person_id AND password_hash = ?)`;

export function renewSessionSecret(hash: string, secretHash: string, passwordHash: string): Statement {
  return { sql: NEW_SECRET, args: [secretHash, hash, passwordHash] };
}

const VOID_OTHERS = "DELETE FROM welcome_links WHERE account_id = ? AND person_id IS ?";

const OFFER = `INSERT INTO welcome_links (hash, person_id, account_id, created_at, expires_at) SELECT ?, ?, ?, ?, ?
  WHERE ? IS NOT NULL OR NOT EXISTS (SELECT 1 FROM members WHERE account_id = ?)`;

/** The second statement writes one row unless the account has a person. */
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

/** The first statement writes one row if the link can be used and the address is free. */
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

/** The first statement writes one row if the link can be used. Sessions opened with the old password end. */
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

/** Whether the chain wrote its session: the statement before may have had nothing to delete. */
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

/** Rows deleted per pass and table, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

const prune = (table: "sessions" | "welcome_links", now: Date): Statement => ({
  sql: `DELETE FROM ${table} WHERE hash IN (SELECT hash FROM ${table} WHERE expires_at <= ? LIMIT ?)`,
  args: [now.getTime(), PRUNE_ROWS],
});

function personValues({ id, email, passwordHash, createdAt }: PersonRow) {
  return [id, email, emailKey(email), passwordHash, createdAt.getTime()];
}

function sessionValues({ hash, personId, accountId, createdAt, expiresAt, secretHash }: SessionRow) {
  return [hash, personId, accountId, createdAt.getTime(), expiresAt.getTime(), secretHash];
}

/** By rowid: after a clock was set back, a later sign-up could look older. */
const FIRST = "(SELECT id FROM accounts ORDER BY rowid LIMIT 1)";

/** True while no key of the first account has, or had, a hold. */
const NO_HOLD: Guard = {
  sql: `NOT EXISTS (SELECT 1 FROM api_keys WHERE account_id = ${FIRST} AND hold <> 'none')`,
  args: [],
};

/** True if this key is the first one of the first account with a hold. */
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

/** Stops every account that was not allowed, except the first. */
export function stopOthers({ at, reason }: AccountStop): Statement {
  return { sql: STOP, args: [reason, at.getTime()] };
}

/** The first statement writes one row unless the account is allowed already. */
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

/** Stopped accounts first, then the newest. */
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

/** Follows `replaces` by the primary key; bounded, even if rows were altered into a cycle. */
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

/** The part of `AccountStore` about signed-up accounts. */
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
