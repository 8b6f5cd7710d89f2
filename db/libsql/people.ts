import { emailKey } from "../../src/domain/email.ts";
import type { Member, PeopleStore, SessionMember } from "../../src/ports/people.ts";
import {
  addSession,
  changePassword,
  endSession,
  offer,
  pruneLinks,
  pruneSessions,
  renewPassword,
  renewSessionSecret,
  signUp,
  welcome,
} from "./people-writes.ts";
import type { Row, Sql } from "./sql.ts";
import type { Writer } from "./writer.ts";

const COLUMNS = "p.id, p.email, p.password_hash, p.created_at, m.account_id";
/** The account that they have been in for the longest time. */
const FIND = `SELECT ${COLUMNS} FROM people p JOIN members m ON m.person_id = p.id
  WHERE p.email_key = ? ORDER BY m.joined_at, m.account_id LIMIT 1`;
/** Nobody stays logged in to an account that they are not in any more. */
const SESSION = `SELECT ${COLUMNS}, s.secret_hash FROM sessions s JOIN people p ON p.id = s.person_id
  JOIN members m ON m.account_id = s.account_id AND m.person_id = s.person_id WHERE s.hash = ? AND s.expires_at > ?`;
const FIRST_EMAIL = `SELECT p.email FROM members m JOIN people p ON p.id = m.person_id
  WHERE m.account_id = ? ORDER BY m.joined_at, m.person_id LIMIT 1`;
const IS_IN = `SELECT 1 FROM people p JOIN members m ON m.person_id = p.id WHERE p.email_key = ? AND m.account_id = ?`;
const LINK = `SELECT l.person_id, l.account_id, p.email FROM welcome_links l LEFT JOIN people p ON p.id = l.person_id
  WHERE l.hash = ? AND l.expires_at > ?`;

/** People, their sessions and the links that let them in: read and written by people's clicks, so rarely. */
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
      // Nothing was written: either nothing is to be taken, or the address is another person's.
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
      const pruned = await writer.write([pruneSessions(now), pruneLinks(now)]);
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
